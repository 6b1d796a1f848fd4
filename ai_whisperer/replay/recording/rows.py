"""What is read of a store to record a session: the log, and the rows that it tells of. Nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.errors import RecordingError, UnknownSessionError
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.settings import LOCAL
from ai_whisperer.store.base import SERVER, Store
from ai_whisperer.store.transfer import copy_with_unlisted, export_session

_ALL = 1 << 40
_PAGE = 5_000


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """A session as its store has it: the entries of its log up to `last`, and the records by their ids."""

    session_id: str
    log: list[Notification]
    agents: dict[str, AgentRecord]
    tasks: dict[str, TaskRecord]
    steps: dict[str, StepRecord]
    mails: dict[str, MailRecord]
    events: dict[str, EventRecord]
    messages: dict[str, MessageRecord]
    approvals: dict[str, ApprovalRecord]
    questions: dict[str, QuestionRecord]
    limits: SessionLimits
    server_limits: SessionLimits


async def read_rows(store: Store, session_id: str, *, last: int | None = None) -> Rows:
    """Read a session; raises `RecordingError` if it has no log, or not all of it any more."""
    log = await _log_of(store, session_id, last)
    snapshot = await store.load(session_id)
    named = _ids_in(log)
    tasks = {task.id: task for task in await store.tasks(session_id, limit=_ALL)}
    steps = [step for task_id in named["taskId"] for step in await store.steps(session_id, task_id)]
    return Rows(
        session_id=session_id,
        log=log,
        agents={agent.id: agent for agent in snapshot.agents},
        tasks=tasks,
        steps={step.id: step for step in steps},
        mails={mail.id: mail for each in named["mailId"] if (mail := await store.mail(session_id, each)) is not None},
        events={event.id: event for each in named["eventId"] if (event := await store.event(session_id, each))},
        messages={said.id: said for each in named["messageId"] if (said := await store.message(session_id, each))},
        approvals={each.id: each for each in await store.approvals(session_id, state=None, limit=_ALL)},
        questions={each.id: each for each in await store.questions(session_id, state=None, limit=_ALL)},
        limits=await store.limits(session_id),
        server_limits=await store.limits(SERVER),
    )


async def _log_of(store: Store, session_id: str, last: int | None) -> list[Notification]:
    log: list[Notification] = []
    while page := await store.notifications(session_id, after=log[-1].seq if log else 0, limit=_PAGE):
        log += page
    if not log:
        raise RecordingError(
            f"There is nothing to record of session '{session_id}': no such session, or nothing has happened in it. "
            "`whisperer sessions` shows those of a server."
        )
    if log[0].seq > 1:
        raise RecordingError(
            f"The log of session '{session_id}' begins at {log[0].seq}: what came before was pruned, and a recording "
            "is played from the beginning. Record sessions before they are pruned."
        )
    if last is not None and last < log[-1].seq:
        while last < len(log) and (log[last].cause, log[last].at) == (log[last - 1].cause, log[last - 1].at):
            last += 1  # one decision is recorded as a whole
        del log[last:]
    for note in log:
        if note.name == "log.erased":
            rest = f"Record what came before: --to {note.seq - 1}." if note.seq > 1 else "It cannot be recorded."
            raise RecordingError(
                f"Entry {note.seq} of the log of session '{session_id}' was erased, with an agent, a conversation or a "
                f"room that was deleted. {rest}"
            )
    return log


def _ids_in(log: Iterable[Notification]) -> dict[str, dict[str, None]]:
    found: dict[str, dict[str, None]] = {name: {} for name in ("taskId", "mailId", "eventId", "messageId")}
    for note in log:
        for name, ids in found.items():
            if isinstance(each := note.params.get(name), str):
                ids[each] = None
    return found


@asynccontextmanager
async def session_store(data: str | Path, session_id: str, *, address: str | None = None) -> AsyncIterator[Store]:
    """A store that has the session of a data folder, or of a database, whoever has that open. Nothing is changed there.

    Raises a `StoreError` that says what to do.
    """
    with TemporaryDirectory(prefix="whisperer-record-") as folder:
        file = Path(folder) / "session.zip"
        try:
            await asyncio.to_thread(export_session, data, session_id, file, store=address)
        except UnknownSessionError:
            if address is not None:
                raise
            await asyncio.to_thread(copy_with_unlisted, Path(data), session_id, Path(folder))
            store = await open_store(folder)
        else:
            store = await open_store(None)
            await store.import_session(
                file, owner=LOCAL, data=Path(folder), session_id=session_id, on_progress=lambda _: None
            )
        try:
            yield store
        finally:
            await store.close()
