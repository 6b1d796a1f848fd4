"""What every store keeps of waits, locks, events, schedules and rooms."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition, ScheduleRecord
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.tasks import Budget, Failure, Origin, ReportTo, RoomTurn, TaskState
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import StoreRefusedError
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.store.sqlite import SqliteStore, opening
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from tests.contract.conftest import Run
from tests.contract.records import agent, mail, task

WAIT = WaitRecord(
    session_id="s",
    id="t1.2",
    kind=WaitKind.LOCK,
    agent_id="alice",
    task_id="t1",
    target="report",
    target_agent="bob",
    arrival=7,
    deadline_at=99.0,
    ttl_seconds=5.0,
    created_at=1.0,
)
LOCK = LockRecord(
    session_id="s",
    name="report",
    token=3,
    agent_id="bob",
    task_id="t2",
    acquired_at=1.0,
    expires_at=2.0,
    holder="bob",
)
APPROVAL = ApprovalRecord(
    session_id="s",
    id="t1.2",
    agent_id="alice",
    task_id="t1",
    tool="pay",
    arguments='{"amount": 5}',
    digest="d",
    requested_at=1.0,
)
EVENT = EventRecord(
    session_id="s", id="e1", name="ready", sender="user", cause="user:user", data={"n": [1]}, woken=2, created_at=1.0
)
SCHEDULE = ScheduleRecord(
    session_id="s",
    id="hourly",
    definition=ScheduleDefinition(cron="0 * * * *", zone="Europe/Berlin", event="tick", missed=MissedRuns.ALL),
    next_at=10.0,
    last_at=5.0,
    fired=2,
    cause="user:user",
    created_at=1.0,
)
ROOM = RoomRecord(
    session_id="s",
    id="r1",
    kind=RoomKind.GROUP,
    title="Team",
    members=("alice", "bob"),
    hop_limit=4,
    last_number=1,
    seen={"alice": 1},
    created_at=1.0,
)
MESSAGE = MessageRecord(
    session_id="s",
    id="m1",
    room_id="r1",
    number=1,
    sender="user",
    text="Hi @bob",
    mentions=("bob",),
    hops=1,
    created_at=2.0,
)


def test_what_was_written_is_read_back_the_same(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.put_wait(WAIT)
        unit.put_lock(LOCK)
        unit.insert_event(EVENT)
        unit.put_schedule(SCHEDULE)
        unit.put_room(ROOM)
        unit.insert_message(MESSAGE)
        await store.submit(unit)
        snapshot = await store.load("s")
        assert (snapshot.waits, snapshot.locks) == ((WAIT,), (LOCK,))
        assert (snapshot.schedules, snapshot.rooms) == ((SCHEDULE,), (ROOM,))
        assert await store.events("s", limit=10) == [EVENT]
        assert await store.event("s", "e1") == EVENT
        assert await store.messages("s", "r1", after=0, limit=10) == [MESSAGE]
        assert snapshot.last_arrival == 7
        other = await store.load("other")
        assert (other.waits, other.locks, other.schedules, other.rooms) == ((), (), (), ())
        assert (await store.event("other", "e1"), await store.events("other", limit=10)) == (None, [])
        assert await store.messages("other", "r1", after=0, limit=10) == []

    run(scenario)


def test_questions_that_wait_are_loaded_and_all_can_be_read(run: Run) -> None:
    async def scenario(store: Store) -> None:
        form = {"type": "object", "properties": {"answer": {"enum": ["tea", 2, True]}}}
        asked = QuestionRecord(
            session_id="s", id="t1.2", agent_id="alice", task_id="t1", question="?", schema=form, asked_at=1.0
        )
        answered = replace(
            asked, id="t1.3", asked_at=2.0, deadline_at=9.0, state=QuestionState.ANSWERED, answer={"answer": 2}
        )
        unit = Unit()
        unit.put_question(asked)
        unit.put_question(replace(answered, state=QuestionState.PENDING, answer=None))
        unit.put_question(answered)
        unit.put_wait(replace(WAIT, id="t1.2", kind=WaitKind.QUESTION, target="t1.2"))
        await store.submit(unit)
        assert (await store.load("s")).questions == (asked,)
        assert await store.question("s", "t1.3") == answered
        assert await store.questions("s", state=None, limit=9) == [answered, asked]
        assert await store.questions("s", state=QuestionState.PENDING, limit=9) == [asked]
        assert await store.ids_beginning("s", IdKind.QUESTION, "t1", limit=9) == ["t1.2", "t1.3"]
        assert ((await store.load("other")).questions, await store.question("other", "t1.2")) == ((), None)

    run(scenario)


def test_approvals_of_open_tasks_that_are_not_refused_are_loaded_and_all_can_be_read(run: Run) -> None:
    async def scenario(store: Store) -> None:
        approved = replace(APPROVAL, id="t1.3", state=ApprovalState.APPROVED, requested_at=2.0, decided_at=3.0)
        refused = replace(approved, id="t1.4", state=ApprovalState.REFUSED, decided_by="ann", reason="no")
        of_ended = replace(APPROVAL, id="t2.2", task_id="t2")
        unit = Unit()
        unit.insert_task(task("t1"))
        unit.insert_task(replace(task("t2"), state=TaskState.COMPLETED))
        for approval in (APPROVAL, APPROVAL, approved, refused, of_ended):
            unit.put_approval(approval)
        await store.submit(unit)
        assert (await store.load("s")).approvals == (APPROVAL, approved)
        assert await store.approval("s", "t1.4") == refused
        assert await store.approvals("s", state=None, limit=2) == [refused, approved]
        assert await store.approvals("s", state=ApprovalState.PENDING, limit=9) == [of_ended, APPROVAL]
        assert ((await store.load("other")).approvals, await store.approval("other", "t1.2")) == ((), None)

    run(scenario)


def test_changes_replace_and_deletions_remove_what_was_there(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.put_wait(WAIT)
        unit.put_lock(LOCK)
        unit.put_schedule(SCHEDULE)
        unit.put_room(ROOM)
        await store.submit(unit)
        free = replace(LOCK, agent_id=None, task_id=None, acquired_at=None, expires_at=None)
        renamed = replace(ROOM, title="Other", seen={})
        unit = Unit()
        unit.delete_wait(WAIT)
        unit.put_lock(free)
        unit.delete_schedule(SCHEDULE)
        unit.put_room(renamed)
        await store.submit(unit)
        snapshot = await store.load("s")
        assert (snapshot.waits, snapshot.locks, snapshot.schedules) == ((), (free,), ())
        assert snapshot.rooms == (renamed,)

    run(scenario)


def test_a_message_and_an_event_are_written_once(run: Run) -> None:
    async def scenario(store: Store) -> None:
        messages, events = [Unit(), Unit()], [Unit(), Unit()]
        for unit in messages:
            unit.insert_message(MESSAGE)
        for unit in events:
            unit.insert_event(EVENT)
        for first, second in (messages, events):
            await store.submit(first)
            with pytest.raises(StoreRefusedError):
                await store.submit(second)

    run(scenario)


def test_messages_and_events_come_in_pages(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number in range(1, 6):
            unit.insert_message(replace(MESSAGE, id=f"m{number}", number=number))
            unit.insert_event(replace(EVENT, id=f"e{number}", created_at=float(number)))
        await store.submit(unit)
        assert [each.number for each in await store.messages("s", "r1", after=2, limit=2)] == [3, 4]
        assert [each.id for each in await store.events("s", limit=2)] == ["e5", "e4"]

    run(scenario)


def test_the_terms_of_tasks_and_mails_are_kept_and_a_tree_can_be_read(run: Run) -> None:
    async def scenario(store: Store) -> None:
        terms = Origin(
            root_id="t1",
            deadline_at=9.5,
            budget=Budget(max_tokens=5, max_cost_usd=0.5),
            report_to=ReportTo(agent_id="alice", thread_id="t1", deadline_at=1.0),
            room=RoomTurn(room_id="r1", number=3, hops=1, seen=2),
        )
        child = replace(task("t2", arrival=2), parent_id="t1", origin=terms, not_before=3.0, restarts=2)
        awaited = replace(mail(), awaited=True, origin=terms)
        unit = Unit()
        for each in (task("t1"), child, task("t3", arrival=3)):
            unit.insert_task(each)
        unit.insert_mail(awaited)
        await store.submit(unit)
        assert await store.tasks_of_tree("s", "t1") == [task("t1"), child]
        assert (await store.ids_of_tree("s", "t1"), await store.ids_of_tree("s", "t3")) == (["t2"], [])
        assert await store.mail("s", "m1") == awaited
        later = replace(child, restarts=3, not_before=None)
        unit = Unit()
        unit.update_task(later)
        await store.submit(unit)
        assert await store.task("s", "t2") == later

    run(scenario)


def test_recent_failures_are_found_with_their_codes(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number, state in enumerate((TaskState.FAILED, TaskState.DEAD, TaskState.COMPLETED, TaskState.FAILED)):
            failed = replace(
                task(f"t{number}", arrival=number),
                state=state,
                error=Failure(code=f"code{number}", message="m"),
                finished_at=10.0 - number,
            )
            unit.insert_task(failed)
        await store.submit(unit)
        assert await store.failures_since("s", 7.0) == [("alice", "code1", 9.0), ("alice", "code0", 10.0)]

    run(scenario)


def test_a_database_of_the_first_version_is_brought_up_to_date_with_all_that_is_in_it(tmp_path: Path) -> None:
    first = (Path(opening.__file__).parent / "migrations" / "0001_initial.sql").read_text(encoding="utf-8")
    old = apsw.Connection(str(tmp_path / DATABASE_NAME))
    old.execute(first)
    old.execute(f"PRAGMA application_id={opening.APPLICATION_ID}; PRAGMA user_version=1")
    old.execute(
        "INSERT INTO task VALUES ('t1','s','alice','t1','user_prompt','Do it: é ☃',1,'user:user','normal','queued',"
        "NULL,NULL,0,0,NULL,'',NULL,NULL,'{}',2.0,NULL,NULL)"
    )
    old.execute(
        "INSERT INTO mail VALUES ('m1','s','th','user',1,'alice','Hello','World',1,'user:user','normal',NULL,'queued',"
        "NULL,3.0,NULL)"
    )
    old.close()

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        unit = Unit()
        unit.insert_agent(agent())
        unit.put_room(ROOM)
        await store.submit(unit)
        snapshot = await store.load("s")
        assert (snapshot.tasks, snapshot.mails, snapshot.rooms) == ((task(),), (mail(),), (ROOM,))
        await store.close()

    asyncio.run(main())
