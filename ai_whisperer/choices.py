"""What there is to choose from where only a few values or names are known, and which of them was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

_TELLING_LETTERS = 5
"""A name that begins with so many letters of another is probably meant by them."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that begins like it, as `max_steps_per_task` does for `max_steps`, else one with nearly the same
    letters; None if there is none."""
    names = list(known)
    begun = [each for each in names if each.startswith(f"{name}_")]
    begun = begun or [each for each in names if len(name) >= _TELLING_LETTERS and each.startswith(name)]
    return next(iter(begun or difflib.get_close_matches(name, names, n=1)), None)


def choices_of(kind: Any) -> list[str]:
    """The values of a kind that has a list of them; empty for all others."""
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    return [str(each.value) for each in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


def valid_values(error: Exception, kind: type[msgspec.Struct]) -> str:
    """What the field may be that msgspec complains about, as a sentence after the complaint; empty if it is no choice.

    `kind` is the record that was being read.
    """
    found = re.search(r"at `\$(.*)`", str(error))
    kinds: list[Any] = [kind]
    for name in re.findall(r"\.(\w+)|\[[^\]]*\]", found[1] if found else ""):
        inside = [_inside(each, name) for each in kinds]
        kinds = [option for each in inside if each is not None for option in _options(each)]
    choices = [choice for each in kinds for choice in choices_of(each)]
    return f" Valid values: {', '.join(choices)}." if choices else ""


def _options(kind: Any) -> list[Any]:
    """The kinds that a value may have, without what is said about them."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [option for each in get_args(kind) for option in _options(each)]
    return [kind]


def _inside(kind: Any, name: str) -> Any:
    """What a record has under that name, or what a list or a mapping holds if there is no name; None for all else."""
    if name:
        is_record = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        fields = msgspec.structs.fields(kind) if is_record else ()
        return next((field.type for field in fields if field.encode_name == name), None)
    held = [each for each in get_args(kind) if each is not Ellipsis]
    return held[-1] if get_origin(kind) in (tuple, list, dict, Mapping) and held else None
