"""Functions that are made anew for each agent share what is the same of them: their schema and how they are read."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest

from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.signature import Signature, signature_of


def signature(function: Callable[..., Any]) -> Signature:
    return signature_of(function, "look_up", context=ToolContext)


def made_for(agent: str, lines: Any = 10) -> Callable[..., str]:
    def look_up(page: str, lines: int = lines) -> str:
        """Look a page up."""
        return f"{agent}: {page}, {lines}"

    return look_up


def test_functions_of_one_code_share_their_schema_and_are_called_as_their_own() -> None:
    tools = [Tool(made_for(agent)) for agent in ("ann", "bob")]
    first, second = (tool.spec for tool in tools)
    assert first.parameters is second.parameters
    assert first.description is second.description
    called = [tool.callee.call(tool.function, tool.callee.parse('{"page":"a"}'), None) for tool in tools]
    assert called == ["ann: a, 10", "bob: a, 10"]


def test_tools_of_one_code_and_name_share_what_models_are_told_of_them() -> None:
    ann, bob = (Tool(made_for(agent)) for agent in ("ann", "bob"))
    assert ann.spec is bob.spec
    assert Tool(made_for("ann"), name="find").spec.name == "find"
    assert not ann.spec.untrusted
    assert Tool(made_for("ann"), untrusted=True).spec.untrusted


def test_of_tools_with_made_up_names_not_all_are_kept_in_mind() -> None:
    tools = [Tool(made_for("ann"), name=f"find_{number}") for number in range(200)]
    assert [tool.spec.name for tool in tools] == [tool.name for tool in tools]
    assert 0 < len(signature(made_for("ann")).parameters._told) <= 64


def test_another_default_makes_another_signature_though_it_is_equal() -> None:
    ten, true, one = (signature(made_for("ann", value)) for value in (10, True, 1))
    assert len({id(each) for each in (ten, true, one)}) == 3
    assert true.parameters.parse('{"page":"a"}')["lines"] is True
    assert one.parameters.parse('{"page":"a"}')["lines"] is not True


def test_another_hint_makes_another_signature() -> None:
    def with_choices(*choices: str) -> Callable[..., Any]:
        def pick(one: Any) -> str:
            return str(one)

        pick.__annotations__["one"] = Literal[choices]
        return pick

    schemas = [signature(with_choices(*choices)).parameters.schema for choices in (("a", "b"), ("c",))]
    assert [schema["properties"]["one"]["enum"] for schema in schemas] == [["a", "b"], ["c"]]


def with_module(source: str) -> Callable[[str], Callable[..., Any]]:
    """Makes functions of one code and one module, as a module that is loaded again does, with this line edited."""
    module: dict[str, Any] = {"Literal": Literal}
    exec(f"from __future__ import annotations\ndef made():\n  {source}\n  return pick", module)  # noqa: S102 - the lines of these tests

    def made(edited: str) -> Callable[..., Any]:
        exec(edited, module)  # noqa: S102 - the lines of these tests
        picked: Callable[..., Any] = module["made"]()
        return picked

    return made


@pytest.mark.parametrize("hint", ["Unit", "Unit | None", "list[Unit]"])
def test_a_hint_that_means_something_else_by_now_makes_another_signature(hint: str) -> None:
    made = with_module(f"def pick(one: {hint}): ...")
    meanings = ("Literal['metre']", "Literal['mile']", "int", "str")
    signatures = [signature(made(f"Unit = {meant}")) for meant in meanings]
    assert len({json.dumps(each.parameters.schema) for each in signatures}) == 4
    assert signature(made("Unit = str")) is signatures[-1]


def test_unions_in_another_order_make_another_signature() -> None:
    def with_union(union: Any) -> Callable[..., Any]:
        def pick(one: Any) -> str:
            return str(one)

        pick.__annotations__["one"] = union
        return pick

    first, second, third = (signature(with_union(union)) for union in (int | str, str | int, int | str))
    assert first is third
    assert first is not second


def test_a_hint_without_a_hash_is_shared_with_nobody_but_the_function_itself() -> None:
    def made() -> Callable[..., Any]:
        def pick(one: Any) -> str:
            return str(one)

        pick.__annotations__["one"] = Annotated[int, {"no": "hash"}]
        return pick

    pick = made()
    assert signature(pick) is signature(pick)
    assert signature(pick) is not signature(made())


def test_decorated_functions_are_told_apart_though_their_wrappers_are_of_one_code() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*given: Any, **named: Any) -> Any:
            return function(*given, **named)

        return wrapper

    @logged
    def add(left: int, right: int) -> int:
        return left + right

    @logged
    def shout(text: str) -> str:
        return text.upper()

    assert list(signature(add).parameters.schema["properties"]) == ["left", "right"]
    assert list(signature(shout).parameters.schema["properties"]) == ["text"]


def test_what_nobody_uses_any_more_is_forgotten() -> None:
    from ai_whisperer.tools import signature as module

    def gone(page: str) -> str:
        return page

    held = signature(gone)
    assert held in module._shared.values()
    before = len(module._shared)
    del held
    assert len(module._shared) == before - 1
