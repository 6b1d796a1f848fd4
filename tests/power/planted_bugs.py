"""Bugs that power cuts must show. Each takes a run and spoils it, or something that the run uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import apsw
import pytest

from ai_whisperer.store.group import Group
from ai_whisperer.store.sqlite import committers, opening
from ai_whisperer.store.sqlite.acknowledged import Acknowledged
from ai_whisperer.store.sqlite.committers import ThreadCommitter
from ai_whisperer.store.sqlite.writing import SqliteWriter
from ai_whisperer.testing import power_vfs
from tests.power.lives import PowerLives

Plant = Callable[[pytest.MonkeyPatch], None]


def sync_the_log_at_checkpoints_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PowerLives, "synchronous", "NORMAL")


def sync_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PowerLives, "synchronous", "OFF")


def tell_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    def run(self: Any) -> None:
        while (job := self._jobs.get()) is not None:
            job.done(None)
            self._durable(job.connection, job.before)

    patch.setattr(ThreadCommitter, "_run", run)


def go_on_after_a_commit_that_failed(patch: pytest.MonkeyPatch) -> None:
    """As if a disk that does not take a commit would take it another time."""

    def commit(connection: apsw.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except apsw.Error:
            if not connection.get_autocommit():
                connection.execute("ROLLBACK")

    patch.setattr(committers, "_commit", commit)


def keep_a_rollback_journal(patch: pytest.MonkeyPatch) -> None:
    """SQLite's ordinary journal, whose deletion is the commit and is not synced."""
    patch.setattr(opening, "_log_writes_ahead", lambda *_: None)


def note_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """What was acknowledged is noted before it is on disk: a cut between the two is taken for a loss."""
    commit = SqliteWriter.commit

    def note_and_commit(self: SqliteWriter, group: Group, loop: Any, done: Any) -> None:
        write = self._write

        def write_and_note(group: Group) -> None:
            write(group)
            self.committed(group, loop)

        patched = pytest.MonkeyPatch()
        with patched.context() as now:
            now.setattr(self, "_write", write_and_note)
            commit(self, group, loop, done)

    patch.setattr(SqliteWriter, "commit", note_and_commit)


def claim_what_is_deleted(patch: pytest.MonkeyPatch) -> None:
    """The note of a session stays while it is deleted."""
    patch.setattr(Acknowledged, "forget", lambda *_: lambda: None)


def forget_to_sync_the_folder_of_the_data(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("ai_whisperer.store.durable_folders.sync_folder", lambda _: None)


def _deaf_to(what: str) -> Plant:
    """A disk that says that it has synced, and has not: the harness itself."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(power_vfs.PowerVFS, "deaf_to_syncs_of", what)

    plant.__name__ = f"a_disk_that_is_deaf_to_syncs_of_the_{what}"
    return plant


class PlantedBug(NamedTuple):
    """A bug, the sign by which it is caught, and the seed at which it showed, where the search begins.

    Whatever changes a run may change these seeds.
    """

    plant: Plant
    sign: str
    shows_at: int = 0


_TOLD_IS_LOST = "notifications that were told are lost"
_ACKNOWLEDGED_IS_LOST = "has lost what was acknowledged"

PLANTED_BUGS = {
    bug.plant.__name__: bug
    for bug in (
        PlantedBug(sync_the_log_at_checkpoints_only, _TOLD_IS_LOST),
        PlantedBug(sync_nothing, _TOLD_IS_LOST),
        PlantedBug(tell_before_the_commit, _TOLD_IS_LOST),
        PlantedBug(go_on_after_a_commit_that_failed, "the log has a gap", 7),
        PlantedBug(keep_a_rollback_journal, _ACKNOWLEDGED_IS_LOST, 1),
        PlantedBug(note_before_the_commit, _ACKNOWLEDGED_IS_LOST),
        PlantedBug(claim_what_is_deleted, _ACKNOWLEDGED_IS_LOST, 3),
        PlantedBug(forget_to_sync_the_folder_of_the_data, _TOLD_IS_LOST),
        PlantedBug(_deaf_to("wal"), "what was acknowledged last in this folder"),
        PlantedBug(_deaf_to("database"), "is damaged or not a database"),
        PlantedBug(_deaf_to("folder"), "its write-ahead log 'whisperer.db-wal' is"),
    )
}
