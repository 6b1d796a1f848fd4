"""LangGraph in the race: `create_agent`, and `AsyncSqliteSaver` with `durability="sync"` where work is durable.

`sync` writes each checkpoint before the next step begins; the default, `async`, writes it meanwhile and loses more.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from bench.race.course import BODY, FINAL, PAIRS, USED_PROMPT, Course, main, prompt_of, tools_of


class FakeModel(BaseChatModel):
    course: object = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **_):
        called = sum(isinstance(each, ToolMessage) for each in messages)
        prompt = next(each.content for each in messages if isinstance(each, HumanMessage))
        fact = await self.course.next_fact(prompt, called)
        calls = [] if fact is None else [{"name": "look_up", "args": {"fact": fact}, "id": fact}]
        message = AIMessage(content="" if calls else FINAL, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Played(TypedDict):
    body: str
    hop: int


async def messages(course: Course) -> int:
    """Two nodes that hand a message to each other with `Command(goto=…)`; each asks the model."""

    model = FakeModel(course=course)

    def node(other: str):
        async def play(state: Played) -> Command:
            if not course.bare:
                await model.ainvoke([HumanMessage(state["body"])])
            hop = state["hop"] + 1
            return Command(goto=END if hop >= course.hops else other, update={"body": state["body"], "hop": hop})

        return play

    graph = StateGraph(Played)
    graph.add_node("ping", node("pong"), destinations=("pong", END))
    graph.add_node("pong", node("ping"), destinations=("ping", END))
    graph.add_edge(START, "ping")
    async with AsyncExitStack() as stack:
        built = graph.compile(checkpointer=await _saver(course, stack))
        given = {"body": BODY, "hop": 0}
        with course.measured():
            every = [built.ainvoke(given, **_options(course, str(pair), course.hops)) for pair in range(PAIRS)]
            ended = await asyncio.gather(*every)
    return sum(state["hop"] for state in ended)


async def tasks(course: Course) -> int:
    async with AsyncExitStack() as stack:
        saver = await _saver(course, stack)
        agents = {task: _agent(course, saver) for task in [*course.tasks, *course.warm_up]}

        async def run(task: str) -> bool:
            given = {"messages": [HumanMessage(prompt_of(task))]}
            state = await agents[task].ainvoke(given, **_options(course, task))
            return state["messages"][-1].content == FINAL

        await asyncio.gather(*map(run, course.warm_up))
        with course.measured():
            ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


async def agents(course: Course) -> int:
    model = FakeModel(course=course)
    made = [create_agent(model, [tool(each) for each in tools_of(-1)])]
    with course.measured():
        made += [create_agent(model, [tool(each) for each in tools_of(number)]) for number in range(course.size)]
        for agent in made[1:] if course.used else ():
            await agent.ainvoke({"messages": [HumanMessage(USED_PROMPT)]})
    return len(made) - 1


async def restart(course: Course) -> int:
    """A thread that has a checkpoint is continued with `ainvoke(None)`, as the documentation says."""
    async with AsyncExitStack() as stack:
        course.tell("opening")
        agent = _agent(course, await _saver(course, stack))

        async def run(task: str) -> bool:
            options = _options(course, task)
            given = {"messages": [HumanMessage(prompt_of(task))]}
            course.tell("accepted", task)
            if not course.fresh:
                state = await agent.aget_state(options["config"])
                if state.values and state.values["messages"][-1].content == FINAL:
                    return True
                given = None if state.values else given
            state = await agent.ainvoke(given, **options)
            return state["messages"][-1].content == FINAL

        with course.measured():
            ended = await asyncio.gather(*map(run, course.tasks))
    return sum(ended)


def _agent(course: Course, saver):
    @tool
    async def look_up(fact: str) -> str:
        """Look a fact up."""
        return await course.look_up(fact)

    return create_agent(FakeModel(course=course), [look_up], checkpointer=saver)


async def _saver(course: Course, stack: AsyncExitStack):
    if not course.durable:
        return None
    return await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(course.folder / "langgraph.db")))


def _options(course: Course, thread: str, hops: int = 20) -> dict:
    found = {"config": {"configurable": {"thread_id": thread}, "recursion_limit": hops + 10}}
    return {**found, "durability": "sync"} if course.durable else found


if __name__ == "__main__":
    main(messages=messages, tasks=tasks, agents=agents, restart=restart)
