"""What a tool call touches: `read NAME` or `write NAME`, where the name may hold arguments, as in `write file:{path}`.

A name that begins with `file:` is a path in the folders of the agent, and means the same file for all agents. Other
names mean the same thing within a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ai_whisperer.coordination import Touch
from ai_whisperer.definition import Access
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.workplace import FILE, Workplace

Touches = str | Iterable[str] | Callable[[Mapping[str, Any]], Iterable[str]]
"""One statement, several, or a function from the arguments of a call to them."""


def touches_of(stated: Touches, arguments: Mapping[str, Any], workplace: Workplace) -> tuple[Touch, ...]:
    """What a call with these arguments touches, each thing once; raises `ToolError` if that cannot be told."""
    found: dict[str, Access] = {}
    for statement in _statements(stated, arguments):
        access, _, name = statement.strip().partition(" ")
        if access not in tuple(Access) or not name.strip():
            raise ToolError(f"A tool says that it touches {statement!r}. It must say 'read NAME' or 'write NAME'.")
        resource = _resource(name.strip(), workplace)
        found[resource] = Access.WRITE if Access.WRITE in (access, found.get(resource)) else Access.READ
    return tuple(Touch(resource=name, access=found[name]) for name in sorted(found))


def _statements(stated: Touches, arguments: Mapping[str, Any]) -> Iterable[str]:
    if callable(stated):
        try:
            return tuple(stated(arguments))
        except Exception as error:
            raise ToolError(f"What the tool touches cannot be told: {type(error).__name__}: {error}") from error
    each = (stated,) if isinstance(stated, str) else stated
    return [_filled(one, arguments) for one in each]


def _filled(statement: str, arguments: Mapping[str, Any]) -> str:
    try:
        return statement.format_map(arguments)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ToolError(f"A tool says that it touches {statement!r}, but has no such argument: {error}.") from error


def _resource(name: str, workplace: Workplace) -> str:
    return workplace.place(name.removeprefix(FILE)).resource if name.startswith(FILE) else name
