"""What every store keeps of sessions: whose they are, which have work left, and nothing of a deleted one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import asdict, replace

from ai_whisperer.core.attachments import records_of
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.conversation import ToolResult, Usage
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.forks import Effects, Fork, RecordedCall
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.mail import USER, MailState
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.retention import Erasure, Horizon
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.schedules import ScheduleDefinition, ScheduleRecord
from ai_whisperer.domain.sessions import SessionRecord, SessionSummary
from ai_whisperer.domain.snapshot import Link, LinkKind
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskState
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import StoreInUseError, StoreRefusedError
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.store.deletion import SLICE_ROWS
from ai_whisperer.store.operations import RowOperation
from ai_whisperer.store.sqlite import opening, queries
from ai_whisperer.store.sqlite.committers import Before, Committed, InlineCommitter
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.store import SqliteStore
from ai_whisperer.store.tables import SHAPE, Row
from tests.contract.conftest import Run
from tests.contract.records import a_compacted_thread, agent, mail, task, tell, unit_with

TIMER = TimerRecord(session_id="s", id="wake:alice", agent_id="alice", kind=TimerKind.WAKE, due_at=9.0)
FORK = Fork(
    session_id="s",
    source="other",
    at=7,
    since=8,
    effects=Effects.RECORDED,
    paths={"t": "2>alice"},
    made={"2>alice": 1},
    calls=[RecordedCall(key="2>alice/1", digest="d", result=ToolResult(content="paid"))],
)
LOCK = LockRecord(
    session_id="s", name="report", token=3, agent_id="alice", task_id="t1", expires_at=2.0, holder="alice"
)
SCHEDULE = ScheduleRecord(
    session_id="s", id="hourly", definition=ScheduleDefinition(cron="0 * * * *", event="tick"), next_at=10.0
)
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
)


def session(session_id: str = "s", *, owner: str = "ann", created_at: float = 1.5) -> SessionRecord:
    return SessionRecord(id=session_id, title="Plans: é ☃", owner=owner, created_at=created_at)


def listed(record: SessionRecord, agents: int = 0) -> SessionSummary:
    return SessionSummary(**asdict(record), agents=agents)


def a_row_in_every_table(session_id: str) -> Unit:
    """A unit that leaves something of the session wherever there is a place for it."""
    unit = Unit()
    unit.insert_session(session(session_id))
    unit.insert_agent(agent(session_id=session_id))
    unit.put_totals(AgentTotals(session_id=session_id, agent_id="alice"))
    unit.insert_task(replace(task(), session_id=session_id))
    unit.put_compacted(a_compacted_thread(session_id=session_id))
    unit.put_step(
        StepRecord(
            session_id=session_id, task_id="t1", number=1, kind=StepKind.MODEL, state=StepState.STARTED, failures=2
        )
    )
    unit.insert_mail(replace(mail(), session_id=session_id))
    unit.put_timer(replace(TIMER, session_id=session_id))
    unit.put_wait(replace(WAIT, session_id=session_id))
    unit.put_approval(
        ApprovalRecord(
            session_id=session_id, id="t1.2", agent_id="alice", task_id="t1", tool="pay", arguments="{}", digest="d"
        )
    )
    unit.put_question(
        QuestionRecord(session_id=session_id, id="t1.3", agent_id="alice", task_id="t1", question="?", schema={})
    )
    unit.put_lock(replace(LOCK, session_id=session_id))
    unit.insert_fork(replace(FORK, session_id=session_id))
    unit.insert_event(EventRecord(session_id=session_id, id="e", name="tick", sender="user", cause="test"))
    unit.put_schedule(replace(SCHEDULE, session_id=session_id))
    unit.put_room(
        RoomRecord(session_id=session_id, id="r", kind=RoomKind.GROUP, title="Team", members=("alice",), hop_limit=4)
    )
    unit.insert_message(MessageRecord(session_id=session_id, id="m", room_id="r", number=1, sender="user", text="Hi"))
    (given,) = records_of(
        [Attachment(digest="d", media_type="text/plain", size=1, name="a.txt")],
        session_id=session_id,
        owner="task:t",
        now=1.0,
    )
    unit.insert_attachment(given)
    unit.put_limits(session_id, SessionLimits(max_tokens=1))
    unit.put_link(session_id, Link(kind=LinkKind.MAIL, sender="user", recipient="alice", count=1, last_at=1.0))
    unit.put_horizon(Horizon(session_id=session_id, first_seq=1, before=0.0, at=1.0))
    unit.put_erasure(Erasure(session_id=session_id, agent_id="alice", thread_id="t", last=1, at=1.0))
    tell(unit, session_id, "told", params={})
    return unit


def rows_of(connection: apsw.Connection, session_id: str) -> dict[str, int]:
    """How many rows each table has of the session."""
    counts: dict[str, int] = {}
    for (table,) in list(connection.execute("SELECT name FROM sqlite_master WHERE type='table'")):
        if table == SHAPE.name:
            continue  # of all sessions
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        key = "session_id" if "session_id" in columns else "id"
        counting = f"SELECT count(*) FROM {table} WHERE {key}=?"  # noqa: S608 - the names come from the schema
        ((counts[table],),) = connection.execute(counting, (session_id,))
    return counts


def test_a_session_is_read_back_the_same_and_nobody_makes_it_again(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.insert_session(session())
        await store.submit(unit)
        assert await store.session("s") == session()
        assert await store.session("other") is None
        unit = Unit()
        unit.insert_session(replace(session(), title="Other", owner="bob"))
        with pytest.raises(StoreRefusedError):
            await store.submit(unit)
        assert await store.session("s") == session()
        assert await store.sessions("ann", limit=9) == [listed(session())]

    run(scenario)


def test_what_a_fork_does_not_repeat_is_read_back_the_same_and_kept_once(run: Run) -> None:
    async def scenario(store: Store) -> None:
        assert (await store.load("s")).fork is None
        unit = Unit()
        unit.insert_fork(FORK)
        await store.submit(unit)
        assert (await store.load("s")).fork == FORK
        assert (await store.load("other")).fork is None
        unit = Unit()
        unit.insert_fork(replace(FORK, at=9))
        with pytest.raises(StoreRefusedError):
            await store.submit(unit)
        assert (await store.load("s")).fork == FORK

    run(scenario)


def test_an_owner_sees_its_own_sessions_the_newest_first_with_the_number_of_their_agents(run: Run) -> None:
    async def scenario(store: Store) -> None:
        mine = [session(name, created_at=at) for name, at in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
        unit = Unit()
        for each in (*mine, session("theirs", owner="bob")):
            unit.insert_session(each)
        for agent_id in ("alice", "bert"):
            unit.insert_agent(agent(agent_id, session_id="c"))
        unit.insert_agent(agent(session_id="theirs"))
        await store.submit(unit)
        assert await store.sessions("ann", limit=9) == [listed(mine[1]), listed(mine[2], agents=2), listed(mine[0])]
        assert await store.sessions("nobody", limit=9) == []

    run(scenario)


def test_sessions_come_in_pages_without_gap_also_when_many_were_made_at_once(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number in range(7):
            unit.insert_session(session(f"s{number}", created_at=float(number // 3)))
        await store.submit(unit)
        seen: list[str] = []
        after: tuple[float, str] | None = None
        while page := await store.sessions("ann", after=after, limit=2):
            seen.extend(each.id for each in page)
            after = (page[-1].created_at, page[-1].id)
        assert seen == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]

    run(scenario)


def test_sessions_that_were_made_without_a_server_are_found(run: Run) -> None:
    async def scenario(store: Store) -> None:
        assert await store.unlisted_sessions() == []
        unit = Unit()
        unit.insert_session(session("listed"))
        for session_id in ("agents-1", "agents-2", "listed"):
            unit.insert_agent(agent("alice", session_id=session_id))
            unit.insert_agent(agent("bert", session_id=session_id))
        for session_id in ("told", "told", "listed", "agents-2"):
            tell(unit, session_id, "x", params={})
        await store.submit(unit)
        assert await store.unlisted_sessions() == ["agents-1", "agents-2", "told"]

    run(scenario)


def test_a_session_is_found_by_anything_that_goes_on_by_itself(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.insert_task(replace(task(), session_id="queued"))
        unit.insert_task(replace(task(), session_id="running", state=TaskState.RUNNING))
        unit.insert_mail(replace(mail(), session_id="mailed"))
        unit.insert_mail(replace(mail(), session_id="delivered", state=MailState.DELIVERED))
        unit.put_timer(replace(TIMER, session_id="asleep"))
        unit.put_wait(replace(WAIT, session_id="waiting"))
        unit.put_lock(replace(LOCK, session_id="locked"))
        unit.put_schedule(replace(SCHEDULE, session_id="scheduled"))
        await store.submit(unit)
        assert await store.sessions_with_work() == sorted(
            ["queued", "running", "mailed", "delivered", "asleep", "waiting", "locked", "scheduled"]
        )

    run(scenario)


def test_a_session_that_does_nothing_by_itself_is_left_alone(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.insert_session(session())
        unit.insert_agent(agent())
        unit.put_lock(LockRecord(session_id="s", name="", token=5))
        unit.put_schedule(replace(SCHEDULE, paused=True))
        unit.put_schedule(replace(SCHEDULE, id="over", next_at=None))
        unit.insert_mail(replace(mail("unread"), sender="alice", recipient=USER))
        for number, state in enumerate(state for state in TaskState if state.ended):
            unit.insert_task(replace(task(f"t{number}"), state=state))
        closed = (state for state in MailState if state not in (MailState.QUEUED, MailState.DELIVERED))
        for number, mail_state in enumerate(closed):
            unit.insert_mail(replace(mail(f"m{number}", sequence=number), state=mail_state))
        tell(unit, "s", "told", params={})
        await store.submit(unit)
        assert await store.sessions_with_work() == []
        assert (await store.load("s")).mails == ()

    run(scenario)


def plan_of(sql: str, *bindings: object) -> list[str]:
    """How the query is answered, in SQLite's words."""
    connection = apsw.Connection(":memory:")
    opening.migrate(connection)
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]


def test_the_sessions_are_found_without_reading_their_histories() -> None:
    with_work = plan_of(queries.SESSIONS_WITH_WORK)
    for table in ("task", "mail"):
        assert any(f"SCAN {table} USING" in step and f"{table}_open" in step for step in with_work)
    leaps = plan_of(queries.UNLISTED_SESSIONS)
    assert sum("SEARCH agent USING PRIMARY KEY" in step for step in leaps) == 2
    assert sum("SEARCH notification USING PRIMARY KEY" in step for step in leaps) == 2
    page = plan_of(queries.SESSIONS_AFTER, "ann", 1.0, "s", 9)
    assert any("session_by_owner (owner=? AND (created_at" in step for step in page)
    assert not any("TEMP B-TREE" in step for step in page)


@pytest.mark.parametrize(
    ("sql", "bindings", "indexes"),
    [
        (queries.TASKS, ("s", 9), {"task_by_session"}),
        (queries.TASKS_OF_AGENT, ("s", "alice", 9), {"task_by_agent"}),
        (queries.TASKS_OF_THREAD, ("s", "alice", "t", 0, 0.0), {"task_by_thread"}),
        (queries.TASKS_OF_TREE, ("s", "t"), {"sqlite_autoindex_task_1", "task_by_root"}),
        (queries.IDS_OF_TREE, ("s", "t"), {"task_by_root"}),
        (queries.STEPS_OF_THREAD, ("s", "alice", "t", 0, 0.0), {"task_by_thread"}),
        (queries.OPEN_TASKS, ("s",), {"task_open"}),
        (queries.ATTACHMENTS, ("s", 9), {"attachment_by_time"}),
        (queries.ATTACHMENT, ("s", "d"), {"attachment_by_digest"}),
        (queries.DEAD_TASKS, ("s",), {"task_dead_letter"}),
        (queries.FAILURES_SINCE, ("s", 1.0), {"task_dead"}),
        (queries.OPEN_MAIL, ("s",), {"mail_open", "task_open", "sqlite_autoindex_mail_1"}),
        (queries.DEAD_MAIL, ("s",), {"mail_dead"}),
        (queries.MAILBOX, ("s", "alice", 9), {"mail_by_recipient"}),
    ],
    ids=lambda value: " ".join(value.split()) if isinstance(value, str) else "",
)
def test_a_list_is_read_without_what_is_not_in_it(sql: str, bindings: tuple[object, ...], indexes: set[str]) -> None:
    plan = plan_of(sql, *bindings)
    used = [step.split(" USING INDEX ")[1].split()[0] for step in plan if " USING INDEX " in step]
    assert set(used) == indexes
    if "LIMIT" in sql:
        assert not any("TEMP B-TREE" in step for step in plan), "all are sorted, to return a few"


@pytest.mark.parametrize("sql", [queries.NOTIFICATIONS_NAMING, queries.LAST_NOTIFICATIONS_NAMING])
def test_the_log_of_an_agent_is_looked_for_between_two_numbers_only(sql: str) -> None:
    (step,) = plan_of(sql, "s", 1, 9, b"\xa3ada", '"ada"', 5)
    assert step == "SEARCH notification USING PRIMARY KEY (session_id=? AND seq>? AND seq<?)"


def test_notifications_that_name_an_agent_are_found_from_both_ends(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number, agent_id in enumerate(["ada", "bob", "ada", "adam", "ada", "ada"], 1):
            tell(unit, "s", "told", params={"agent_id": agent_id, "n": number})
        tell(unit, "other", "told", params={"agent_id": "ada"})
        await store.submit(unit)
        between: dict[str, int] = {"after": 1, "before": 6}
        assert [each.seq for each in await store.notifications_naming("s", "ada", **between, limit=9)] == [3, 5]
        assert [each.seq for each in await store.notifications_naming("s", "ada", **between, limit=1)] == [3]
        assert [each.seq for each in await store.last_notifications_naming("s", "ada", **between, limit=9)] == [5, 3]
        assert [each.seq for each in await store.last_notifications_naming("s", "ada", **between, limit=1)] == [5]

    run(scenario)


def test_of_a_deleted_session_nothing_is_left_in_any_table_and_others_keep_all(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        for session_id in ("s", "other"):
            await store.submit(a_row_in_every_table(session_id))
        reading = apsw.Connection(str(tmp_path / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
        full = rows_of(reading, "s")
        empty = {table for table, count in full.items() if not count}
        assert empty == {"deletion"}, "say in a_row_in_every_table how the new table is filled"
        await store.delete_session("s")
        assert set(rows_of(reading, "s").values()) == {0}
        assert rows_of(reading, "other") == full
        reading.close()
        await store.close()

    asyncio.run(main())


def long_session(tasks: int) -> Unit:
    """A unit that fills a session with so many tasks and tells of each."""
    unit = unit_with(*(task(f"t{number}") for number in range(tasks)))
    unit.insert_session(session())
    for number in range(tasks):
        tell(unit, "s", "told", params={"n": number})
    return unit


def test_a_long_session_is_gone_at_once_and_its_rows_go_in_slices_between_which_others_are_served(run: Run) -> None:
    async def scenario(store: Store) -> None:
        await store.submit(long_session(2 * SLICE_ROWS + 1))
        deleting = asyncio.ensure_future(store.delete_session("s"))
        left: list[int] = []
        for number in range(50):
            unit = Unit()
            tell(unit, "other", f"n{number}", params={})
            await store.submit(unit)
            assert await store.session("s") is None
            left.append(len(await store.notifications("s", after=0, limit=10_000)))
        slices = [2 * SLICE_ROWS + 1, SLICE_ROWS + 1, 1, 0]
        if not isinstance(store, SqliteStore):  # elsewhere several may go while this one reads
            slices = [each for each in slices if each in left]
        assert list(dict.fromkeys(left)) == slices
        assert left[-1] == 0
        await deleting
        assert await store.tasks("s", limit=10_000) == []

    run(scenario)


class DyingCommitter(InlineCommitter):
    """Commits so many groups; then nothing happens any more, as when the process has died."""

    def __init__(self, commits: int) -> None:
        self._commits = commits
        self.died = asyncio.Event()

    def commit(self, connection: apsw.Connection, done: Committed, *, units: int, before: Before | None = None) -> None:
        if self._commits:
            self._commits -= 1
            super().commit(connection, done, units=units, before=before)
        else:
            self.died.set()


@pytest.mark.parametrize("commits", range(1, 8))
def test_a_deletion_that_the_end_of_the_process_cut_short_is_finished_at_the_next_start(
    tmp_path: Path, commits: int
) -> None:
    async def until_the_end() -> None:
        committer = DyingCommitter(2 + commits)
        store = SqliteStore.open(tmp_path, committer=committer)
        await store.submit(a_row_in_every_table("other"))
        await store.submit(long_session(2 * SLICE_ROWS + 1))
        deleting = asyncio.ensure_future(store.delete_session("s"))
        await committer.died.wait()
        store.abandon()
        deleting.cancel()
        await asyncio.gather(deleting, return_exceptions=True)

    async def afterwards() -> None:
        store = SqliteStore.open(tmp_path)
        assert (await store.session("s"), await store.unlisted_sessions(), await store.sessions_with_work()) == (
            None,
            [],
            ["other"],
        )
        reading = apsw.Connection(str(tmp_path / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
        assert set(rows_of(reading, "s").values()) == {0}
        reading.close()
        await store.submit(unit_with(task(), note="anew"))
        assert [note.seq for note in await store.notifications("s", after=0, limit=9)] == [1]
        await store.close()
        store = SqliteStore.open(tmp_path)
        assert await store.task("s", "t1") is not None, "a deletion that was finished is over"
        await store.close()

    asyncio.run(until_the_end())
    asyncio.run(afterwards())


def test_a_session_that_is_made_again_under_its_id_begins_its_log_at_one(run: Run) -> None:
    async def scenario(store: Store) -> None:
        for note in ("first", "second"):
            await store.submit(unit_with(task(note), note=note))
        # In one group: what came before the deletion goes with it.
        await asyncio.gather(store.submit(unit_with(task("third"), note="third")), store.delete_session("s"))
        await store.submit(unit_with(task("anew"), note="anew"))
        assert [(note.seq, note.name) for note in await store.notifications("s", after=0, limit=9)] == [(1, "anew")]
        assert [each.id for each in (await store.load("s")).tasks] == ["anew"]
        await store.submit(unit_with(note="next"))
        assert (await store.load("s")).last_seq == 2

    run(scenario)


def test_a_session_that_is_open_cannot_be_deleted(run: Run) -> None:
    async def scenario(store: Store) -> None:
        await store.submit(unit_with(task(), note="x"))
        store.listen("s", lambda *_: None, lambda _: None)
        with pytest.raises(StoreInUseError, match="Close it, then delete it"):
            await store.delete_session("s")
        await store.flushed()
        assert await store.task("s", "t1") is not None
        store.unlisten("s")
        await store.delete_session("s")
        assert await store.task("s", "t1") is None

    run(scenario)


def test_a_session_that_is_being_deleted_is_neither_opened_nor_deleted_twice(run: Run) -> None:
    async def scenario(store: Store) -> None:
        await store.submit(unit_with(task(), note="x"))
        deleting = asyncio.ensure_future(store.delete_session("s"))
        await asyncio.sleep(0)
        with pytest.raises(StoreInUseError, match="Wait until that is done"):
            store.listen("s", lambda *_: None, lambda _: None)
        with pytest.raises(StoreInUseError, match="Wait until that is done"):
            await store.delete_session("s")
        await deleting
        store.listen("s", lambda *_: None, lambda _: None)

    run(scenario)


def test_the_agents_of_a_session_are_counted(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for agent_id, session_id in (("alice", "s"), ("bert", "s"), ("alice", "other")):
            unit.insert_agent(agent(agent_id, session_id=session_id))
        await store.submit(unit)
        assert (await store.agents_in("s"), await store.agents_in("none")) == (2, 0)

    run(scenario)


def insert_what_was_known(old: apsw.Connection, operation: RowOperation[Any], row: Row) -> None:
    """Insert the row into a database that may not have all of its columns yet, or not even its table."""
    table = operation.table.name
    known = {name for (name,) in old.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    values = {column.name: value for column, value in zip(operation.columns, row, strict=True) if column.name in known}
    if known:
        places = ",".join("?" * len(values))
        old.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", (*values.values(),))  # noqa: S608


def database_of_version(folder: Path, version: int) -> apsw.Connection:
    """An empty database as it was made when there were so many migrations."""
    old = apsw.Connection(str(folder / DATABASE_NAME))
    for script in opening.migrations()[:version]:
        old.execute(script)
    old.execute(f"PRAGMA application_id={opening.APPLICATION_ID}; PRAGMA user_version={version}")
    return old


def test_the_totals_of_an_older_database_are_those_of_the_tasks_in_it(tmp_path: Path) -> None:
    used = (
        Usage(input_tokens=3, output_tokens=7, cost_usd=0.5, model_calls=1, memory_bytes=9),
        Usage(input_tokens=30, wall_seconds=0.5, memory_bytes=7),  # as it was written before there were unpriced tokens
        Usage(input_tokens=5, cost_usd=0.25, unpriced_tokens=4),
    )
    done = [
        replace(task(f"t{number}", thread_id="th"), state=TaskState.COMPLETED, usage=each, started_at=1.0 + number)
        for number, each in enumerate(used)
    ]
    running = replace(task("t9", arrival=9), state=TaskState.RUNNING, usage=used[0], started_at=8.0)
    waiting = replace(task("t10", agent_id="bob"), created_at=9.0)
    old = database_of_version(tmp_path, 13)
    unit = unit_with(*done, running, waiting)
    unit.insert_agent(agent())
    for operation, row in unit.changes:
        assert isinstance(operation, RowOperation)
        insert_what_was_known(old, operation, row)
    old.execute("UPDATE agent SET active_at=8.5")
    old.close()

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        snapshot = await store.load("s")
        assert snapshot.totals["alice"] == AgentTotals(
            session_id="s", agent_id="alice", tasks=3, usage=sum(used, Usage()), active_at=8.5
        )
        assert snapshot.totals["bob"] == AgentTotals(session_id="s", agent_id="bob")
        assert snapshot.last_arrival == 9
        threads = await store.threads_of_agent("s", "alice")
        assert [(each.id, each.tasks, each.first_at, each.last_at) for each in threads] == [
            ("th", 3, 2.0, 2.0),
            ("t9", 1, 2.0, 2.0),
        ]
        await store.close()

    asyncio.run(main())


def test_notifications_of_an_older_database_are_read_as_they_are_beside_new_ones(tmp_path: Path) -> None:
    old = database_of_version(tmp_path, 14)
    params = '{"agentId":"ada","n":1}'
    old.execute("INSERT INTO notification VALUES ('s', 1, 'told', 'test', 1.0, ?)", (params,))
    old.close()

    async def main() -> None:
        for _ in range(2):
            store = SqliteStore.open(tmp_path)
            unit = Unit()
            tell(unit, "s", "told", params={"agent_id": "ada", "n": 1})
            await store.submit(unit)
            await store.close()
        store = SqliteStore.open(tmp_path)
        notes = await store.notifications("s", after=0, limit=9)
        assert [replace(note, seq=0) for note in notes] == 3 * [replace(notes[0], seq=0)]
        assert [list(note.params) for note in notes] == 3 * [["agentId", "n"]]
        assert [each.seq for each in await store.notifications_naming("s", "ada", after=0, before=9, limit=9)] == [
            1,
            2,
            3,
        ]
        await store.close()

    asyncio.run(main())


def test_a_database_of_the_second_version_is_brought_up_to_date_with_all_that_is_in_it(tmp_path: Path) -> None:
    old = database_of_version(tmp_path, 2)
    for operation, row in a_row_in_every_table("s").changes:
        assert isinstance(operation, RowOperation)
        insert_what_was_known(old, operation, row)
    old.close()

    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        assert (await store.unlisted_sessions(), await store.sessions_with_work()) == (["s"], ["s"])
        unit = Unit()
        unit.insert_session(session())
        await store.submit(unit)
        assert await store.sessions("ann", limit=9) == [listed(session(), agents=1)]
        assert await store.unlisted_sessions() == []
        snapshot = await store.load("s")
        assert (snapshot.tasks, snapshot.mails, snapshot.locks) == ((task(),), (mail(),), (LOCK,))
        assert [step.requests for step in await store.steps("s", "t1")] == [2]
        assert (snapshot.mails_received, snapshot.mail_sequences) == ({"alice": 1}, {"user": 1})
        assert [each.id for each in await store.threads_of_agent("s", "alice")] == ["t1"]
        assert [(link.kind, link.sender, link.recipient, link.count) for link in snapshot.links] == [
            (LinkKind.MAIL, mail().sender, mail().recipient, 1)
        ]
        await store.close()

    asyncio.run(main())
