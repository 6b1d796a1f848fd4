"""Whether fields that a person wrote fit a record: every one of them, nested ones too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Any, NoReturn, Union, get_args, get_origin

import msgspec

from ai_whisperer.choices import choices_of, nearest

Place = tuple[str | int, ...]
"""Where a value is: `("limits", "max_steps_per_task")`, `("schedule", 0, "cron")`."""

Complain = Callable[[Place, str], NoReturn]
"""Raises the error that names the place, in a file with its line."""

_MISFIT = re.compile(r"Expected `([a-z |]+)`, got `([a-z]+)`")
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object with fields",
    "null": "nothing",
    "date": "a date",
    "datetime": "a time",
}
_SHOWN_CHARACTERS = 60


def check_fields(values: Any, kind: type[msgspec.Struct], *, place: Place = (), complain: Complain) -> None:
    """Complain about the first field that the record does not have or whose value does not fit."""
    if not isinstance(values, dict):
        complain(place, f"`{dotted(place)}` must have fields of its own, like '{_fields_of(kind)[0][0]}: …'.")
    known = dict(_fields_of(kind))
    for key, value in values.items():
        inner = (*place, key)
        if key not in known:
            complain(inner, unknown_field(inner, known))
        _check_value(value, known[key], inner, complain)


def unknown_field(place: Place, known: Iterable[str]) -> str:
    """The complaint about a field that nobody knows, with the nearest one that there is."""
    names = list(known)
    near = nearest(str(place[-1]), names)
    hint = f" Did you mean `{near}`?" if near else ""
    return f"unknown field `{dotted(place)}`.{hint} Known fields: {', '.join(names)}."


def dotted(place: Place) -> str:
    """The place as people write it: `schedule[0].cron`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def places_in(message: str) -> list[Place]:
    """The places that a complaint may be about, the likeliest first: the path it begins with, then its words."""
    found = [_place_of(path.group()) for path in re.finditer(r"[a-z_]+(?:\.[a-z_]+|\[\d+\])*", message)]
    return [place[:length] for place in found for length in range(len(place), 0, -1)]


def _place_of(path: str) -> Place:
    parts = re.findall(r"[a-z_]+|\d+", path)
    return tuple(int(part) if part.isdigit() else part for part in parts)


def _check_value(value: Any, kind: Any, place: Place, complain: Complain) -> None:
    items = _items_of(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        check_fields(value, kind, place=place, complain=complain)
    elif items is not None and isinstance(value, list):
        for number, item in enumerate(value):
            _check_value(item, items, (*place, number), complain)
    elif get_origin(kind) is dict and isinstance(value, dict):
        for key, each in value.items():
            _check_value(key, str, (*place, key), complain)
            _check_value(each, get_args(kind)[1], (*place, key), complain)
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            complain(place, f"`{dotted(place)}`{_misfit(value, kind, error)}")


def _misfit(value: Any, kind: Any, error: msgspec.ValidationError) -> str:
    """What is wrong with a value, as it follows on the name of its field, and how to write it where that is clear."""
    choices = choices_of(_unless_none(kind))
    if choices:
        near = nearest(value, choices) if isinstance(value, str) else None
        hint = "" if near is None else f" Did you mean {near}?"
        return f" must be one of {', '.join(choices)}, not {_shown(value)}.{hint}"
    reason = str(error).partition(" - at ")[0]
    found = _MISFIT.fullmatch(reason)
    if found is None or found[2] not in _KINDS:
        return f": {reason}."
    wanted = [kind for kind in found[1].split(" | ") if kind != "null"]
    words = " or ".join(_KINDS.get(kind, kind) for kind in wanted)
    return f" must be {words}, not {_KINDS[found[2]]}.{_correction(value, kind, wanted)}"


def _unless_none(kind: Any) -> Any:
    """What a value is that may be left out."""
    options = (
        [each for each in get_args(kind) if each is not NoneType] if get_origin(kind) in (Union, UnionType) else ()
    )
    return options[0] if len(options) == 1 else kind


def _correction(value: Any, kind: Any, wanted: list[str]) -> str:
    if "str" in wanted:
        return "" if isinstance(value, list | dict | None) else " Put it in quotes."
    if not isinstance(value, str) or len(value) > _SHOWN_CHARACTERS:
        return ""
    if _items_of(kind) is str:
        return f" Write [{', '.join(json.dumps(each.strip(), ensure_ascii=False) for each in value.split(','))}]."
    if "int" in wanted or "float" in wanted:
        is_number = re.fullmatch(r"-?\d+" if "float" not in wanted else r"-?\d+(\.\d+)?", value) is not None
        return f" Write {value}, without quotes." if is_number else ""
    return ""


def _shown(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"


def _items_of(kind: Any) -> Any:
    """What a list of this kind holds; None if it is no list."""
    for option in (kind, *get_args(kind)):
        if get_origin(option) is tuple:
            return get_args(option)[0]
    return None


@cache
def _fields_of(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.encode_name, field.type) for field in msgspec.structs.fields(kind))
