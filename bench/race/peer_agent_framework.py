"""Microsoft Agent Framework in the race.

In memory its `Agent` does the tasks. What is durable is a checkpoint after each superstep of a workflow, so there a
task is a workflow whose two executors are the model and the tool, with `FileCheckpointStorage`.
"""

from __future__ import annotations

import asyncio

from agent_framework import (
    Agent,
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

from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of


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
    def __init__(self, id: str, course: Course) -> None:
        super().__init__(id=id)
        self._course = course
        self._model = FakeModel(course)

    @handler
    async def play(self, message: str, ctx: WorkflowContext[str, int]) -> None:
        hop, _, body = message.partition(" ")
        if int(hop) and not self._course.bare:
            await self._model.get_response([Message("user", [body])])
        if int(hop) < self._course.hops:
            await ctx.send_message(f"{int(hop) + 1} {body}")
        else:
            await ctx.yield_output(int(hop))


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


async def messages(course: Course) -> int:
    """Two executors that send a message to each other; each asks its model."""

    async def play(pair: int) -> int:
        ping, pong = Player("ping", course), Player("pong", course)
        storage = FileCheckpointStorage(course.folder / str(pair)) if course.durable else None
        builder = WorkflowBuilder(
            course.hops + 10, f"pair-{pair}", start_executor=ping, checkpoint_storage=storage, output_from="all"
        )
        workflow = builder.add_edge(ping, pong).add_edge(pong, ping).build()
        result = await workflow.run(f"0 {BODY}")
        return result.get_outputs()[-1]

    with course.measured():
        ended = await asyncio.gather(*map(play, range(PAIRS)))
    return sum(ended)


async def tasks(course: Course) -> int:
    if course.durable:
        return await _durable_tasks(course)

    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    model = FakeModel(course)
    agents = {task: Agent(model, name=task, tools=[look_up]) for task in [*course.tasks, *course.warm_up]}

    async def run(task: str) -> bool:
        return (await agents[task].run(prompt_of(task))).text == FINAL

    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def _durable_tasks(course: Course) -> int:
    async def run(task: str) -> bool:
        result = await _workflow(course, task).run(f"0 {prompt_of(task)}")
        return result.get_outputs() == [FINAL]

    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def agents(course: Course) -> int:
    model = FakeModel(course)
    made = [Agent(model, name="first", tools=tools_of(-1))]
    with course.measured():
        made += [Agent(model, name=f"agent-{each}", tools=tools_of(each)) for each in range(course.size)]
        for agent in made[1:] if course.used else ():
            await agent.run(USED_PROMPT)
    return len(made) - 1


async def restart(course: Course) -> int:
    """A workflow is continued from its latest checkpoint; one that has none is begun."""

    async def run(task: str) -> bool:
        workflow = _workflow(course, task)
        course.tell("accepted", task)
        latest = None if course.fresh else await _storage(course, task).get_latest(workflow_name=task)
        if latest is None:
            result = await workflow.run(f"0 {prompt_of(task)}")
        else:
            ended = latest.iteration_count >= 5 and not latest.messages
            if ended:
                return True
            result = await workflow.run(checkpoint_id=latest.checkpoint_id)
        return result.get_outputs() == [FINAL]

    course.tell("opening")
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


def _storage(course: Course, task: str) -> FileCheckpointStorage:
    return FileCheckpointStorage(course.folder / task)


def _workflow(course: Course, task: str):
    asking, looking_up = Asking(course), LookingUp(course)
    builder = WorkflowBuilder(
        name=task, start_executor=asking, checkpoint_storage=_storage(course, task), output_from=[asking]
    )
    return builder.add_edge(asking, looking_up).add_edge(looking_up, asking).build()


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
