"""How notifications are kept: their values without their keys, as MessagePack, beside the number of a shape.

A shape says which notification it is, and how its params are made of the values. Shapes are kept in the database too,
so that a record may change: what was told before is read as it was told. A new one is put beside each unit until one
with it is accepted: those of a unit that is refused go with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.store.shapes import Part, Shape
from ai_whisperer.store.tables import encode

Pack = Callable[[Told, str], bytes]
"""Makes what is kept of what is told, and of its cause."""
Read = Callable[[list[Any]], tuple[str, dict[str, Any]]]
"""Makes the cause and the params of the values that were kept."""

_fields = cache(msgspec.structs.fields)
_decode = msgspec.msgpack.Decoder(list[Any]).decode
_PLAIN = (str, int, float, bool, NoneType)
_SHORT_BYTES = 256
_SHORT_LISTS_BYTES = 96
"""What is longer may take more memory than its length tells, and is looked at as JSON text."""

_MAX_READERS = 1_000
"""Shapes come from databases, which may hold any number of old ones."""


Packer = tuple[int, Pack, int]
"""For the records of a kind: the number of their shape, what makes what is kept of them, and up to which length that is
short. What is short takes no more memory than a few characters for each byte of it.

A plain tuple: one with names takes several times as long to be taken apart, and a task alone tells of fifteen things.
"""


class UnknownShapeError(ValueError):
    """What was kept has a shape that is not known here."""


class Packing:
    """The shapes of a store: those that it has, and those that it will have with the next group."""

    def __init__(self, shapes: Iterable[Shape], *, numbered_by_content: bool = False) -> None:
        """`numbered_by_content`: whoever else makes a shape gives it the same number. Those counted are shorter."""
        self._shapes = {each.number: each for each in shapes}
        self._numbers = {_identity(each): each.number for each in self._shapes.values()}
        self._numbered_by_content = numbered_by_content
        self.packers: dict[type[Told], Packer] = {}
        self._readers: dict[int, Read] = {}
        self.fresh: list[Shape] = []

    def packer(self, kind: type[Told]) -> Packer:
        """How notifications of this kind are packed; it is in `packers` from now on."""
        shape = _shape_of(kind, number=max(self._shapes, default=0) + 1)
        if self._numbered_by_content:
            shape = msgspec.structs.replace(shape, number=_number_by_content(shape))
        number = self._numbers.get(_identity(shape))
        if number is None:
            number = self._numbers[_identity(shape)] = shape.number
            self._shapes[number] = shape
            self.fresh.append(shape)
        pack = _compiled_pack(shape.cause, shape.parts, kind)
        packer = self.packers[kind] = (number, pack, _short_bytes(kind, shape))
        return packer

    def learn(self, shapes: Iterable[Shape]) -> None:
        """Know these shapes, which others may have made, too."""
        for each in shapes:
            self._shapes.setdefault(each.number, each)
            self._numbers.setdefault(_identity(each), each.number)

    def read(self, session_id: str, seq: int, at: float, number: int, packed: bytes) -> Notification:
        """The notification of these values. Raises `ValueError`, or what the decoder raises."""
        reader = self._readers.get(number)
        if reader is None:
            shape = self._shapes.get(number)
            if shape is None:
                raise UnknownShapeError(f"there is no shape {number}")
            reader = self._readers[number] = _reader(shape.cause, shape.parts)
        cause, params = reader(_decode(packed))
        name = self._shapes[number].name
        return Notification(seq=seq, session_id=session_id, name=name, cause=cause, at=at, params=params)


def _identity(shape: Shape) -> tuple[str, str, tuple[Part, ...]]:
    return shape.name, shape.cause, shape.parts


def _number_by_content(shape: Shape) -> int:
    """Above all that were counted, and below what a signed number of 64 bits can be."""
    digest = hashlib.sha256(msgspec.json.encode(_identity(shape))).digest()
    return int.from_bytes(digest[:7], "big") | 1 << 40


def _shape_of(kind: type[Told], *, number: int) -> Shape:
    tasks = (each.encode_name for each in _fields(kind) if each.name == "task_id" and each.type is str)
    return Shape(number, kind.wire_name, next(tasks, ""), _parts_of(kind))


def _short_bytes(kind: type[Told], shape: Shape) -> int:
    if any(part.json for part in shape.parts):
        return 0
    members = [each for field in _fields(kind) for each in _members(field.type)[0]]
    return _SHORT_LISTS_BYTES if any(map(get_origin, members)) else _SHORT_BYTES


@cache
def _parts_of(kind: type) -> tuple[Part, ...]:
    texts: dict[str, str] = {}
    found = []
    for field in _fields(kind):
        members, is_optional = _members(field.type)
        is_boxed = is_optional and NoneType in members
        same = after = ""
        if field.type is str:
            if field.name == "thread_id":
                same = texts.get("task_id") or texts.get("mail_id") or ""
            if field.name == "step_id":
                after = texts.get("task_id", "")
            texts[field.name] = field.encode_name
        nested = members[0] if len(members) == 1 and _is_object(members[0]) else None
        found.append(
            Part(
                key=field.encode_name,
                optional=is_optional,
                boxed=is_boxed,
                same=same,
                after=after,
                json=nested is None and not all(map(_is_known, members)),
                parts=() if nested is None else _parts_of(nested),
            )
        )
    return tuple(found)


def _members(type_: Any) -> tuple[list[Any], bool]:
    """The types of a union, and whether the value may be left out."""
    members = list(get_args(type_)) if get_origin(type_) in (Union, UnionType) else [type_]
    return [each for each in members if each is not UnsetType], UnsetType in members


def _is_object(kind: Any) -> bool:
    """Whether all values of the object are always there, so that they need no keys. What may be anything is JSON in it.

    An object of nothing else is JSON as a whole.
    """
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return False
    config = kind.__struct_config__
    if config.omit_defaults or config.tag is not None or config.array_like:
        return False
    return any(_is_known(member) for field in _fields(kind) for member in _members(field.type)[0])


def _is_known(kind: Any) -> bool:
    """Whether a value is the same after it was kept as MessagePack as after it was kept as JSON."""
    if get_origin(kind) in (list, tuple):
        return all(_is_known(each) for each in get_args(kind) if each is not Ellipsis)
    return kind in _PLAIN or (isinstance(kind, type) and issubclass(kind, Enum))


@cache
def _compiled_pack(cause_key: str, parts: tuple[Part, ...], kind: type) -> Pack:
    """One function with the values in it: a task alone tells of some fifteen things. All stores share it."""
    values = _taken(parts, kind, "it")
    cause = "cause"
    if cause_key:
        cause = f'None if cause == "task:" + {_path("it", kind, cause_key)} else cause'
    names = {"UNSET": UNSET, "encode": msgspec.msgpack.Encoder().encode, "as_json": encode}
    return _evaluated(f"lambda it, cause: encode(({cause}, {values}))", names)


def _path(it: str, kind: type, key: str) -> str:
    return next(f"{it}.{field.name}" for field in _fields(kind) if field.encode_name == key)


def _taken(parts: tuple[Part, ...], kind: type, it: str) -> str:
    """The expressions for the values of the object `it`, each with a comma after it."""
    taken = []
    for part, field in zip(parts, _fields(kind), strict=True):
        path, name = f"{it}.{field.name}", f"{it}_{field.name}"
        value = name if part.optional else path
        if part.parts:
            nested = f"({_taken(part.parts, _members(field.type)[0][0], name)})"
            value = nested if part.optional else f"({name} := {path}) and {nested}"
        elif part.json:
            value = f"as_json({value}).decode()"
        elif part.same:
            value = f"True if {path} == {_path(it, kind, part.same)} else {path}"
        elif part.after:
            before = _path(it, kind, part.after)
            value = f'{name}[len({before}):] if ({name} := {path}).startswith({before} + ".") else ({name},)'
        if part.boxed:
            value = f"({value},)"
        if part.optional:
            value = f"None if ({name} := {path}) is UNSET else {value}"
        taken.append(f"{value}, ")
    return "".join(taken)


@lru_cache(maxsize=_MAX_READERS)
def _reader(cause_key: str, parts: tuple[Part, ...]) -> Read:
    """One function that makes the params; `v0` is the cause, the others are the values in their order."""
    lines = [f"def read(values):\n  {', '.join(_names(parts, 'v'))}, = values"]
    lines += _reading(parts, "v", "params")
    given = "v0"
    if cause_key:
        given = f'"task:" + params[{cause_key!r}] if v0 is None else v0'
    source = "\n  ".join([*lines, f"return {given}, params"])
    names: dict[str, Any] = {"from_json": msgspec.json.decode}
    exec(compile(source, "<shape of a notification>", "exec"), names)  # noqa: S102 - made of keys, as literals
    made: Read = names["read"]
    return made


def _names(parts: tuple[Part, ...], value: str) -> list[str]:
    return [f"{value}{number}" for number in range(len(parts) + 1)]


def _reading(parts: tuple[Part, ...], value: str, into: str) -> list[str]:
    """The lines that put the values into the dict of this name."""
    lines = [f"{into} = {{}}"]
    for number, part in enumerate(parts, 1):
        own, place = f"{value}{number}", f"{into}[{part.key!r}]"
        read = f"{own}[0]" if part.boxed else own
        made = []
        if part.parts:
            made.append(f"{', '.join(_names(part.parts, f'{own}_')[1:])}, = {read}")
            made += [*_reading(part.parts, f"{own}_", f"{into}_{number}"), f"{place} = {into}_{number}"]
        elif part.json:
            made.append(f"{place} = from_json({read})")
        elif part.same:
            made.append(f"{place} = {into}[{part.same!r}] if {read} is True else {read}")
        elif part.after:
            made.append(f"{place} = {into}[{part.after!r}] + {read} if type({read}) is str else {read}[0]")
        else:
            made.append(f"{place} = {read}")
        if part.optional:
            lines.append(f"if {own} is not None:")
            made = [f"  {line}" for line in made]
        lines += made
    return lines


def _evaluated(source: str, names: dict[str, Any]) -> Pack:
    made: Pack = eval(compile(source, "<shape of a notification>", "eval"), names)  # noqa: S307 - made of names of fields
    return made
