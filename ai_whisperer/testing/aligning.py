"""Which step of a recording a step of this run is, by what caused it.

In a recording the inputs are numbered. A test may get one more without the others becoming others: so here what comes
from outside is called by what it makes, `outside>writer` for the first task of the writer, `outside>writer.2` for its
second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_whisperer.core.causal_paths import ID, Paths
from ai_whisperer.replay.recording.format import Recording

_OUTSIDE = ("user", "request", "input")


class _UnnumberedPaths(Paths):
    """Paths in which inputs have no number. `made` has the ids by path."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, str] = {}

    def cause(self, cause: str) -> str:
        return "outside" if cause.partition(":")[0] in _OUTSIDE else super().cause(cause)

    def _add(self, actual: str, path: str) -> None:
        super()._add(actual, path)
        self.made[self.of(actual)] = actual


class Alignment:
    """Leads from steps and ids of this run to those of a recording, and back. The log of the run is fed in order."""

    def __init__(self, recording: Recording) -> None:
        self._here = _UnnumberedPaths()
        self._recorded_paths, self._recorded_ids = _recorded(recording)
        self._to_recorded: dict[str, str] = {}
        self._to_actual: dict[str, str] = {}

    def feed(self, name: str, cause: str, params: Mapping[str, Any]) -> None:
        """Take the next entry of the log."""
        known = len(self._here.made)
        self._here.feed(name, cause, params)
        for path, actual in list(self._here.made.items())[known:]:
            recorded = self._recorded_ids.get(path)
            if recorded is not None:
                self._to_recorded[actual] = recorded
                self._to_actual[recorded] = actual

    def key(self, step_id: str) -> str | None:
        """The key of a step in the recording; None if its task is not in it."""
        path, _, number = self._here.key(step_id).rpartition("/")
        recorded = self._recorded_paths.get(path)
        return None if recorded is None else f"{recorded}/{number}"

    def place(self, step_id: str) -> str:
        """Where a step is, for people: `writer, task 3`."""
        return self._here.place(step_id)

    def recorded(self, text: str) -> str:
        """The text with the ids of the recording for those of this run."""
        return ID.sub(lambda found: self._to_recorded.get(found[0], found[0]), text)

    def actual(self, text: str) -> str:
        """The other way round."""
        return ID.sub(lambda found: self._to_actual.get(found[0], found[0]), text)


def _recorded(recording: Recording) -> tuple[dict[str, str], dict[str, str]]:
    """By their paths without numbers: the paths that the recording has, and the ids."""
    numbered, here = Paths(), _UnnumberedPaths()
    for entry in recording.entries:
        kind, _, number = entry.cause.partition(":")
        if kind == "input":
            numbered.input = int(number)
        cause = "user:user" if kind == "input" else entry.cause
        numbered.feed(entry.name, cause, entry.params)
        here.feed(entry.name, cause, entry.params)
    return {path: numbered.of(made) for path, made in here.made.items()}, dict(here.made)
