"""The tools that an MCP server says it has. It may say anything: what cannot be offered to models is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from ai_whisperer.core.text import mended
from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.tools.mcp.names import exposed_name, exposed_names
from ai_whisperer.tools.mcp.resources import resource_specs

MAX_TOOLS = 500
_MAX_ENTRIES = 2 * MAX_TOOLS
_MAX_DESCRIPTION = 4_000
_MAX_SCHEMA_BYTES = 64 << 10
_MAX_LISTING_BYTES = 1 << 20
_MAX_NAME = 200
_MAX_PROBLEMS = 20


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server: `remote` is what the server calls it, `hints` what it says about its effects.

    One that `is_ours` lists or reads resources: the server has no such tool.
    """

    remote: str
    spec: ToolSpec
    hints: tuple[str, ...] = ()
    is_ours: bool = False


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a server by the names that models use, and in words what was left out and why."""

    tools: Mapping[str, ListedTool]
    problems: tuple[str, ...] = ()


def listing_of(server: str, raw: Iterable[Any], *, has_resources: bool = False) -> Listing:
    """What of the raw entries can be offered to models, and what lists and reads the server's resources, if it has any.

    A tool of the server that has the name of one of these takes its place.
    """
    problems: list[str] = []
    sound: dict[str, Mapping[str, Any]] = {}
    size = 0
    for number, entry in enumerate(islice(raw, _MAX_ENTRIES)):
        name, problem = _checked(entry, number)
        if problem is None and name in sound:
            problem = f"the tool {name!r} is there twice."
        if problem is None and len(sound) >= MAX_TOOLS:
            problem = f"the tool {name!r} is over the limit of {MAX_TOOLS} tools."
        if problem is None:
            size += _size_of(entry)
            if size > _MAX_LISTING_BYTES:
                problem = (
                    f"the tool {name!r} is left out: the descriptions have more than {_MAX_LISTING_BYTES:,} bytes."
                )
        if problem is None:
            sound[name] = entry
        elif len(problems) < _MAX_PROBLEMS:
            problems.append(problem)
    tools = {exposed: _listed(exposed, sound[remote]) for exposed, remote in exposed_names(server, sound).items()}
    if has_resources:
        for does, spec in resource_specs(server, partial(exposed_name, server)).items():
            tools.setdefault(spec.name, ListedTool(remote=does, spec=spec, is_ours=True))
    return Listing(tools=tools, problems=tuple(problems))


def _checked(entry: Any, number: int) -> tuple[str, str | None]:
    """The name of the tool, and why it cannot be offered."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str) or not name or len(name) > _MAX_NAME:
        return "", f"tool {number + 1} has no name that can be used."
    schema = entry.get("inputSchema")
    problem = _schema_problem(schema)
    return name, None if problem is None else f"the tool {name!r} is left out: {problem}"


def _schema_problem(schema: Any) -> str | None:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "its inputSchema is not that of an object."
    if not isinstance(schema.get("properties", {}), Mapping):
        return "the properties of its inputSchema are no object."
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        return "what its inputSchema requires is no list of names."
    if _size_of(schema) > _MAX_SCHEMA_BYTES:
        return f"its inputSchema has more than {_MAX_SCHEMA_BYTES:,} bytes, or is nested too deep."
    return None


def _size_of(data: Any) -> int:
    try:
        return len(msgspec.json.encode(data))
    except (TypeError, ValueError, RecursionError):
        return _MAX_LISTING_BYTES + 1


def _listed(exposed: str, entry: Mapping[str, Any]) -> ListedTool:
    schema = {key: value for key, value in entry["inputSchema"].items() if key != "$schema"}
    schema.setdefault("properties", {})
    return ListedTool(
        remote=entry["name"],
        spec=ToolSpec(name=exposed, description=_description(entry), parameters=schema, untrusted=True),
        hints=tuple(_hints(entry.get("annotations"))),
    )


def _description(entry: Mapping[str, Any]) -> str:
    for key in ("description", "title", "name"):
        text = entry.get(key)
        if isinstance(text, str) and text.strip():
            text = mended(text.strip())
            return text if len(text) <= _MAX_DESCRIPTION else f"{text[:_MAX_DESCRIPTION]}…"
    return ""


def _hints(annotations: Any) -> Iterator[str]:
    if isinstance(annotations, Mapping):
        for key, word in (("readOnlyHint", "read-only"), ("idempotentHint", "idempotent")):
            if annotations.get(key) is True:
                yield word
