"""A holder of the past never writes: random schedules, and planted bugs that are caught."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest

from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.runtime.waiting.guards import Guards
from ai_whisperer.runtime.waiting.lock_book import LockBook
from ai_whisperer.runtime.waiting.locks import Change, Locks
from tests.planted import Caught, search, searched
from tests.simulation.guarded_world import Figures, GuardedWorld

SCHEDULES = int(os.environ.get("WHISPERER_SIMULATION_LOCK_SCHEDULES", "60"))
FIRST = int(os.environ.get("WHISPERER_SIMULATION_LOCK_FIRST_SCHEDULE", "0"))
_SCHEDULES_FOR_A_PLANTED_BUG = 50


def test_in_no_schedule_does_a_holder_of_the_past_write() -> None:
    total = Figures(0, 0, 0)
    for seed in range(FIRST, FIRST + SCHEDULES):
        try:
            figures = GuardedWorld(seed).run()
        except AssertionError as error:
            raise AssertionError(f"schedule {seed}: {error}") from error
        total = Figures(*(sum(pair) for pair in zip(total, figures, strict=True)))
    print(f"locks: {SCHEDULES} schedules from {FIRST}: {total}; every write of a stale holder was refused")
    assert min(total) > SCHEDULES, "too little happened to show anything"


def test_a_schedule_replays_exactly() -> None:
    worlds = [GuardedWorld(3) for _ in range(2)]
    for world in worlds:
        world.run()
    assert worlds[0].attempts == worlds[1].attempts
    assert [note.name for note in worlds[0].log] == [note.name for note in worlds[1].log]


def do_not_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockBook, "check_held", lambda *_: None)


def check_before_the_stall(patch: pytest.MonkeyPatch) -> None:
    """Look at the token, then write when it may be another's by now."""

    def begin(self: Guards, task_id: str, lock: str, token: int) -> int:
        self._check(task_id, lock, token)
        return 0

    patch.setattr(Guards, "begin", begin)
    patch.setattr(Guards, "end", lambda *_, **__: None)


def look_at_the_lock_only(patch: pytest.MonkeyPatch) -> None:
    """Whoever holds the lock may write, with whatever token."""
    patch.setattr(
        LockBook, "check_held", lambda self, task_id, name, token: None if self.of_task(task_id, name) else token
    )


def begin_tokens_anew(patch: pytest.MonkeyPatch) -> None:
    """Forget over a restart which tokens were given."""
    restore = Locks.restore

    def restore_and_forget(self: Locks, locks: Iterable[LockRecord]) -> None:
        restore(self, locks)
        self._last_token = 0

    patch.setattr(Locks, "restore", restore_and_forget)


def break_in_the_middle(patch: pytest.MonkeyPatch) -> None:
    """Let a person break a lock while a guarded block uses it."""

    when_unused = Locks.when_unused

    async def at_once(self: Locks, name: str, change: Change, *, cause: str) -> LockRecord:
        with pytest.MonkeyPatch.context() as now:
            now.setattr(self.guards, "when_done", lambda *_: False)
            return await when_unused(self, name, change, cause=cause)

    patch.setattr(Locks, "when_unused", at_once)


def _failure_of(seed: int) -> str | None:
    try:
        GuardedWorld(seed).run()
    except AssertionError as failure:
        return str(failure).partition("\n")[0] or "a promise was broken"
    return None


@pytest.mark.planted("locks with tokens", unit="schedule")
@pytest.mark.parametrize(
    "plant",
    [do_not_check, check_before_the_stall, look_at_the_lock_only, begin_tokens_anew, break_in_the_middle],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_bug_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, caught: Caught
) -> None:
    plant(monkeypatch)
    assert search(searched(_SCHEDULES_FOR_A_PLANTED_BUG), _failure_of, caught)
