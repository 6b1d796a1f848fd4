"""Tools that were made for LangChain and pydantic-ai, as they are."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Annotated, Any

import pydantic_ai
import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import Tool as TextTool
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.tools.function import as_tool
from ai_whisperer.tools.project_files import load_tool_files
from tests.simulation.stage import call, play, results_of, round_of


@langchain_tool
def search(query: str, limit: Annotated[int, "how many"] = 3) -> str:
    """Search the shelves."""
    return f"{limit} of {query}"


@langchain_tool
async def search_async(query: str, config: RunnableConfig, call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Search the shelves at once."""
    await asyncio.sleep(1)
    return {"query": query, "has_id": bool(call_id)}


@langchain_tool
def failing(query: str) -> str:
    """Search nowhere."""
    raise ToolException(f"no {query} here")


@langchain_tool
def of_a_graph(query: str, state: Annotated[dict[str, Any], InjectedToolArg]) -> str:
    """Needs a graph."""
    return query


class Adder(BaseTool):
    name: str = "adder"
    description: str = "Add."

    def _run(self, first: int, second: int = 2) -> int:
        return first + second


class AsyncAdder(Adder):
    async def _arun(self, first: int, second: int = 2) -> int:
        return 10 * (first + second)


class Order(BaseModel):
    article: str
    pieces: int = 1


def buy(order: Order) -> Order:
    """Buy something.

    Args:
        order: What to buy.
    """
    if order.pieces > 5:
        raise pydantic_ai.ModelRetry("Buy 5 at most.")
    return order


async def weigh(first: int, /, *more: int, unit: str = "kg") -> Any:
    """Weigh."""
    await asyncio.sleep(1)
    return pydantic_ai.ToolReturn(return_value=f"{first + sum(more)} {unit}", metadata="kept")


async def doze() -> str:
    """Sleep for long."""
    await asyncio.sleep(1000)
    return "awake"


def with_context(ctx: pydantic_ai.RunContext[int], x: int) -> int:
    """Needs a run."""
    return ctx.deps + x


failing_gently = failing.model_copy(update={"handle_tool_error": True, "name": "failing_gently"})


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Libraries import the rest of themselves at the first call, which takes longer than a simulation waits for."""
    search.invoke({"query": "pens"})


@pytest.mark.parametrize(
    ("given", "arguments", "told"),
    [
        (search, {"query": "pens"}, "3 of pens"),
        (search, {"query": "pens", "limit": 1}, "1 of pens"),
        (search, {"limit": "x"}, "The arguments do not fit: Field required - at `$.query`"),
        (search_async, {"query": "pens"}, '{"query": "pens", "has_id": true}'),
        (failing, {"query": "pen"}, "The tool 'failing' failed: ToolException: no pen here"),
        (failing_gently, {"query": "pen"}, "no pen here"),
        (Adder(), {"first": 1}, "3"),
        (AsyncAdder(), {"first": 1}, "30"),
        (TextTool(name="upper", description="Upper.", func=str.upper), {"tool_input": "x"}, "X"),
        (tool(search, name="look"), {"query": "pens"}, "3 of pens"),
        (pydantic_ai.Tool(buy), {"article": "pen"}, '{"article":"pen","pieces":1}'),
        (pydantic_ai.Tool(buy), {"article": "pen", "pieces": 6}, "Buy 5 at most."),
        (pydantic_ai.Tool(buy), {"pieces": "many"}, "Field required - at `$.article`; Input should be a valid integer"),
        (pydantic_ai.Tool(weigh), {"first": 1, "more": [2, 3]}, "6 kg"),
        (pydantic_ai.Tool(doze, timeout=5), {}, "It took longer than 5 seconds"),
        (pydantic_ai.Tool.from_schema(lambda **each: each, "raw", "Raw.", {"type": "object"}), {"a": 1}, '{"a":1}'),
    ],
)
def test_a_tool_of_others_is_called_with_what_the_model_wrote(given: Any, arguments: dict[str, Any], told: str) -> None:
    name = as_tool(given).name

    def say(request: ModelRequest) -> Answer | str:
        assert name in {each.name for each in request.tools}
        return results_of(request)[0] if round_of(request) else call(name, **arguments)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.create_agent("b", {"tools": [name]})
        for agent in ("a", "b"):
            assert told in await manager.run_task(agent, "go")

    play(scenario, say, tools=[given])


def test_an_error_of_a_tool_of_others_counts_as_one() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return "done" if round_of(request) else call("failing_gently", query="x")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.give_tools("a", [failing_gently])
        await manager.run_task("a", "go", task_id="t")
        result = (await manager.list_steps("t"))[1].result
        assert result is not None
        assert (result.content, result.is_error) == ("no x here", True)

    play(scenario, say)


def test_schema_description_and_approval_are_carried_over() -> None:
    spec = as_tool(search).spec
    assert (spec.name, spec.description) == ("search", "Search the shelves.")
    assert spec.parameters["required"] == ["query"]
    assert spec.parameters["properties"]["limit"]["description"] == "how many"
    assert list(as_tool(search_async).spec.parameters["properties"]) == ["query"]
    bought = as_tool(pydantic_ai.Tool(buy, requires_approval=True))
    assert (bought.spec.description, bought.needs_approval) == ("Buy something.", True)
    assert set(bought.spec.parameters["properties"]) == {"article", "pieces"}
    assert as_tool(tool(search, idempotent=True)).may_repeat('{"query": "x"}')


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (of_a_graph, "'of_a_graph' of LangChain needs 'state'"),
        (Adder, "'Adder' is a class"),
        (search.model_copy(update={"name": "my search"}), "cannot be called 'my search'"),
        (pydantic_ai.Tool(with_context), "'with_context' of pydantic-ai takes a RunContext"),
        (with_context, "'with_context' has the parameter 'ctx' of the type"),
        (pydantic_ai.Tool(buy, prepare=lambda _, definition: definition), "'buy' of pydantic-ai has a `prepare`"),
        (pydantic_ai.Tool(buy, timeout=1), "'buy' of pydantic-ai has a timeout"),
    ],
)
def test_a_tool_of_others_that_cannot_be_called_here_gets_a_sentence_at_once(given: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        AsyncAgentSessionManager(tools=[given])


def test_what_a_run_would_have_given_can_be_bound() -> None:
    bound = functools.partial(with_context, pydantic_ai.RunContext[int].__new__(pydantic_ai.RunContext))
    assert list(as_tool(bound).spec.parameters["properties"]) == ["x"]


def test_a_blocking_tool_of_langchain_runs_in_a_thread_of_ours() -> None:
    assert not as_tool(search).callee.is_async
    assert not as_tool(Adder()).callee.is_async
    assert as_tool(AsyncAdder()).callee.is_async
    assert as_tool(StructuredTool.from_function(coroutine=doze)).callee.is_async


FILE = """
from langchain_core.tools import tool
from pydantic_ai import Tool
from ._shared import shared, Base

@tool
def search(query: str) -> str:
    "Search."
    return query

def buy(article: str) -> str:
    "Buy."
    return article

buying = Tool(buy)
base = Base()
"""

SHARED = """
from langchain_core.tools import BaseTool, tool

class Base(BaseTool):
    name: str = "base"
    description: str = "Base."
    def _run(self, x: int) -> int:
        return x

@tool
def shared(query: str) -> str:
    "Shared."
    return query
"""


def test_tools_of_others_in_files_are_tools_and_those_of_neighbours_are_theirs(tmp_path: Path) -> None:
    (tmp_path / "shelf.py").write_text(FILE)
    (tmp_path / "_shared.py").write_text(SHARED)
    (file,) = load_tool_files([tmp_path])
    assert ([each.name for each in file.tools], file.error) == (["search", "buy", "base"], None)


class Every(BaseModel):
    of: Every | Either | str


class Either(BaseModel):
    of: Every | Either | str


def filtered(by: Every | Either) -> str:
    """Filter."""
    return "filtered"


@pytest.mark.parametrize("make", [langchain_tool, pydantic_ai.Tool])
def test_a_union_that_takes_exponential_time_to_read_is_refused(make: Any) -> None:
    with pytest.raises(InvalidInputError, match="exponential time"):
        as_tool(make(filtered))
