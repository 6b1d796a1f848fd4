"""Pydantic AI in the race: `Agent` with `FunctionModel`, and `DBOSDurability` on SQLite where work is durable.

Tools are steps of DBOS there, as its documentation advises for what talks to the outside. DBOS takes up what was left
by itself when it is launched.
"""

from __future__ import annotations

import asyncio

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent, RunContext
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of


def _fake(course: Course) -> FunctionModel:
    async def answer(messages, info) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        called = sum(isinstance(part, ToolReturnPart) for part in parts)
        prompt = next(part.content for part in parts if isinstance(part, UserPromptPart))
        fact = await course.next_fact(prompt, called)
        return ModelResponse([TextPart(FINAL) if fact is None else ToolCallPart("look_up", {"fact": fact}, fact)])

    return FunctionModel(answer)


async def messages(course: Course) -> int:
    """Delegation: one agent's tool runs another agent, again and again; a question and its answer are two messages."""
    questions = course.hops // 2

    async def ask_or_end(messages, info) -> ModelResponse:
        course.asked()
        asked = sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
        return ModelResponse([TextPart(BODY) if asked == questions else ToolCallPart("ask", {"body": BODY})])

    async def answer(messages, info) -> ModelResponse:
        course.asked()
        return ModelResponse([TextPart(BODY)])

    def make(pair: int) -> Agent:
        answers = Agent(FunctionModel(answer), name=f"answers-{pair}", capabilities=_durability(course))
        asks = Agent(FunctionModel(ask_or_end), name=f"asks-{pair}", capabilities=_durability(course))

        @asks.tool
        async def ask(ctx: RunContext[None], body: str) -> str:
            """Ask the other agent."""
            return (await answers.run(body, usage=ctx.usage)).output

        return asks

    made = {f"pair-{pair}": make(pair) for pair in range(PAIRS)}

    async def play(key: str) -> int:
        result = await made[key].run(BODY, usage_limits=UsageLimits(request_limit=None))
        return sum(isinstance(part, ToolReturnPart) for message in result.all_messages() for part in message.parts)

    play = _launched(course, play)
    with course.measured():
        ended = await asyncio.gather(*map(play, made))
    return 2 * sum(ended)


async def tasks(course: Course) -> int:
    agents = {task: _agent(course, task) for task in [*course.tasks, *course.warm_up]}

    async def run(task: str) -> bool:
        return (await agents[task].run(prompt_of(task))).output == FINAL

    run = _launched(course, run)
    await asyncio.gather(*map(run, course.warm_up))
    with course.measured():
        ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def agents(course: Course) -> int:
    model = _fake(course)
    made = [Agent(model, tools=tools_of(-1))]
    with course.measured():
        made += [Agent(model, tools=tools_of(number)) for number in range(course.size)]
        for agent in made[1:] if course.used else ():
            await agent.run(USED_PROMPT)
    return len(made) - 1


async def restart(course: Course) -> int:
    agent = _agent(course, "worker")

    async def run(task: str) -> bool:
        return (await agent.run(prompt_of(task))).output == FINAL

    course.tell("opening")
    run = _launched(course, run)

    async def begin(task: str) -> bool:
        course.tell("accepted", task)
        return await run(task)

    with course.measured():
        # Under an id that is known already this waits for the workflow that DBOS has taken up.
        ended = await asyncio.gather(*map(begin, course.tasks))
    return sum(ended)


def _agent(course: Course, name: str) -> Agent:
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    if course.durable:
        look_up = DBOS.step(name=f"{name}-look_up")(look_up)
    return Agent(_fake(course), name=name, tools=[look_up], capabilities=_durability(course))


def _durability(course: Course) -> list[DBOSDurability]:
    return [DBOSDurability()] if course.durable else []


def _launched(course: Course, run):
    """The function, in the durable case as a workflow whose id is its argument."""
    if not course.durable:
        return run
    DBOS(
        config={
            "name": "race",
            "system_database_url": f"sqlite:///{course.folder}/dbos.db",
            "application_version": "1",
            "executor_id": "race",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    workflow = DBOS.workflow(name="run")(run)
    DBOS.launch()

    async def under_id(key: str):
        with SetWorkflowID(key):
            return await workflow(key)

    return under_id


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
