"""What a session holds in memory: everything that could grow without anybody noticing."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.runtime.agents.parts import Parts

_CONTAINERS = (dict, list, set, frozenset, tuple, deque, WeakSet)


def residue_of(manager: AsyncAgentSessionManager) -> Counter[str]:
    """How much there is of everything: registries of the session, objects, asyncio tasks and timers, open files."""
    manager._session.kernel.log._recent.clear()  # so many that they are read from memory; all are in the store
    gc.collect()
    found = _registries(manager)
    found += _objects()
    found["asyncio tasks"] = len(asyncio.all_tasks())
    timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    found["timers of the event loop"] = sum(not timer.cancelled() for timer in timers)
    found["open files"] = sum(1 for _ in Path("/dev/fd").iterdir())
    return found


def _registries(root: object) -> Counter[str]:
    """How many elements the containers have that belong to the object or to what it leads to, by owner and name."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    left: list[object] = [root]
    while left:
        owner = left.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        for name, value in _attributes(owner):
            if isinstance(value, _CONTAINERS):
                parts = list(_deep(value))
                sizes[f"{type(owner).__name__}.{name}"] += len(parts)
                left += filter(_is_ours, parts)
            elif _is_ours(value):
                left.append(value)
    return sizes


def _is_ours(value: object) -> bool:
    is_record = isinstance(value, msgspec.Struct) and not isinstance(value, Parts)
    return type(value).__module__.startswith("ai_whisperer.") and not is_record


def _attributes(owner: object) -> Iterator[tuple[str, Any]]:
    names = [name for each in type(owner).__mro__ for name in getattr(each, "__slots__", ())]
    names += getattr(owner, "__struct_fields__", ())
    yield from ((name, getattr(owner, name)) for name in names if hasattr(owner, name))
    yield from getattr(owner, "__dict__", {}).items()


def _deep(container: Any) -> Iterator[object]:
    """The elements of a container and of the containers in it."""
    for part in list(container.values() if isinstance(container, Mapping) else container):
        yield part
        if isinstance(part, _CONTAINERS) and not isinstance(part, tuple):
            yield from _deep(part)


def _objects() -> Counter[str]:
    """How many objects of our classes, and of those of asyncio, anybody still has."""
    modules = ("ai_whisperer", "asyncio", "_asyncio")
    kinds = Counter(type(each) for each in gc.get_objects())
    return Counter(
        {
            f"objects: {kind.__qualname__}": number
            for kind, number in kinds.items()
            if str(kind.__module__).split(".")[0] in modules
        }
    )
