"""Microsoft Agent Framework in the race.

In memory its `Agent` does the tasks. What is durable is a checkpoint after each superstep of a workflow, so there a
task is a workflow whose two executors are the model and the tool, with `FileCheckpointStorage`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    Executor,
    FileCheckpointStorage,
    FunctionInvocationLayer,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

from bench.race.course import BODY, FINAL, STEPS, USED_PROMPT, Course, Doing, Script, main, prompt_of, tools_of


class FakeModel(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, course: Course) -> None:
        super().__init__()
        self._course = course

    def _inner_get_response(self, *, messages, stream, options, **_):
        return self._answer(messages)

    async def _answer(self, messages) -> ChatResponse:
        called = sum(each.type == "function_result" for message in messages for each in message.contents)
        prompt = next(message.text for message in messages if message.role == "user")
        fact = await self._course.next_fact(prompt, called)
        if fact is None:
            contents = [Content.from_text(FINAL)]
        else:
            contents = [Content.from_function_call(fact, "look_up", arguments={"fact": fact})]
        return ChatResponse(messages=[Message("assistant", contents)])


class Player(Executor):
    """Has an agent whose conversation is kept in its session, and in each checkpoint."""

    def __init__(self, id: str, course: Course) -> None:
        super().__init__(id=id)
        self._course = course
        self._agent = Agent(FakeModel(course), name=id)
        self._session = AgentSession()

    @handler
    async def play(self, message: str, ctx: WorkflowContext[str, int]) -> None:
        hop, _, body = message.partition(" ")
        if int(hop) and not self._course.bare:
            await self._agent.run(body, session=self._session)
        if int(hop) < self._course.hops:
            await ctx.send_message(f"{int(hop) + 1} {body}")
        else:
            await ctx.yield_output(int(hop))

    async def on_checkpoint_save(self) -> dict:
        return {} if self._course.bare else {"session": self._session.to_dict()}

    async def on_checkpoint_restore(self, state: dict) -> None:
        self._session = AgentSession.from_dict(state["session"])


class Asking(Executor):
    def __init__(self, course: Course) -> None:
        super().__init__(id="model")
        self._course = course

    @handler
    async def ask(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        """What is known so far is the number of tool calls, then the prompt."""
        called, _, prompt = message.partition(" ")
        fact = await self._course.next_fact(prompt, int(called))
        if fact is None:
            await ctx.yield_output(FINAL)
        else:
            await ctx.send_message(f"{int(called) + 1} {fact} {prompt}")


class LookingUp(Executor):
    def __init__(self, course: Course) -> None:
        super().__init__(id="tool")
        self._course = course

    @handler
    async def look_up(self, message: str, ctx: WorkflowContext[str]) -> None:
        called, fact, prompt = message.split(" ", 2)
        await self._course.look_up(fact)
        await ctx.send_message(f"{called} {prompt}")


class AgentFramework(Script):
    async def open(self) -> None:
        self._model = FakeModel(self.course)

    async def make_pair(self, pair: str) -> Doing:
        """Two executors that send a message to each other."""
        ping, pong = Player("ping", self.course), Player("pong", self.course)
        storage = FileCheckpointStorage(self.course.folder / pair) if self.course.durable else None
        builder = WorkflowBuilder(
            self.course.hops + 10, f"pair-{pair}", start_executor=ping, checkpoint_storage=storage, output_from="all"
        )
        workflow = builder.add_edge(ping, pong).add_edge(pong, ping).build()

        async def play() -> int:
            return (await workflow.run(f"0 {BODY}")).get_outputs()[-1]

        return play

    async def make_worker(self, task: str) -> Doing:
        if self.course.durable:
            workflow = self._workflow(task)

            async def work() -> int:
                return (await workflow.run(f"0 {prompt_of(task)}")).get_outputs() == [FINAL]

            return work

        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        agent = Agent(self._model, name=task, tools=[look_up])

        async def run() -> int:
            return (await agent.run(prompt_of(task))).text == FINAL

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence[Agent]:
        return [Agent(self._model, name=f"agent-{each}", tools=tools_of(each)) for each in numbers]

    async def use(self, agent: Agent) -> bool:
        return (await agent.run(USED_PROMPT)).text == FINAL

    async def resume(self, task: str) -> bool:
        """A workflow is continued from its latest checkpoint; one that has none is begun."""
        workflow = self._workflow(task)
        latest = None if self.course.fresh else await self._storage(task).get_latest(workflow_name=task)
        if latest is None:
            result = await workflow.run(f"0 {prompt_of(task)}")
        elif latest.iteration_count >= STEPS and not latest.messages:
            return True
        else:
            result = await workflow.run(checkpoint_id=latest.checkpoint_id)
        return result.get_outputs() == [FINAL]

    def _storage(self, task: str) -> FileCheckpointStorage:
        return FileCheckpointStorage(self.course.folder / task)

    def _workflow(self, task: str):
        asking, looking_up = Asking(self.course), LookingUp(self.course)
        builder = WorkflowBuilder(
            name=task, start_executor=asking, checkpoint_storage=self._storage(task), output_from=[asking]
        )
        return builder.add_edge(asking, looking_up).add_edge(looking_up, asking).build()


if __name__ == "__main__":
    main(AgentFramework)
