"""What must be true of a database after a run, whatever happened to the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.steps import StepFinished
from ai_whisperer.domain.tasks import StepKind, TaskState
from tests.cluster.schedule import SESSIONS
from tests.cluster.stage import STEPS
from tests.cluster.users import Follower


class Told(NamedTuple):
    """What those outside know: the tasks that were accepted, the logs that were followed and read at the end.

    `calls` are the model requests, each by its step and when it began, of processes that nobody took for dead;
    `witnessed` are the steps of those of all processes. `held` is how many sessions each node takes to be its own.
    """

    accepted: Mapping[str, str]
    followers: Sequence[Follower]
    logs: Mapping[str, Sequence[Notification]]
    calls: Sequence[tuple[str, float]]
    witnessed: Set[str]
    held: Mapping[str, int]


def calls_in(file: Path, *, without: Set[int]) -> list[tuple[str, float]]:
    """The model requests that a witness wrote down, but for those of the processes that others took for dead.

    What such a one does outside before it notices is not promised.
    """
    lines = (line.split() for line in file.read_text().splitlines())
    return [(step, float(at)) for step, at, process in lines if int(process) not in without]


class Found(NamedTuple):
    """What is in the database."""

    states: Mapping[str, str]
    mails: Mapping[str, int]
    logs: Mapping[str, Sequence[tuple[int, int]]]
    placements: Sequence[tuple[str, str | None, str | None]]

    @property
    def is_over(self) -> bool:
        return all(TaskState(state).ended for state in self.states.values())

    @classmethod
    async def at(cls, address: str) -> Found:
        connection = await asyncpg.connect(address, server_settings={"search_path": "whisperer"})
        try:

            async def rows(sql: str) -> list[Any]:
                return [tuple(row) for row in await connection.fetch(sql)]

            logs: dict[str, list[tuple[int, int]]] = {session_id: [] for session_id in SESSIONS}
            for session_id, seq, epoch in await rows("SELECT session_id, seq, epoch FROM notification ORDER BY 1, 2"):
                logs[session_id].append((seq, epoch))
            placed = "SELECT session_id, writer_id, host.name FROM placement LEFT JOIN host ON host.id=writer_id"
            return cls(
                states=dict(await rows("SELECT id, state FROM task")),
                mails=dict(await rows("SELECT subject, count(*) FROM mail GROUP BY 1")),
                logs=logs,
                placements=await rows(placed),
            )
        finally:
            await connection.close()


def findings_in(found: Found, told: Told) -> Iterator[str]:
    """What is not as it must be."""
    yield from _wrong_with_tasks(found, told)
    yield from _wrong_with_requests(told)
    yield from _wrong_with_logs(found, told)
    for session_id, writer_id, node in found.placements:
        if writer_id is not None and node is None:
            yield f"{session_id} is at a node that is gone"
    yield from wrong_with_places(found, told.held)


def wrong_with_places(found: Found, held: Mapping[str, int]) -> Iterator[str]:
    """Nodes that take other sessions to be theirs than are placed there: while one is on its way, that may be."""
    placed = Counter(node for _, _, node in found.placements)
    for name, count in held.items():
        if placed[name] != count:
            yield f"node {name} takes {count} sessions to be its own, and has {placed[name]}"


def _wrong_with_tasks(found: Found, told: Told) -> Iterator[str]:
    for task_id in told.accepted:
        state = found.states.get(task_id)
        if state != TaskState.COMPLETED:
            yield f"{task_id} was accepted and is {'lost' if state is None else state}"
        mails = found.mails.get(f"a step of work {task_id}", 0)
        if mails != STEPS:
            yield f"{task_id} has sent {mails} mails, not {STEPS}"


def _wrong_with_requests(told: Told) -> Iterator[str]:
    finished: dict[str, float] = {}
    for note in (each for log in told.logs.values() for each in log if each.name == StepFinished.wire_name):
        if note.params["kind"] == StepKind.MODEL:
            step = note.params["stepId"]
            if step in finished:
                yield f"the model request {step} was finished twice"
            finished.setdefault(step, note.at)
    asked: set[str] = set()
    for step, began_at in sorted(told.calls, key=lambda call: call[1]):
        if step in asked and began_at > finished.get(step, began_at):
            yield f"the model was asked again for {step}, which was finished"
        asked.add(step)
    if told.accepted and not told.witnessed & finished.keys():  # all may be of one that was taken for dead at the end
        yield "the witness has seen no model request"


def _wrong_with_logs(found: Found, told: Told) -> Iterator[str]:
    for session_id, log in found.logs.items():
        if [seq for seq, _ in log] != list(range(1, len(log) + 1)):
            yield f"the log of {session_id} has a gap"
        epochs = [epoch for _, epoch in log]
        if epochs != sorted(epochs):
            yield f"a stale writer wrote to {session_id}"
        if [note.seq for note in told.logs[session_id]] != [seq for seq, _ in log]:
            yield f"the log of {session_id} is told with other numbers than the database has"
    for follower in told.followers:
        notes, seen = told.logs[follower.session_id], follower.notes
        if seen != notes[: len(seen)]:  # nobody followed what was told after they had seen everything
            numbers = [note.seq for note in seen]
            first = next(
                (at for at, (one, other) in enumerate(zip(seen, notes, strict=False)) if one != other), len(notes)
            )
            yield (
                f"{follower.session_id} was told otherwise at {follower.node} than it is: from number {first + 1} of "
                f"{len(notes)}, where it was {numbers[first : first + 5]}"
            )
