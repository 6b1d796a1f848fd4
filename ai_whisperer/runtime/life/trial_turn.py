"""Whose turn it is to try a suspect, among the sessions of one process."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class TrialTurn:
    """One session at a time has the turn, in the order in which they asked: a death at a trial is about one task then.

    It is kept while a suspect is held back: else two deadly tasks of two sessions would clear each other for ever.
    """

    __slots__ = ("_holder", "_line")

    def __init__(self) -> None:
        self._holder: Hashable | None = None
        self._line: dict[Hashable, Callable[[], None]] = {}

    def take(self, who: Hashable, go_on: Callable[[], None]) -> bool:
        """Whether the session has the turn now. If not, `go_on` is called when it has."""
        if self._holder is None or self._holder is who:
            self._holder = who
            return True
        self._line[who] = go_on
        return False

    def give_back(self, who: Hashable) -> None:
        """Let the next one have the turn, if the session has it; it does not wait for it either any more."""
        self._line.pop(who, None)
        if self._holder is who:
            self._holder = next(iter(self._line), None)
            if self._holder is not None:
                self._line.pop(self._holder)()
