"""What notifications have in common: a name, a sentence, and how they are sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import msgspec

from ai_whisperer.domain.levels import Level

T = TypeVar("T", bound="Told")

REGISTERED: dict[str, type[Told]] = {}
"""Every notification by its name."""


class Told(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What a notification tells, beside `sessionId`, `seq`, `cause` and `at`, which all have.

    On the wire the fields are called in camelCase; one that is `UNSET` is left out, since there is nothing to say.
    """

    wire_name: ClassVar[str]
    level: ClassVar[Level]
    who: ClassVar[str] = "{@agentId}"
    words: ClassVar[str]
    watched: ClassVar[bool]

    def params(self) -> dict[str, Any]:
        """The fields as they are sent."""
        params: dict[str, Any] = msgspec.to_builtins(self)
        return params

    @classmethod
    def sentence(cls) -> str:
        """What it tells of: the first paragraph of its docstring."""
        return " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())


def notification(
    wire_name: str, words: str, *, level: Level = "info", watched: bool = True
) -> Callable[[type[T]], type[T]]:
    """Make the record that follows the notification of this name; in logs it has that level.

    The words tell people what its `who` did, here and on the page: see `core.telling`. What is not `watched` is not
    shown to people who watch on the command line.
    """

    def register(kind: type[T]) -> type[T]:
        if wire_name in REGISTERED:
            raise TypeError(f"{kind.__name__} cannot be '{wire_name}': {REGISTERED[wire_name].__name__} is.")
        kind.wire_name, kind.level = wire_name, level
        kind.words, kind.watched = words, watched
        REGISTERED[wire_name] = kind
        return kind

    return register


class OfAgent(Told, frozen=True, kw_only=True):
    agent_id: str


class OfTask(OfAgent, frozen=True, kw_only=True):
    task_id: str


class OfStep(OfTask, frozen=True, kw_only=True):
    step_id: str
