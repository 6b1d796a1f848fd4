"""AutoGen in the race: `autogen-core`'s runtime for messages, `autogen-agentchat`'s assistant for tasks.

It keeps nothing on disk by itself (`save_state` returns a value that the caller may keep), so it takes no part in what
is durable.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from autogen_agentchat.agents import AssistantAgent
from autogen_core import AgentId, FunctionCall, MessageContext, RoutedAgent, SingleThreadedAgentRuntime, message_handler
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    RequestUsage,
    UserMessage,
)

from bench.race.course import BODY, FINAL, TOOL_CALLS, USED_PROMPT, Course, Doing, Script, main, prompt_of, tools_of


@dataclass
class Text:
    body: str


class Reading(RoutedAgent):
    """Keeps its conversation in a model context, as the documentation of the core shows."""

    def __init__(self, course: Course) -> None:
        super().__init__("Reads what the other writes.")
        self._course = course
        self._model = FakeModel(course)
        self._context = UnboundedChatCompletionContext()

    async def read(self, message: Text) -> Text:
        """What the model says to the message, if one is asked."""
        if self._course.bare:
            return Text(message.body)
        await self._context.add_message(UserMessage(content=message.body, source="other"))
        result = await self._model.create(await self._context.get_messages())
        await self._context.add_message(AssistantMessage(content=result.content, source=self.id.type))
        return Text(result.content)


class Answering(Reading):
    @message_handler
    async def answer(self, message: Text, ctx: MessageContext) -> Text:
        return await self.read(message)


class Asking(Reading):
    @message_handler
    async def begin(self, message: Text, ctx: MessageContext) -> int:
        """A question by `send_message` and the value that comes back are two messages."""
        questions = self._course.hops // 2
        for _ in range(questions):
            await self.read(await self.send_message(Text(message.body), AgentId("answering", self.id.key)))
        return 2 * questions


class FakeModel(ChatCompletionClient):
    component_type = "model"
    component_config_schema = None

    def __init__(self, course: Course) -> None:
        self._course = course

    async def create(self, messages, **_):
        called = sum(isinstance(each, FunctionExecutionResultMessage) for each in messages)
        prompt = next(each.content for each in messages if each.type == "UserMessage")
        fact = await self._course.next_fact(prompt, called)
        content = FINAL if fact is None else [FunctionCall(fact, json.dumps({"fact": fact}), "look_up")]
        reason = "stop" if fact is None else "function_calls"
        return CreateResult(finish_reason=reason, content=content, usage=RequestUsage(10, 10), cached=False)

    def create_stream(self, messages, **_):
        raise NotImplementedError

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, messages, **_):
        return 0

    def remaining_tokens(self, messages, **_):
        return 1_000_000

    @property
    def capabilities(self):
        return self.model_info

    @property
    def model_info(self):
        return {
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        }


class AutoGen(Script):
    async def open(self) -> None:
        self._model = FakeModel(self.course)
        self._runtime = SingleThreadedAgentRuntime()
        await Answering.register(self._runtime, "answering", lambda: Answering(self.course))
        await Asking.register(self._runtime, "asking", lambda: Asking(self.course))
        self._runtime.start()

    async def make_pair(self, pair: str) -> Doing:
        asking, answering = AgentId("asking", pair), AgentId("answering", pair)
        for each in (asking, answering):
            await self._runtime.try_get_underlying_agent_instance(each)

        async def play() -> int:
            return await self._runtime.send_message(Text(BODY), asking)

        return play

    async def make_worker(self, task: str) -> Doing:
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        name = task.replace("-", "_")
        agent = AssistantAgent(name, self._model, tools=[look_up], max_tool_iterations=TOOL_CALLS + 1)

        async def run() -> int:
            result = await agent.run(task=prompt_of(task))
            return result.messages[-1].content == FINAL

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[AssistantAgent]:
        return [AssistantAgent(f"agent_{each}", self._model, tools=tools_of(each)) for each in numbers]

    async def use(self, agent: AssistantAgent) -> bool:
        return (await agent.run(task=USED_PROMPT)).messages[-1].content == FINAL


if __name__ == "__main__":
    main(AutoGen)
