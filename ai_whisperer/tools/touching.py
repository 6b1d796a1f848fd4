"""What a tool call touches: `read NAME` or `write NAME`, where the name may hold arguments, as in `write file:{path}`.

A name that begins with `file:` is a path in the folders of the agent, and means the same file for all agents. Other
names mean the same thing within a session.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.waits import Touch
from ai_whisperer.errors import InvalidInputError, ToolError
from ai_whisperer.tools.workplace import FILE, Workplace

Touches = str | Iterable[str] | Callable[[Mapping[str, Any]], Iterable[str]]
"""One statement, several, or a function from the arguments of a call to them."""


_ARGUMENT_FIRST = re.compile(r"\s*\{")
"""Whether it reads or writes may be an argument too: that is seen when it is called."""

_EXPECTED = (
    "touches must say 'read NAME' or 'write NAME', such as 'write file:{path}', or be several of these, or a plain "
    "function that takes the arguments of a call as a mapping and returns them"
)


def check_touches(stated: Any) -> Touches:
    """What was stated, in a form that can be gone over often; raises `InvalidInputError` if it makes no sense."""
    if stated == ():
        return ()  # nothing, as most tools state
    if callable(stated):
        if inspect.iscoroutinefunction(stated):
            raise InvalidInputError(f"{_EXPECTED}; an async one cannot be asked.")
        return cast("Touches", stated)
    if not isinstance(stated, Iterable) or isinstance(stated, Mapping | bytes):
        raise InvalidInputError(f"{_EXPECTED}; not {stated!r}.")
    each = (stated,) if isinstance(stated, str) else tuple(stated)
    for one in each:
        if not isinstance(one, str) or (_split(one) is None and not _ARGUMENT_FIRST.match(one)):
            raise InvalidInputError(f"{_EXPECTED}; not {one!r}.")
    return stated if isinstance(stated, str) else each


def touches_of(stated: Touches, arguments: Mapping[str, Any], workplace: Workplace) -> tuple[Touch, ...]:
    """What a call with these arguments touches, each thing once; raises `ToolError` if that cannot be told."""
    found: dict[str, Access] = {}
    for statement in _statements(stated, arguments):
        said = _split(statement) if isinstance(statement, str) else None
        if said is None:
            raise ToolError(f"A tool says that it touches {statement!r}. It must say 'read NAME' or 'write NAME'.")
        access, name = said
        resource = workplace.place(name.removeprefix(FILE)).resource if name.startswith(FILE) else name
        found[resource] = Access.WRITE if Access.WRITE in (access, found.get(resource)) else Access.READ
    return tuple(Touch(resource=name, access=found[name]) for name in sorted(found))


def _split(statement: str) -> tuple[str, str] | None:
    access, _, name = statement.strip().partition(" ")
    return (access, name.strip()) if access in tuple(Access) and name.strip() else None


def _statements(stated: Touches, arguments: Mapping[str, Any]) -> Iterable[Any]:
    if callable(stated):
        try:
            told = stated(arguments)
            return (told,) if isinstance(told, str) else tuple(told)
        except (Exception, SystemExit) as error:
            raise ToolError(f"What the tool touches cannot be determined: {type(error).__name__}: {error}") from error
    each = (stated,) if isinstance(stated, str) else stated
    return [_filled(one, arguments) for one in each]


def _filled(statement: str, arguments: Mapping[str, Any]) -> str:
    try:
        return statement.format_map(arguments)
    except Exception as error:  # `{x[0]}` and `{x.y}` run code of whatever the argument is
        raise ToolError(f"A tool says that it touches {statement!r}, but has no such argument: {error}.") from error
