"""What the parameters of a tool can be: which types models can give, and what is said of the others at once."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from pydantic import BaseModel, Field

from ai_whisperer import ToolContext, tool
from ai_whisperer.errors import InvalidInputError, ToolArgumentsError
from ai_whisperer.tools.function import CancelSignal, as_tool

CONTEXT = ToolContext(session_id="s", agent_id="ada", task_id="t", step_id="t.1", cancelled=CancelSignal())


@dataclasses.dataclass
class Circle:
    radius: int


@dataclasses.dataclass
class Square:
    side: int


class Color(enum.Enum):
    RED = "red"


class Size(TypedDict, total=False):
    width: int


class Item(BaseModel):
    name: str
    pieces: int = Field(ge=1, description="how many")


class Order(BaseModel):
    items: list[Item]


class And(BaseModel):
    kind: Literal["and"] = "and"
    of: And | Or | str


class Or(BaseModel):
    kind: Literal["or"] = "or"
    of: And | Or | str


class Bag(BaseModel):
    of: Bag | dict[str, Bag] | str


class Chain(BaseModel):
    of: Chain | list[Chain] | str


class All(BaseModel):
    kind: Literal["all"]
    of: Annotated[All | Some, Field(discriminator="kind")] | str


class Some(BaseModel):
    kind: Literal["any"]
    of: Annotated[All | Some, Field(discriminator="kind")] | str


class Address(msgspec.Struct):
    street: str


@pydantic.dataclasses.dataclass
class Even:
    number: Annotated[int, Field(multiple_of=2)]


@dataclasses.dataclass
class Shelf:
    level: Annotated[int, Field(ge=0)]


class Touchy(BaseModel):
    value: int

    @pydantic.field_validator("value")
    @classmethod
    def check(cls, value: int) -> int:
        return {1: 1}[value]


def returned_by(function: Any, arguments: str) -> str:
    return asyncio.run(as_tool(function).call(arguments, CONTEXT)).content


def taking(hint: Any) -> tuple[Callable[..., str], list[Any]]:
    """A function with a parameter of that type, and what it was called with."""
    seen: list[Any] = []

    def take(given: Any) -> str:
        seen.append(given)
        return "taken"

    take.__annotations__["given"] = hint
    return take, seen


@pytest.mark.parametrize(
    ("hint", "written", "value"),
    [
        (Path, '"/tmp"', Path("/tmp")),  # noqa: S108
        (Circle | Square, '{"side": 2}', Square(2)),
        (list[Circle | Square], '[{"radius": 1}, {"side": 2}]', [Circle(1), Square(2)]),
        (list | tuple, "[1, 2]", [1, 2]),
        (Order, '{"items": [{"name": "a", "pieces": 1}]}', Order(items=[Item(name="a", pieces=1)])),
        (dict[str, Item], '{"x": {"name": "a", "pieces": 1}}', {"x": Item(name="a", pieces=1)}),
        (Order | None, "null", None),
        (Annotated[int, Field(ge=0)], "3", 3),
        (Even, '{"number": 4}', Even(4)),
        (Literal["a", "b"], '"b"', "b"),
        (Color, '"red"', Color.RED),
        (Color | str, '"green"', "green"),
        (Size, '{"width": 1}', {"width": 1}),
        (Address, '{"street": "x"}', Address("x")),
        (int | None, "null", None),
    ],
)
def test_a_model_can_give_a_parameter_of_this_type(hint: Any, written: str, value: Any) -> None:
    take, seen = taking(hint)
    assert returned_by(take, f'{{"given": {written}}}') == "taken"
    assert seen == [value]
    assert type(seen[0]) is type(value)
    assert "given" in as_tool(take).spec.parameters["properties"]


@pytest.mark.parametrize(
    ("hint", "written", "told"),
    [
        (Annotated[int, Field(ge=0)], "-1", "greater than or equal to 0 - at `$.given`"),
        (Order, '{"items": [{"name": "a", "pieces": 0}]}', "greater than or equal to 1 - at `$.given.items[0].pieces`"),
        (Order, '{"items": [{"pieces": 1}]}', "Field required - at `$.given.items[0].name`"),
        (Even, '{"number": 3}', "multiple of 2"),
        (list[Shelf], '[{"level": -1}]', "greater than or equal to 0 - at `$.given[0].level`"),
        (Circle | Square, '{"height": 1}', "Field required - at `$.given.Circle.radius`"),
        (Touchy, '{"value": 2}', "The arguments cannot be read: KeyError"),
        (Address, '{"street": 1}', "Expected `str`, got `int` - at `$.given.street`"),
    ],
)
def test_what_does_not_fit_is_told_to_the_model_which_can_correct_it(hint: Any, written: str, told: str) -> None:
    take, seen = taking(hint)
    made = tool(take, idempotent=lambda _: False, needs_approval=lambda _: True, touches="read {given}")
    arguments = f'{{"given": {written}}}'
    with pytest.raises(ToolArgumentsError) as refused:
        asyncio.run(made.call(arguments, CONTEXT))
    assert told in refused.value.message
    assert "Call again" in refused.value.message
    assert seen == []
    assert not made.may_repeat(arguments)
    with pytest.raises(ToolArgumentsError):
        made.wants_approval(arguments)


def test_constraints_and_descriptions_are_in_the_schema_and_definitions_beside_it() -> None:
    def buy(
        order: Order,
        to: Address,
        times: Annotated[int, Field(ge=0, description="how often")] = 1,
        express: int = Field(default=2, le=5),
    ) -> str:
        return f"{order.items[0].name} to {to.street}, {times} times, {express}"

    schema = as_tool(buy).spec.parameters
    assert schema["required"] == ["order", "to"]
    assert schema["properties"]["times"] == {"type": "integer", "minimum": 0, "description": "how often"}
    assert schema["properties"]["express"] == {"type": "integer", "maximum": 5, "default": 2}
    assert schema["properties"]["order"] == {"$ref": "#/$defs/Order"}
    assert set(schema["$defs"]) == {"Order", "Item", "Address"}
    assert schema["$defs"]["Item"]["properties"]["pieces"]["minimum"] == 1
    written = '{"order": {"items": [{"name": "pen", "pieces": 1}]}, "to": {"street": "x"}}'
    assert returned_by(buy, written) == "pen to x, 1 times, 2"


def test_two_classes_of_one_name_are_kept_apart_in_the_schema() -> None:
    theirs = msgspec.defstruct("Item", [("weight", int)])

    def both(one: Any, other: Any) -> str:
        return f"{type(one).__name__} {type(other).__name__}"

    both.__annotations__.update(one=theirs, other=Order)
    schema = as_tool(both).spec.parameters
    of_order = schema["$defs"][schema["properties"]["other"]["$ref"].removeprefix("#/$defs/")]
    of_item = schema["$defs"][of_order["properties"]["items"]["items"]["$ref"].removeprefix("#/$defs/")]
    assert set(of_item["properties"]) == {"name", "pieces"}
    assert set(schema["$defs"][schema["properties"]["one"]["$ref"].removeprefix("#/$defs/")]["properties"]) == {
        "weight"
    }


@pytest.mark.parametrize("hint", [socket.socket, list[socket.socket], Callable[[int], str], Address | Circle, type])
def test_a_type_that_models_cannot_give_is_told_with_tool_parameter_type_and_what_to_use(hint: Any) -> None:
    take, _ = taking(hint)
    with pytest.raises(InvalidInputError, match="The tool 'take' has the parameter 'given' of the type") as refused:
        as_tool(take)
    assert "Use str, int" in refused.value.message
    named = getattr(hint, "__name__", "Address | ") if isinstance(hint, type) else str(hint)
    assert named in refused.value.message


async def add(first: int, second: int = 2, context: ToolContext | None = None) -> str:
    """Add two numbers."""
    return f"{first + second} in {context.step_id if context else None}"


class Counter:
    """Counts."""

    async def __call__(self, step: int) -> str:
        return f"up by {step}"

    def down(self, step: int) -> str:
        """Count down."""
        return f"down by {step}"

    @tool
    def sideways(self, step: int) -> str:
        return f"aside by {step}"


def wrapped(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapper(*given: Any, **named: Any) -> Any:
        return await function(*given, **named)

    return wrapper


@pytest.mark.parametrize(
    ("function", "name", "described", "arguments", "result"),
    [
        (functools.partial(add, second=5), "add", "Add two numbers.", '{"first": 1}', "6 in t.1"),
        (functools.partial(add, 10), "add", "Add two numbers.", '{"second": 1}', "11 in t.1"),
        (functools.partial(Counter().down), "down", "Count down.", '{"step": 1}', "down by 1"),
        (Counter(), "Counter", "Counts.", '{"step": 1}', "up by 1"),
        (Counter().down, "down", "Count down.", '{"step": 1}', "down by 1"),
        (wrapped(add), "add", "Add two numbers.", '{"first": 1}', "3 in t.1"),
        (tool(lambda text: text, name="echo"), "echo", "echo", '{"text": "x"}', "x"),
    ],
)
def test_whatever_can_be_called_by_names_is_a_tool(
    function: Any, name: str, described: str, arguments: str, result: str
) -> None:
    made = as_tool(function)
    assert (made.name, made.spec.description) == (name, described)
    assert set(made.spec.parameters["properties"]) >= set(msgspec.json.decode(arguments))
    assert returned_by(made, arguments) == result


def test_what_a_partial_has_bound_is_not_for_models() -> None:
    connected = functools.partial(lambda query, connection: f"{query} {connection}", connection=socket.AF_INET)
    made = tool(connected, name="ask")
    assert list(made.spec.parameters["properties"]) == ["query"]
    with pytest.raises(ToolArgumentsError):
        made.callee.parse('{"query": "x", "connection": 5}')


def starred(*names: str) -> None: ...


def named(**names: str) -> None: ...


def by_place(name: str, /) -> None: ...


def unknown(name: NoSuchThing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def größe(name: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x, "A lambda has no name"),
        (functools.partial(lambda x: x, 1), "A lambda has no name"),
        (starred, "'starred' cannot have the parameter '\\*names'"),
        (named, "'named' cannot have the parameter '\\*\\*names'"),
        (by_place, "'by_place' cannot have the parameter 'name', which has no name for callers"),
        (unknown, "'unknown' has a type hint that cannot be read: name 'NoSuchThing' is not defined"),
        (größe, "cannot be called 'größe'"),
        (tool(add, name="add two"), "cannot be called 'add two'"),
        (Counter, "'Counter' is a class"),
        (Counter().sideways, "'sideways' is a method without its object"),
        (print, "'print' cannot have the parameter"),
        (7, "7 cannot be a tool"),
    ],
)
def test_what_cannot_be_a_tool_gets_a_sentence_at_once(function: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        as_tool(function)


def test_models_of_pydantic_and_paths_can_be_returned() -> None:
    def bought() -> dict[str, Any]:
        return {"order": Order(items=[Item(name="pen", pieces=1)]), "bill": Path("bill.pdf")}

    assert returned_by(bought, "") == '{"order":{"items":[{"name":"pen","pieces":1}]},"bill":"bill.pdf"}'

    def many() -> list[Item]:
        return [Item(name="pen", pieces=1)] * 60_000

    assert returned_by(many, "").startswith('[{"name":"pen","pieces":1},{"name"')


def test_a_function_that_many_agents_are_given_is_read_once() -> None:
    assert as_tool(add).spec.parameters is as_tool(add).spec.parameters


@pytest.mark.parametrize("hint", [And | Or, And, list[Or], Bag, Chain | Bag, dict[str, And] | None])
def test_a_union_that_takes_exponential_time_to_read_is_refused_when_it_is_provided(hint: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"exponential time.*Field\(discriminator="):
        as_tool(taking(hint)[0])


@pytest.mark.parametrize("hint", [Chain, All | Some, Circle | Square, list[Chain] | Chain])
def test_a_union_that_is_read_in_one_go_is_taken(hint: Any) -> None:
    assert as_tool(taking(hint)[0]).spec.parameters["properties"]["given"]


def test_what_is_nested_too_deeply_for_pydantic_is_told_to_the_model() -> None:
    made = as_tool(taking(Chain)[0])
    deep = '{"of":' * 64 + '"x"' + "}" * 64
    assert made.callee.parse(f'{{"given": {deep}}}')
    with pytest.raises(ToolArgumentsError, match="nested deeper than 64 levels"):
        made.callee.parse(f'{{"given": {{"of": {deep}}}}}')
    with pytest.raises(ToolArgumentsError):
        made.callee.parse('{"given": ' + "[" * 100_000)
