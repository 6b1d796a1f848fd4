"""The OpenRPC document as TypeScript: `python -m ai_whisperer.protocol.typescript > ui/src/client/api.ts`.

With `words` or `limits` as argument, the words for notifications or limits: `words.ts` and `limits.ts` beside it.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from ai_whisperer.domain.limits import LIMIT_WORDS, MAY_BE_ZERO
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.protocol.openrpc import document

_WIDTH = 120
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NOTIFICATION = "Notification"

_HEAD = """\
// Made from the types of the server by `python -m ai_whisperer.protocol.typescript`. Do not edit.
"""
_UNFORMATTED = "// biome-ignore-all format: it is made\n\n"

_TAIL = """\
export type MethodName = keyof Methods;
export type Params<M extends MethodName> = Methods[M]["params"];
export type Result<M extends MethodName> = Methods[M]["result"];

export type NotificationName = keyof Notifications;

/** A notification with that name. `seq` is 0 for what is not kept: the deltas of a stream. */
export interface NotificationOf<N extends NotificationName> {
  seq: number;
  sessionId: string;
  name: N;
  cause: string;
  at: number;
  params: Notifications[N];
}

/** One entry of a session's numbered log; its `name` tells what its `params` are. */
export type Notification = { [N in NotificationName]: NotificationOf<N> }[NotificationName];
"""


def api() -> str:
    """The types of all params, results and notifications."""
    described = document("")
    parts = [
        _HEAD,
        *(
            _declaration(name, schema)
            for name, schema in sorted(described["components"]["schemas"].items())
            if name != _NOTIFICATION  # it is the union of all of them
        ),
        _block("/** Params and result by the name of the method. */\nexport interface Methods {", _methods(described)),
        _block(
            "/** Params by the name of the notification. */\nexport interface Notifications {",
            _notifications(described["x-notifications"]),
        ),
        _TAIL,
    ]
    return "\n".join(parts)


def words() -> str:
    """What each notification says, as a template, which `core.telling` explains."""
    templates = {name: f"{kind.who} {kind.words}" for name, kind in NOTIFICATIONS.items()}
    return _HEAD + _UNFORMATTED + _constant("WORDS", "Readonly<Record<string, string>>", templates)


def limits() -> str:
    """What each limit is called and what happens when it is reached, in groups, and which of them may be 0."""
    groups = _constant("LIMITS", "Readonly<Record<string, Readonly<Record<string, [string, string]>>>>", LIMIT_WORDS)
    return _HEAD + _UNFORMATTED + groups + _constant("MAY_BE_ZERO", "readonly string[]", MAY_BE_ZERO)


FILES = {"api": api, "words": words, "limits": limits}
"""The files of `ui/src/client` that are made, by name."""


def _constant(name: str, kind: str, value: object) -> str:
    return f"export const {name}: {kind} = {json.dumps(value, indent=2)};\n"


def _methods(described: dict[str, Any]) -> Iterator[str]:
    for method in described["methods"]:
        yield _comment(" ".join(filter(None, (method["summary"], method.get("description")))), depth=1)
        params = list(_members(_properties(method["params"]), depth=3))
        yield f"  {json.dumps(method['name'])}: {{\n"
        yield _block("    params: {", params, depth=2) if params else "    params: Record<string, never>;\n"
        yield f"    result: {type_of(method['result']['schema'])};\n  }};\n"


def _notifications(described: list[dict[str, Any]]) -> Iterator[str]:
    for told in described:
        yield _comment(told["summary"], depth=1)
        yield _block(f"  {json.dumps(told['name'])}: {{", _members(_properties(told["params"]), depth=2), depth=1)


def _properties(descriptors: list[dict[str, Any]]) -> dict[str, Any]:
    """Content descriptors as the object that they stand for."""
    return {
        "properties": {
            each["name"]: {**each["schema"], "description": each.get("description")} for each in descriptors
        },
        "required": [each["name"] for each in descriptors if each["required"]],
    }


def _declaration(name: str, schema: dict[str, Any]) -> str:
    comment = _comment(schema["description"]) if "description" in schema else ""
    if "properties" in schema:
        return comment + _block(f"export interface {name} {{", _members(schema, depth=1))
    line = f"export type {name} = {type_of(schema)};\n"
    if len(line) > _WIDTH:
        line = f"export type {name} =\n" + "\n".join(f"  | {each}" for each in _alternatives(schema)) + ";\n"
    return comment + line


def _members(schema: dict[str, Any], *, depth: int) -> Iterator[str]:
    for name, each in schema["properties"].items():
        if each.get("description"):
            yield _comment(each["description"], depth=depth)
        mark = "" if name in schema["required"] else "?"
        yield f"{'  ' * depth}{name}{mark}: {type_of(each)};\n"


def type_of(schema: dict[str, Any]) -> str:
    """The type of a value; raises `TypeError` for what no type of ours has had so far."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema or "enum" in schema:
        return " | ".join(_alternatives(schema))
    match schema.get("type"):
        case None:
            return "unknown"
        case "array":
            inner = type_of(schema["items"])
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case "object":
            return f"Record<string, {type_of(schema.get('additionalProperties', {}))}>"
        case scalar if scalar in _SCALARS:
            return _SCALARS[scalar]
    raise TypeError(f"There is no TypeScript for the schema {json.dumps(schema)} yet.")


def _alternatives(schema: dict[str, Any]) -> list[str]:
    if "enum" in schema:
        return [json.dumps(value) for value in schema["enum"]]
    return [type_of(each) for each in schema["anyOf"]]


def _block(head: str, lines: Iterable[str], *, depth: int = 0) -> str:
    inside, end = "".join(lines), ";" if depth else ""
    if not inside:
        return f"{head.removesuffix('{')}Record<string, never>{end}\n"
    return f"{head}\n{inside}{'  ' * depth}}}{end}\n"


def _comment(text: str, *, depth: int = 0) -> str:
    margin = "  " * depth
    text = text.replace("*/", "*\\/")
    if len(margin) + len(text) + len("/**  */") <= _WIDTH:
        return f"{margin}/** {text} */\n"
    lines = textwrap.wrap(text, _WIDTH - len(margin) - len(" * "), break_long_words=False, break_on_hyphens=False)
    return f"{margin}/**\n" + "".join(f"{margin} * {line}\n" for line in lines) + f"{margin} */\n"


if __name__ == "__main__":
    sys.stdout.write(FILES[sys.argv[1] if len(sys.argv) > 1 else "api"]())
