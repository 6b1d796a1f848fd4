"""How records look on the wire: keys in camelCase, ids called by what they identify.

Definitions of agents and schedules are written by people, in templates too, and keep their keys.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import FieldInfo, fields

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.schedules import ScheduleDefinition

_AS_WRITTEN: tuple[type, ...] = (AgentDefinition, ScheduleDefinition)


class _Naming(NamedTuple):
    """How the types and the keys of records are called on the wire."""

    prefix: str
    key: Callable[[type[msgspec.Struct], FieldInfo], str]


def wire_type(kind: Any) -> Any:
    """The type that a value of this type is sent as. Values go to and fro by `msgspec.convert` from attributes."""
    return _wire(kind, _CAMEL)


def guide_type(kind: Any) -> Any:
    """The same, with keys as they are in Python: as the user guide has them in the states of agents."""
    return _wire(kind, _AS_IN_PYTHON)


@cache
def _wire(kind: Any, naming: _Naming) -> Any:
    origin = get_origin(kind)
    if origin is not None:
        return _wire_generic(origin, get_args(kind), naming)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in _AS_WRITTEN:
        return _wire_struct(kind, naming)
    return kind


def _wire_generic(origin: Any, arguments: tuple[Any, ...], naming: _Naming) -> Any:
    inner = tuple(_wire(each, naming) for each in arguments)
    if origin in (Union, types.UnionType):
        return Union[inner]  # noqa: UP007 - the members are only known here
    if origin is Mapping:
        origin = dict
    return origin[inner]


def _wire_struct(kind: type[msgspec.Struct], naming: _Naming) -> type[msgspec.Struct]:
    hints = get_type_hints(kind, include_extras=True)
    return msgspec.defstruct(
        naming.prefix + kind.__name__,
        [(field.name, _wire(hints[field.name], naming), _field_of(kind, field, naming)) for field in fields(kind)],
        namespace={"__doc__": _doc_of(kind, naming)},
        module=kind.__module__,
        frozen=True,
        kw_only=True,
        gc=False,
    )


def _doc_of(kind: type[msgspec.Struct], naming: _Naming) -> str | None:
    """The docstring with its fields called as they are on the wire."""
    if kind.__doc__ is None:
        return None
    keys = {field.name: naming.key(kind, field) for field in fields(kind)}
    return re.sub(
        r"`[^`]+`", lambda code: re.sub(r"\w+", lambda word: keys.get(word[0], word[0]), code[0]), kind.__doc__
    )


def _field_of(kind: type[msgspec.Struct], field: FieldInfo, naming: _Naming) -> Any:
    name = naming.key(kind, field)
    if field.required:
        return msgspec.field(name=name)
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(name=name, default_factory=field.default_factory)
    if isinstance(field.default, msgspec.Struct):
        default = msgspec.convert(field.default, _wire(type(field.default), naming), from_attributes=True)
        return msgspec.field(name=name, default=default)
    return msgspec.field(name=name, default=field.default)


def _camel_key(kind: type[msgspec.Struct], field: FieldInfo) -> str:
    """`agentId` for `agent_id`, and `taskId` for the id of a `TaskRecord`: as params and notifications call it."""
    if field.name == "id":
        word = kind.__name__.removesuffix("Record").removesuffix("Summary")
        return f"{word[:1].lower()}{word[1:]}Id"
    first, *rest = field.encode_name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


_CAMEL = _Naming("", _camel_key)
_AS_IN_PYTHON = _Naming("Guide", lambda _, field: field.name)
