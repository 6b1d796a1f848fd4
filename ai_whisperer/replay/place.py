"""Where a script is played: a session, and what can be done to the process that has it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ai_whisperer.errors import ScriptError, StateError
from ai_whisperer.replay.script import Script


class Place(ABC):
    """A session that somebody else has opened, or that is opened here."""

    @property
    @abstractmethod
    def session(self) -> Any:
        """The session: a manager, or a client of a server."""

    @abstractmethod
    def check(self, script: Script) -> None:
        """Raises `ScriptError` if the script needs what cannot be done here."""

    @abstractmethod
    async def crash(self) -> None:
        """Kill the process that has the session."""

    @abstractmethod
    async def restart(self) -> None:
        """Start it again."""


class Given(Place):
    """A session that is open, and stays so."""

    def __init__(self, session: Any) -> None:
        self._session = session

    @property
    def session(self) -> Any:
        return self._session

    def check(self, script: Script) -> None:
        needs = script.crashes
        if needs is not None:
            raise ScriptError(
                f"{script.name}, line {needs.number}: this session is not ours to kill. A script with "
                f"'{needs.written}' is played on a server of its own: leave out the address and the data folder."
            )
        if script.rules is not None or script.tools:
            raise ScriptError(
                f"{script.name}: rules and tools are given to a server when it starts, and this one runs already. "
                "Leave out the address and the data folder."
            )

    async def crash(self) -> None:
        raise StateError("This session is not ours to kill.")

    async def restart(self) -> None:
        raise StateError("This session is not ours to start.")
