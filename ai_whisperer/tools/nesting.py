"""Arguments that take too long to be read: pydantic tries every member of a union, at every level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import msgspec

from ai_whisperer.errors import InvalidInputError, ToolArgumentsError

MAX_DEPTH = 64
"""So deep may lists and objects be nested that pydantic reads."""

_NESTED = frozenset(("object", "array"))


def check_unions(tool: str, schema: Mapping[str, Any]) -> None:
    """Raise `InvalidInputError` if a union in the schema of a tool's parameters takes exponential time to be read.

    So does one of which two members can hold the union itself, if nothing says which of them is meant: then both are
    tried at each level, and a hundred bytes take a minute.
    """
    for union in _unions_in(schema):
        nested = [each for each in union if _kinds(schema, each) and _holds(schema, each, union)]
        for one, other in combinations(nested, 2):
            if _kinds(schema, one) & _kinds(schema, other):
                names = " and ".join(map(_words, (one, other)))
                raise InvalidInputError(
                    f"The tool '{tool}' has a parameter with a union of {names}, both of which can hold that union "
                    "again. To read it takes exponential time. Say which is meant with a Literal field in each and "
                    "Field(discriminator='…') at the union."
                )


def check_depth(written: str | bytes | msgspec.Raw) -> None:
    """Raise `ToolArgumentsError` if the JSON text is nested deeper than pydantic may be given."""
    raw = written.encode(errors="replace") if isinstance(written, str) else bytes(written)
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    try:
        level = [msgspec.json.decode(raw)]
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return  # whoever reads it says so
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _inside(each)]
    if level:
        raise ToolArgumentsError(f"The arguments are nested deeper than {MAX_DEPTH} levels. Call again with less.")


def _inside(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value


def _unions_in(node: Any) -> Iterator[list[Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("anyOf"), list) and "discriminator" not in node:
            yield node["anyOf"]
        for inner in node.values():
            yield from _unions_in(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _unions_in(inner)


def _holds(schema: Mapping[str, Any], start: Any, union: list[Any]) -> bool:
    """Whether a value of that schema can have one of the union inside."""
    seen: set[int] = set()
    left = [start]
    while left:
        node = left.pop()
        if node is union:
            return True
        if not isinstance(node, dict | list) or id(node) in seen:
            continue
        seen.add(id(node))
        left.extend(_inside(node))
        left.append(_target(schema, node))
    return False


def _kinds(schema: Mapping[str, Any], node: Any, depth: int = 0) -> frozenset[str]:
    """Whether values of that schema can be objects, or arrays."""
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return _NESTED
    target = _target(schema, node)
    if target is not None:
        return _kinds(schema, target, depth + 1)
    for choice in ("anyOf", "oneOf", "allOf"):
        if isinstance(node.get(choice), list):
            return frozenset[str]().union(*(_kinds(schema, each, depth + 1) for each in node[choice]))
    if "const" in node or "enum" in node:
        return frozenset()
    return _NESTED & {node["type"]} if isinstance(node.get("type"), str) else _NESTED


def _target(schema: Mapping[str, Any], node: dict[str, Any] | list[Any]) -> Any:
    """What the node refers to, if it does."""
    reference = node.get("$ref") if isinstance(node, dict) else None
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = schema
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _words(node: Any) -> str:
    return str(node.get("$ref", node.get("type", "another type"))).rpartition("/")[2]
