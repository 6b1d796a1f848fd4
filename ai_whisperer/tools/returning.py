"""What a tool returns becomes the text that its model reads."""

from __future__ import annotations

import dataclasses
import json
from pathlib import PurePath
from typing import Any

import msgspec

from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.errors import ToolError

_MANY_VALUES = 50_000
"""So many are written within a few milliseconds, in one go."""

_BINARY = (bytes, bytearray, memoryview)


def is_large(result: Any) -> bool:
    """Whether it takes long to write the result as text. Not more is looked at than is needed to tell."""
    if isinstance(result, str):
        return False
    left = _MANY_VALUES
    unseen = [result]
    while unseen:
        each = unseen.pop()
        if isinstance(each, dict):
            inside: Any = each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            inside = each
        elif _is_model(each):
            inside = vars(each).values()
        elif isinstance(each, ToolResult) or not (fields := _fields(each)):
            continue
        else:
            inside = fields.values()
        left -= len(inside)
        if left < 0:
            return True
        unseen.extend(inside)
    return False


def as_text(name: str, result: Any) -> str:
    """Text as it is, all else as JSON; raises `ToolError` for what is not like JSON.

    A large result is written bit by bit, so that other threads are not held up by it.
    """
    if isinstance(result, str):
        return result
    try:
        if is_large(result):
            written = json.JSONEncoder(
                ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
            ).iterencode(result)
            return "".join([*written])
        plain = msgspec.to_builtins(result, str_keys=True, builtin_types=_BINARY, enc_hook=_dumped)
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"The tool '{name}' has run, but returned something that is not JSON, so its result is lost: {error}. It "
            "should return text, numbers, lists and objects of these."
        ) from error


def _plain(value: Any) -> Any:
    """A value in plain ones, only its outermost part if it has parts."""
    if isinstance(value, _BINARY):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    if isinstance(value, set | frozenset):
        return list(value)
    return _fields(value) or msgspec.to_builtins(value, enc_hook=_dumped)


def _dumped(value: Any) -> Any:
    """A model of pydantic as it writes itself, and a path as text."""
    if isinstance(value, PurePath):
        return str(value)
    if _is_model(value):
        return value.model_dump(mode="json")
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _is_model(value: Any) -> bool:
    return hasattr(type(value), "model_dump")


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, msgspec.Struct):
        return {each.encode_name: getattr(value, each.name) for each in msgspec.structs.fields(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {}
