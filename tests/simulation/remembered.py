"""Everything that a session holds, in memory and in its store, as text that can be compared."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Set
from enum import Enum
from typing import Any
from weakref import WeakSet

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.runtime.agents.parts import Parts

_PLAIN = (str, bytes, int, float, bool, type(None), Enum, msgspec.Struct)
_APART = ("clock_watch", "stalls")
"""What looks at real time and so changes by itself."""


def remembered(manager: AsyncAgentSessionManager) -> list[str]:
    """What the session is: its objects with all that they hold, in the order in which they are reached."""
    return list(_walk(manager))


def stored(manager: AsyncAgentSessionManager) -> list[str]:
    """All rows of the store."""
    connection = manager._session.kernel.store._reading  # type: ignore[attr-defined]
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [f"{table}: {row}" for table in tables for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608


def _walk(root: object) -> Iterator[str]:
    numbers: dict[int, int] = {id(root): 0}
    left: deque[object] = deque([root])
    while left:
        owner = left.popleft()
        for name, value in sorted(_parts(owner), key=lambda part: part[0]):
            yield f"{numbers[id(owner)]} {type(owner).__name__}.{name} = {_told(value, numbers, left)}"


def _told(value: object, numbers: dict[int, int], left: deque[object]) -> str:
    if isinstance(value, _PLAIN) and not isinstance(value, Parts):
        return repr(value)
    if isinstance(value, random.Random):
        return f"Random {hash(value.getstate())}"
    if not _is_ours(value):
        return type(value).__name__
    if id(value) not in numbers:
        numbers[id(value)] = len(numbers)
        left.append(value)
    return f"-> {numbers[id(value)]}"


def _is_ours(value: object) -> bool:
    is_container = isinstance(value, Mapping | Set | list | tuple | deque | WeakSet)
    return is_container or type(value).__module__.startswith("ai_whisperer.")


def _parts(owner: Any) -> Iterator[tuple[str, object]]:
    if isinstance(owner, Mapping):
        yield from ((repr(key), value) for key, value in owner.items())
    elif isinstance(owner, Set | list | tuple | deque | WeakSet):
        yield from ((f"{index:06d}", each) for index, each in enumerate(owner))
    else:
        names = {name for each in type(owner).__mro__ for name in getattr(each, "__slots__", ())}
        names |= set(getattr(owner, "__struct_fields__", ()))
        names |= set(getattr(owner, "__dict__", {}))
        yield from ((name, getattr(owner, name)) for name in names if name not in _APART and hasattr(owner, name))
