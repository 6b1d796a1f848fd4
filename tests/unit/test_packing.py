"""Notifications are kept without their keys, and read as they were told."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from msgspec import UNSET, UnsetType
from msgspec.structs import fields

from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.domain.notifications.events import EventBroadcast
from ai_whisperer.domain.notifications.steps import StepStarted
from ai_whisperer.domain.tasks import StepKind
from ai_whisperer.protocol.subscriptions import frame_of
from ai_whisperer.store.base import Unit
from ai_whisperer.store.group import Group, Pending
from ai_whisperer.store.packing import Packing, UnknownShapeError
from ai_whisperer.store.shapes import Shape

TASK = "1a1e9ae8b2bc114235c9339f"
VALUES: dict[Any, list[Any]] = {
    str: ["x", "", TASK, "é ☃ \U0001f600", "long " * 100],
    int: [0, -1, 2**40],
    float: [0.0, 1.5, 1794920849.882449],
    bool: [True, False],
    type(None): [None],
    UnsetType: [UNSET],
    Any: [None, {"a": [1, 2.5, None, "ada"]}, "text", 10**30],
}


def values_of(kind: Any) -> list[Any]:
    """Some values of this type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list:
        return [[], values_of(arguments[0])]
    if origin is tuple:
        return [(), tuple(values_of(arguments[0]))]
    if origin is dict:
        return [{}, dict.fromkeys("ab", values_of(arguments[1])[0])]
    if origin is Literal:
        return list(arguments)
    if arguments:
        return [value for each in arguments for value in values_of(each)]
    if kind in VALUES:
        return VALUES[kind]
    if issubclass(kind, Enum):
        return list(kind)
    return list(examples_of(kind))


def examples_of(kind: Any) -> Iterator[Any]:
    """Records of this type: each value of each field is in one of them."""
    choices = {field.name: values_of(field.type) for field in fields(kind)}
    for number in range(max(map(len, choices.values()), default=1)):
        values = {name: some[number % len(some)] for name, some in choices.items()}
        if "step_id" in values:
            values["step_id"] = f"{values['task_id']}.{number}"
        yield kind(**values)


def packed_by(packing: Packing, cause: str, told: Told) -> tuple[int, bytes]:
    number, pack, _ = packing.packer(type(told))
    return number, pack(told, cause)


def kept_and_read(told: Told, *, cause: str) -> tuple[Notification, Notification]:
    """What was told, and what is read of it by a process that has nothing but what was kept."""
    packing = Packing([])
    number, packed = packed_by(packing, cause, told)
    shapes = msgspec.json.decode(msgspec.json.encode(packing.fresh), type=list[Shape])
    written = Note(seq=7, session_id="s", cause=cause, at=1.5, told=told).read()
    return written, Packing(shapes).read("s", 7, 1.5, number, packed)


@pytest.mark.parametrize("kind", NOTIFICATIONS.values(), ids=list(NOTIFICATIONS))
def test_what_is_read_looks_on_the_wire_as_it_was_told(kind: type[Told]) -> None:
    for told, cause in itertools.product(examples_of(kind), (f"task:{TASK}", "user:user")):
        written, read = kept_and_read(told, cause=cause)
        assert frame_of(read) == frame_of(written)
        assert (read.name, read.cause, list(read.params)) == (written.name, written.cause, list(written.params))


def test_what_a_task_tells_of_does_not_repeat_its_id() -> None:
    told = StepStarted(agent_id="ada", task_id=TASK, step_id=f"{TASK}.12", kind=StepKind.MODEL)
    _, packed = packed_by(Packing([]), f"task:{TASK}", told)
    assert packed.count(TASK.encode()) == 1
    assert len(packed) < 50 < len(msgspec.json.encode(told)) / 2


@pytest.mark.parametrize(
    ("task_id", "step_id"),
    [
        (TASK, f"{TASK}~1.3"),
        (TASK, TASK),
        (TASK, ""),
        (TASK, ".3"),
        (TASK, f"{TASK}."),
        (TASK, "x"),
        ("", ".3"),
        ("", "3"),
    ],
)
def test_a_step_id_that_is_not_made_of_the_id_of_its_task_is_read_as_it_was_told(task_id: str, step_id: str) -> None:
    told = StepStarted(agent_id="ada", task_id=task_id, step_id=step_id, kind=StepKind.MODEL)
    written, read = kept_and_read(told, cause="test")
    assert read == written


def test_a_record_that_has_changed_has_a_shape_of_its_own_and_the_old_one_is_still_read() -> None:
    class Before(Told, frozen=True, kw_only=True):
        wire_name = "told"
        agent_id: str
        old: int

    class After(Told, frozen=True, kw_only=True):
        wire_name = "told"
        new: str
        agent_id: str

    first = Packing([])
    before = packed_by(first, "test", Before(agent_id="ada", old=1))
    second = Packing(first.fresh)
    after = packed_by(second, "test", After(agent_id="ada", new="x"))
    assert (before[0], after[0], [shape.number for shape in second.fresh]) == (1, 2, [2])
    third = Packing([*first.fresh, *second.fresh])
    assert third.read("s", 1, 1.0, *before).params == {"agentId": "ada", "old": 1}
    assert third.read("s", 2, 1.0, *after).params == {"new": "x", "agentId": "ada"}
    assert third.packer(After)[0] == 2
    assert third.fresh == []


def test_a_shape_stays_new_until_a_unit_with_it_is_accepted() -> None:
    async def main() -> None:
        told = EventBroadcast(event_id="e", event="x", data=None, sender="ada", woken=0, notified=0)
        pending: list[Pending] = []
        for _ in range(3):
            unit = Unit()
            unit.notes.append(Note("s", "test", 1.0, told))
            pending.append((unit, asyncio.get_running_loop().create_future()))
        group = Group(pending, {}, set(), Packing([]))
        written = []
        for each, is_refused in zip(group.one_by_one(), (True, False, False), strict=True):
            mark = group.mark()
            group.number([each], lambda _: 0)
            written.append([shape.name for shape in group.shapes])
            if is_refused:
                group.refuse(each, ValueError("no"), back_to=mark)
            else:
                group.accept(each)
        assert written == [["event.broadcast"], ["event.broadcast"], []]

    asyncio.run(main())


def test_a_number_without_a_shape_is_not_read() -> None:
    with pytest.raises(ValueError, match="no shape 3"):
        Packing([]).read("s", 1, 1.0, 3, b"\x90")


def test_nodes_that_meet_new_shapes_in_another_order_give_them_the_same_numbers() -> None:
    one, other = Packing([], numbered_by_content=True), Packing([], numbered_by_content=True)
    kinds = list(NOTIFICATIONS.values())
    numbers = {kind: one.packer(kind)[0] for kind in kinds}
    assert {kind: other.packer(kind)[0] for kind in reversed(kinds)} == numbers
    shapes = {(shape.name, shape.cause, shape.parts) for shape in one.fresh}
    assert len({shape.number for shape in one.fresh}) == len(shapes)
    assert all(0 < number < 1 << 63 for number in numbers.values())


def test_a_shape_that_another_node_has_made_is_read_once_it_is_learnt() -> None:
    told = StepStarted(agent_id="ada", task_id=TASK, step_id=f"{TASK}.1", kind=StepKind.MODEL)
    one, other = Packing([], numbered_by_content=True), Packing([], numbered_by_content=True)
    number, packed = packed_by(one, "test", told)
    with pytest.raises(UnknownShapeError):
        other.read("s", 1, 1.0, number, packed)
    other.learn(one.fresh)
    assert other.read("s", 1, 1.0, number, packed).params["agentId"] == "ada"
    other.packer(StepStarted)
    assert other.fresh == []
