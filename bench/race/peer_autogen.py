"""AutoGen in the race: `autogen-core`'s runtime for messages, `autogen-agentchat`'s assistant for tasks.

It keeps nothing on disk by itself (`save_state` returns a value that the caller may keep), so it takes no part in what
is durable.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from autogen_agentchat.agents import AssistantAgent
from autogen_core import AgentId, FunctionCall, MessageContext, RoutedAgent, SingleThreadedAgentRuntime, message_handler
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    RequestUsage,
    UserMessage,
)

from bench.race.course import BODY, FINAL, PAIRS, TOOL_CALLS, USED_PROMPT, Course, main, prompt_of, tools_of


@dataclass
class Text:
    body: str


class Reading(RoutedAgent):
    def __init__(self, course: Course) -> None:
        super().__init__("Reads what the other writes.")
        self._course = course
        self._model = FakeModel(course)

    async def read(self, message: Text) -> Text:
        """What the model says to the message, if one is asked."""
        if self._course.bare:
            return Text(message.body)
        result = await self._model.create([UserMessage(content=message.body, source="other")])
        return Text(result.content)


class Answering(Reading):
    @message_handler
    async def answer(self, message: Text, ctx: MessageContext) -> Text:
        return await self.read(message)


class Asking(Reading):
    answers = 0

    @message_handler
    async def begin(self, message: Text, ctx: MessageContext) -> None:
        for _ in range(self._course.hops // 2):
            await self.read(await self.send_message(Text(message.body), AgentId("answering", self.id.key)))
            self.answers += 1


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


async def messages(course: Course) -> int:
    """A question by `send_message` and the value that comes back are two messages; each side asks its model."""
    runtime = SingleThreadedAgentRuntime()
    await Answering.register(runtime, "answering", lambda: Answering(course))
    await Asking.register(runtime, "asking", lambda: Asking(course))
    runtime.start()
    with course.measured():
        every = [runtime.send_message(Text(BODY), AgentId("asking", str(pair))) for pair in range(PAIRS)]
        await asyncio.gather(*every)
    asking = [await runtime.try_get_underlying_agent_instance(AgentId("asking", str(each))) for each in range(PAIRS)]
    return 2 * sum(agent.answers for agent in asking)


async def tasks(course: Course) -> int:
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    model = FakeModel(course)

    def make(name: str) -> AssistantAgent:
        name = name.replace("-", "_")
        return AssistantAgent(name, model, tools=[look_up], max_tool_iterations=TOOL_CALLS + 1)

    agents = {task: make(task) for task in [*course.tasks, *course.warm_up]}

    async def run(task: str) -> bool:
        result = await agents[task].run(task=prompt_of(task))
        return result.messages[-1].content == FINAL

    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def agents(course: Course) -> int:
    model = FakeModel(course)
    made = [AssistantAgent("first", model, tools=tools_of(-1))]
    with course.measured():
        made += [AssistantAgent(f"agent_{each}", model, tools=tools_of(each)) for each in range(course.size)]
        for agent in made[1:] if course.used else ():
            await agent.run(task=USED_PROMPT)
    return len(made) - 1


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents)
