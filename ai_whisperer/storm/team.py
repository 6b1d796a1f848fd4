"""What a storm is run on: a team, and where one comes from for each universe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from ai_whisperer.errors import StormError
from ai_whisperer.storm.invariants import Invariant
from ai_whisperer.storm.process import Setting, UniverseProcess


class StormTeam(Struct, frozen=True, kw_only=True):
    """A team as one universe has it. `people` do what they do from the beginning to the rest after it.

    `mistakes` are what its file does wrong, noted while the universe runs: then nothing of it counts.
    """

    people: Callable[[UniverseProcess], None]
    setting: Setting
    invariants: Sequence[Invariant] = ()
    mistakes: Sequence[StormError] = ()


class TeamSource(Protocol):
    """Where teams come from: a file, with more invariants from others."""

    @property
    def path(self) -> Path: ...

    @property
    def invariants(self) -> tuple[Path, ...]: ...

    def team(self) -> StormTeam:
        """A team for one universe: nothing that an earlier one did is left in it. Raises `StormError`."""
