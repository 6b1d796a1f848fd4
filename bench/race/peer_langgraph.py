"""LangGraph in the race: `create_agent`, and `AsyncSqliteSaver` with `durability="sync"` where work is durable.

`sync` writes each checkpoint before the next step begins; the default, `async`, writes it meanwhile and loses more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cached_property

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from bench.race.course import BODY, FINAL, USED_PROMPT, Doing, Script, main, prompt_of, tools_of


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


class Played(MessagesState):
    hop: int


class LangGraph(Script):
    async def open(self) -> None:
        self._stack, self._saver = AsyncExitStack(), None
        self._model = FakeModel(course=self.course)
        if self.course.durable:
            saver = AsyncSqliteSaver.from_conn_string(str(self.course.folder / "langgraph.db"))
            self._saver = await self._stack.enter_async_context(saver)

    async def close(self) -> None:
        await self._stack.aclose()

    async def make_pair(self, pair: str) -> Doing:
        graph, options = self._graph_of_two, self._options(pair)

        async def play() -> int:
            state = await graph.ainvoke({"messages": [HumanMessage(BODY)], "hop": 0}, **options)
            return state["hop"]

        return play

    @cached_property
    def _graph_of_two(self):
        """Two nodes that hand a message to each other with `Command(goto=…)`; one graph serves all threads."""
        graph = StateGraph(Played)
        graph.add_node("ping", self._node("pong"), destinations=("pong", END))
        graph.add_node("pong", self._node("ping"), destinations=("ping", END))
        graph.add_edge(START, "ping")
        return graph.compile(checkpointer=self._saver)

    def _node(self, other: str):
        async def play(state: Played) -> Command:
            hop = state["hop"] + 1
            update = {"hop": hop}
            if not self.course.bare:
                update["messages"] = [await self._model.ainvoke(state["messages"])]
            return Command(goto=END if hop >= self.course.hops else other, update=update)

        return play

    async def make_worker(self, task: str) -> Doing:
        agent, options = self._agent(), self._options(task)

        async def run() -> int:
            return _is_done(await agent.ainvoke({"messages": [HumanMessage(prompt_of(task))]}, **options))

        return run

    async def create(self, numbers: Sequence[int]) -> Sequence:
        return [create_agent(self._model, [tool(each) for each in tools_of(number)]) for number in numbers]

    async def use(self, agent) -> bool:
        return _is_done(await agent.ainvoke({"messages": [HumanMessage(USED_PROMPT)]}))

    async def resume(self, task: str) -> bool:
        """A thread that has a checkpoint is continued with `ainvoke(None)`; one agent serves all threads."""
        agent, options = self._shared_agent, self._options(task)
        given = {"messages": [HumanMessage(prompt_of(task))]}
        if not self.course.fresh:
            state = await agent.aget_state(options["config"])
            if state.values and _is_done(state.values):
                return True
            given = None if state.values else given
        return _is_done(await agent.ainvoke(given, **options))

    @cached_property
    def _shared_agent(self):
        return self._agent()

    def _agent(self):
        @tool
        async def look_up(fact: str) -> str:
            """Look a fact up."""
            return await self.course.look_up(fact)

        return create_agent(self._model, [look_up], checkpointer=self._saver)

    def _options(self, thread: str) -> dict:
        limit = max(20, self.course.hops) + 10
        found = {"config": {"configurable": {"thread_id": thread}, "recursion_limit": limit}}
        return {**found, "durability": "sync"} if self.course.durable else found


def _is_done(state: dict) -> bool:
    return state["messages"][-1].content == FINAL


if __name__ == "__main__":
    main(LangGraph)
