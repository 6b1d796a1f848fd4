"""Who was told what before the power was cut; and whether all of it is there when it is back."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ai_whisperer.domain.note import Note
from ai_whisperer.store.sqlite import SqliteStore
from tests.simulation.world import World

_SESSION = "default"
_OF_THE_PROCESS = ("_touched",)
"""What of the world ends with the process."""


class Witness:
    """Stands outside: hears each notification as it is published, and knows what the world has seen and was told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told: list[tuple[int, float]] = []
        self.finished: set[str] = set()
        self.others: dict[str, str] = {}
        """What must be known of other sessions: each is there, or gone, or may be either."""
        self._at_the_cut: dict[str, Any] | None = None
        self._told_before = 0
        self._of_own_at_the_cut: tuple[set[str], dict[str, str]] = (set(), {})

    def hear(self, notes: Sequence[Note]) -> None:
        for note in notes:
            if note.session_id == _SESSION:
                self.told.append((note.seq, note.at))
                if note.name == "step.finished" and (params := note.read().params)["state"] != "failed":
                    self.finished.add(params["stepId"])  # one that failed may be tried again, with its task

    def close_eyes(self) -> None:
        """What is said and done from now on is said and done by nobody: it is forgotten when eyes are opened."""
        self._told_before = len(self.told)
        self._at_the_cut = copy.deepcopy(
            {name: value for name, value in vars(self.world).items() if name not in _OF_THE_PROCESS}
        )
        self._of_own_at_the_cut = (set(self.finished), dict(self.others))

    def open_eyes(self) -> None:
        if self._at_the_cut is not None:
            del self.told[self._told_before :]
            self.finished, self.others = self._of_own_at_the_cut
            vars(self.world).update(self._at_the_cut)
            self._at_the_cut = None

    def look_into(self, store: SqliteStore) -> None:
        """Raises `AssertionError` if something is damaged, missing, other than it was told, or not in order."""
        find = store._reading.execute
        assert list(find("PRAGMA integrity_check")) == [("ok",)], "the database is damaged"
        log = list(find("SELECT seq, at FROM notification WHERE session_id=? ORDER BY seq", (_SESSION,)))
        assert [seq for seq, _ in log] == list(range(1, len(log) + 1)), "the log has a gap"
        numbers = [seq for seq, _ in self.told]
        assert numbers == sorted(set(numbers)), "a notification was told twice, or after a later one"
        assert set(self.told) <= set(log), _what_is_lost(self.told, dict(log))
        steps = dict(find("SELECT task_id || '.' || number, state FROM step WHERE session_id=?", (_SESSION,)))
        world = self.world
        begun = {*world.asked, *world.effects, *world.repeatable_effects}
        assert begun <= steps.keys(), f"something was done that is not in the journal: {_some(begun - steps.keys())}"
        undone = {step_id for step_id in self.finished if steps.get(step_id, "started") == "started"}
        assert not undone, f"a step whose end was told has none: {_some(undone)}"
        agents = {row[0] for row in find("SELECT session_id FROM agent")}
        for name, state in self.others.items():
            assert state == "anything" or (name in agents) is (state == "there"), f"{name} should be {state}"
        for name, accepted in (("task", world.accepted_tasks), ("mail", world.accepted_mails)):
            there = {row[0] for row in find(f"SELECT id FROM {name} WHERE session_id=?", (_SESSION,))}  # noqa: S608 - our names
            assert accepted <= there, f"an accepted {name} is lost: {_some(accepted - there)}"


def _what_is_lost(told: list[tuple[int, float]], log: dict[int, float]) -> str:
    others = [seq for seq, at in told if log.get(seq, at) != at]
    if others:
        return f"notification {others[0]} is another than the one that was told"
    return f"{sum(seq not in log for seq, _ in told)} of {len(told)} notifications that were told are lost"


def _some(ids: set[str]) -> str:
    return ", ".join(sorted(ids)[:3])
