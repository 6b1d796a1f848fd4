"""What every store keeps to. Runs on SQLite in a file and in memory, and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer.domain.conversation import Answer, ChannelResponse, ToolCall, ToolResult, Usage
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.domain.snapshot import Link, LinkKind
from ai_whisperer.domain.tasks import Failure, Said, StepKind, StepRecord, StepState, TaskState
from ai_whisperer.domain.timers import TimerKind, TimerRecord
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.errors import StoreInUseError, StoreRefusedError
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.store.parts import StoreParts
from ai_whisperer.store.sqlite import SqliteStore
from tests.contract.conftest import Run
from tests.contract.records import a_compacted_thread, agent, mail, task, tell, unit_with


def test_what_was_written_is_read_back_the_same(run: Run) -> None:
    async def scenario(store: Store) -> None:
        step = StepRecord(
            session_id="s",
            task_id="t1",
            number=1,
            kind=StepKind.MODEL,
            state=StepState.DONE,
            attempt=2,
            answer=Answer(text="hi", reasoning="hm", usage=Usage(input_tokens=3, cost_usd=0.25), provider="{}"),
            error=Failure(code="x", message="y"),
            retry_at=4.0,
            started_at=1.0,
            finished_at=2.0,
            requests=2,
            request_seconds=0.5,
        )
        called = StepRecord(
            session_id="s",
            task_id="t1",
            number=2,
            kind=StepKind.TOOL,
            state=StepState.UNKNOWN,
            call=ToolCall(call_id="c", name="n", arguments="{}"),
            result=ToolResult(content="r", is_error=True, mails=("m1",)),
        )
        timer = TimerRecord(session_id="s", id="wake:alice", agent_id="alice", kind=TimerKind.WAKE, due_at=9.0)
        unit = Unit()
        unit.insert_agent(agent())
        unit.insert_task(task())
        unit.put_step(step)
        unit.put_step(called)
        unit.insert_mail(mail())
        unit.put_timer(timer)
        await store.submit(unit)
        snapshot = await store.load("s")
        assert snapshot.agents == (agent(),)
        assert snapshot.tasks == (task(),)
        assert snapshot.mails == (mail(),)
        assert snapshot.timers == (timer,)
        assert await store.steps("s", "t1") == [step, called]
        assert await store.task("s", "t1") == task()
        assert await store.mail("s", "m1") == mail()

    run(scenario)


def test_a_step_that_has_just_begun_is_read_back_the_same(run: Run) -> None:
    async def scenario(store: Store) -> None:
        asked = StepRecord(
            session_id="s",
            task_id="t1",
            number=1,
            kind=StepKind.MODEL,
            state=StepState.STARTED,
            started_at=1.5,
            said=(Said(task_id="t2", text="And be quick."),),
        )
        called = StepRecord(
            session_id="s",
            task_id="t1",
            number=2,
            kind=StepKind.TOOL,
            state=StepState.STARTED,
            call=ToolCall(call_id="c", name="n", arguments="{}"),
            started_at=2.5,
        )
        unit = Unit()
        unit.begin_step(asked)
        unit.begin_step(called)
        await store.submit(unit)
        assert await store.steps("s", "t1") == [asked, called]

    run(scenario)


def test_rooms_and_their_messages_are_read_back_the_same(run: Run) -> None:
    async def scenario(store: Store) -> None:
        room = RoomRecord(
            session_id="s",
            id="r",
            kind=RoomKind.GROUP,
            title="Plans",
            members=("alice", "bob"),
            hop_limit=4,
            last_number=3,
            seen={"alice": 2},
            created_at=1.5,
        )
        messages = [
            MessageRecord(
                session_id="s",
                id=f"m{number}",
                room_id="r",
                number=number,
                sender="alice",
                text="é ☃\n@bob",
                mentions=("bob",),
                asked={"bob": "t2"},
                task_id="t1",
                hops=1,
                cause="task:t1",
                created_at=2.5,
            )
            for number in (1, 2, 3)
        ]
        unit = Unit()
        unit.put_room(replace(room, last_number=0, seen={}))
        unit.put_room(room)
        for message in messages:
            unit.insert_message(message)
        await store.submit(unit)
        assert (await store.load("s")).rooms == (room,)
        assert await store.messages("s", "r", after=0, limit=9) == messages
        assert await store.messages("s", "r", after=1, limit=1) == messages[1:2]
        assert (
            await store.messages("s", "other", after=0, limit=9)
            == await store.messages("x", "r", after=0, limit=9)
            == []
        )
        assert await store.message("s", "m2") == messages[1]
        assert await store.message("s", "m4") is None

    run(scenario)


def test_the_id_of_a_message_is_used_once_in_a_session(run: Run) -> None:
    async def scenario(store: Store) -> None:
        message = MessageRecord(session_id="s", id="m", room_id="r", number=1, sender="user", text="x")
        unit = Unit()
        unit.insert_message(message)
        unit.insert_message(replace(message, session_id="other"))
        await store.submit(unit)
        again = Unit()
        again.insert_message(replace(message, room_id="r2"))
        with pytest.raises(StoreRefusedError):
            await store.submit(again)

    run(scenario)


def test_the_totals_of_an_agent_are_those_that_were_put_last(run: Run) -> None:
    used = Usage(input_tokens=3, output_tokens=7, cost_usd=0.5, model_calls=1, memory_bytes=9, unpriced_tokens=2)
    totals = AgentTotals(session_id="s", agent_id="alice", tasks=2, usage=used, active_at=4.5)

    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.put_totals(replace(totals, tasks=1, usage=Usage()))
        unit.put_totals(replace(totals, session_id="other", tasks=9))
        await store.submit(unit)
        unit = Unit()
        unit.put_totals(totals)
        await store.submit(unit)
        assert (await store.load("s")).totals == {"alice": totals}

    run(scenario)


def test_mails_are_counted_and_numbered_by_who_reached_whom(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number in range(1, 4):
            unit.insert_mail(mail(f"m{number}", sequence=number, arrival=10 * number))
        unit.insert_mail(replace(mail("m4", sequence=1, arrival=7), sender="bob"))
        for sender, count in (("user", 3), ("bob", 1)):
            unit.put_link("s", Link(kind=LinkKind.MAIL, sender=sender, recipient="alice", count=count, last_at=1.0))
        unit.put_link("s", Link(kind=LinkKind.SWITCH, sender="bob", recipient="alice", count=5, last_at=1.0))
        await store.submit(unit)
        snapshot = await store.load("s")
        assert snapshot.mails_received == {"alice": 4}
        assert snapshot.mail_sequences == {"user": 3, "bob": 1}
        assert snapshot.last_arrival == 30
        again = Unit()
        again.update_link("s", Link(kind=LinkKind.MAIL, sender="bob", recipient="alice", count=2, last_at=3.0))
        await store.submit(again)
        links = {(link.kind, link.sender): (link.count, link.last_at) for link in (await store.load("s")).links}
        assert links == {
            (LinkKind.MAIL, "user"): (3, 1.0),
            (LinkKind.MAIL, "bob"): (2, 3.0),
            (LinkKind.SWITCH, "bob"): (5, 1.0),
        }

    run(scenario)


def test_changes_replace_what_was_there(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = unit_with(task())
        unit.insert_agent(agent())
        unit.insert_mail(mail())
        await store.submit(unit)
        ended = replace(
            task(),
            state=TaskState.COMPLETED,
            attempts=2,
            progress_percent=50.0,
            progress_note="half",
            result=ChannelResponse(final="done"),
            usage=Usage(output_tokens=7, cost_usd=0.5),
            started_at=3.0,
            finished_at=4.0,
        )
        moved = replace(mail(), state=MailState.READ, task_id="t1", read_at=5.0)
        changed = replace(agent(), reason="changed", sleep=None)
        unit = Unit()
        unit.update_task(ended)
        unit.update_mail(moved)
        unit.update_agent(changed)
        await store.submit(unit)
        snapshot = await store.load("s")
        assert await store.task("s", "t1") == ended
        assert await store.mail("s", "m1") == moved
        assert (snapshot.agents, snapshot.tasks, snapshot.mails) == ((changed,), (), ())

    run(scenario)


def test_notifications_are_numbered_without_gap_in_the_order_of_submission(run: Run) -> None:
    async def scenario(store: Store) -> None:
        heard: list[Notification] = []
        store.listen("s", lambda notes, _: heard.extend(note.read() for note in notes), lambda _: None)
        await asyncio.gather(*(store.submit(unit_with(note=f"n{number}")) for number in range(50)))
        assert [(note.seq, note.name) for note in heard] == [(i + 1, f"n{i}") for i in range(50)]
        assert await store.notifications("s", after=0, limit=100) == heard
        assert await store.notifications("s", after=10, limit=5) == heard[10:15]

    run(scenario)


@pytest.mark.parametrize("count", [15, 16, 17, 100])
def test_however_many_notifications_are_committed_together_each_is_kept_as_it_was_told(run: Run, count: int) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number in range(count):
            tell(unit, "s", f"name {number % 3}", params={"n": number})
        await store.submit(unit)
        kept = await store.notifications("s", after=0, limit=1_000)
        assert [note.seq for note in kept] == [number + 1 for number in range(count)]
        assert [(note.name, note.params["n"]) for note in kept] == [(f"name {n % 3}", n) for n in range(count)]

    run(scenario)


def test_notifications_are_read_up_to_a_size_but_one_at_least(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number in range(9):
            tell(unit, "s", "x", params={"text": "é" * (1_000 if number < 6 else 10_000)})
        await store.submit(unit)

        async def read(after: int, limit: int = 9) -> list[int]:
            return [note.seq for note in await store.notifications("s", after=after, limit=limit, max_bytes=7_000)]

        assert (await read(0), await read(0, limit=2), await read(4), await read(7), await read(9)) == (
            [1, 2, 3],
            [1, 2],
            [5, 6],
            [8],
            [],
        )

    run(scenario)


def test_each_session_has_its_own_numbers_and_sees_nothing_of_others(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        unit.insert_agent(agent())
        unit.insert_agent(agent(session_id="other"))
        for session in ("s", "other", "s"):
            tell(unit, session, "x", params={})
        await store.submit(unit)
        assert [note.seq for note in await store.notifications("s", after=0, limit=9)] == [1, 2]
        assert [note.seq for note in await store.notifications("other", after=0, limit=9)] == [1]
        assert [each.session_id for each in (await store.load("other")).agents] == ["other"]

    run(scenario)


def test_a_refused_unit_fails_alone_and_leaves_no_number_behind(run: Run) -> None:
    async def scenario(store: Store) -> None:
        await store.submit(unit_with(task("t1"), note="first"))
        results = await asyncio.gather(
            store.submit(unit_with(task("t2"), note="second")),
            store.submit(unit_with(task("t3"), task("t1"), note="refused")),
            store.submit(unit_with(task("t4"), note="third")),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [type(None), StoreRefusedError, type(None)]
        names = [(note.seq, note.name) for note in await store.notifications("s", after=0, limit=9)]
        assert names == [(1, "first"), (2, "second"), (3, "third")]
        assert await store.task("s", "t3") is None
        assert await store.task("s", "t4") is not None

    run(scenario)


def test_reads_see_a_unit_whole_or_not_at_all_and_at_the_latest_when_it_is_durable(run: Run) -> None:
    async def scenario(store: Store) -> None:
        durable = store.submit(unit_with(task(), note="x"))
        snapshot = await store.load("s")
        assert (len(snapshot.tasks), snapshot.last_seq) in ((0, 0), (1, 1))
        await durable
        assert await store.task("s", "t1") is not None

    run(scenario)


def test_sqlite_lets_nobody_read_what_is_not_committed() -> None:
    async def main() -> None:
        store = SqliteStore.in_memory()
        durable = store.submit(unit_with(task(), note="x"))
        assert await store.task("s", "t1") is None
        await durable
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize("change", [{"arrival": 1 << 70}, {"prompt": "\ud800"}], ids=["number", "text"])
def test_what_no_database_can_keep_is_refused_alone(run: Run, change: dict[str, Any]) -> None:
    async def scenario(store: Store) -> None:
        results = await asyncio.gather(
            store.submit(unit_with(task("t1"), note="a")),
            store.submit(unit_with(replace(task("t2"), **change), note="b")),
            store.submit(unit_with(task("t3"), note="c")),
            return_exceptions=True,
        )
        assert [type(each) for each in results] == [type(None), StoreRefusedError, type(None)]
        assert [note.name for note in await store.notifications("s", after=0, limit=9)] == ["a", "c"]

    run(scenario)


def test_nul_in_a_text_that_reaches_the_store_does_no_harm_to_others(run: Run) -> None:
    async def scenario(store: Store) -> None:
        results = await asyncio.gather(
            store.submit(unit_with(task("t1"), note="a")),
            store.submit(unit_with(replace(task("t2"), progress_note="a\0b"), note="b")),
            store.submit(unit_with(replace(task("t3"), result=ChannelResponse(final="a\0b")), note="c")),
            return_exceptions=True,
        )
        assert [results[0], results[2]] == [None, None]
        kept = await store.task("s", "t3")
        assert kept is not None
        assert kept.result == ChannelResponse(final="a\0b"), "in JSON it is a text like any other"
        assert await store.task("s", "t\0") is None

    run(scenario)


def test_listeners_hear_of_a_commit_before_the_submitter_goes_on(run: Run) -> None:
    async def scenario(store: Store) -> None:
        heard: list[str] = []

        def listen(notes: Sequence[Note], _: Sequence[int]) -> None:
            heard.extend(note.name for note in notes)

        store.listen("s", listen, lambda _: None)
        await store.submit(unit_with(note="x"))
        assert heard == ["x"]
        store.unlisten("s")
        await store.submit(unit_with(note="y"))
        assert heard == ["x"]

    run(scenario)


def test_one_submitter_that_gives_up_does_not_take_its_unit_back(run: Run) -> None:
    async def scenario(store: Store) -> None:
        store.submit(unit_with(task("t1"))).cancel()
        await store.flushed()
        assert await store.task("s", "t1") is not None

    run(scenario)


def test_open_and_dead_work_is_found_and_ended_work_is_not(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for number, state in enumerate(TaskState):
            unit.insert_task(replace(task(f"t-{state}", arrival=number), state=state, started_at=1.0))
        unit.put_totals(AgentTotals(session_id="s", agent_id="alice", tasks=len(TaskState)))
        for number, mail_state in enumerate(MailState):
            unit.insert_mail(replace(mail(f"m-{mail_state}", sequence=number, arrival=number), state=mail_state))
        await store.submit(unit)
        snapshot = await store.load("s")
        assert [each.id for each in snapshot.tasks] == ["t-queued", "t-running"]
        assert [each.id for each in snapshot.mails] == ["m-queued", "m-delivered"]
        assert [each.id for each in await store.dead_tasks("s")] == ["t-failed", "t-dead"]
        assert snapshot.dead_tasks == {"alice": 2}
        assert [each.id for each in await store.dead_mail("s")] == ["m-dead"]
        assert snapshot.last_arrival == len(TaskState) - 1
        assert len(await store.mailbox("s", "alice", limit=3)) == 3
        assert (await store.mailbox("s", "alice", limit=1))[0].id == "m-dead"
        assert [each.id for each in await store.sent_mail("s", "user", limit=2)] == ["m-dead", "m-archived"]
        assert await store.sent_mail("s", "alice", limit=2) == []

    run(scenario)


def test_threads_and_their_tasks_are_found_in_the_order_in_which_they_ran(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for task_id, started_at in (("a", 3.0), ("b", 2.0), ("c", None)):
            unit.insert_task(replace(task(task_id, thread_id="th"), started_at=started_at))
        unit.insert_task(task("d", arrival=2))
        steps = {
            (task_id, number): StepRecord(
                session_id="s",
                task_id=task_id,
                number=number,
                kind=StepKind.MODEL,
                state=StepState.DONE,
                started_at=3.0,
            )
            for number in (2, 1)
            for task_id in "abd"
        }
        for step in steps.values():
            unit.put_step(step)
        await store.submit(unit)
        assert [each.id for each in await store.tasks_of_thread("s", "alice", "th")] == ["b", "a"]
        assert await store.steps_of_thread("s", "alice", "th") == {
            "a": [steps["a", 1], steps["a", 2]],
            "b": [steps["b", 1], steps["b", 2]],
        }
        assert [(each.id, each.tasks) for each in await store.threads_of_agent("s", "alice")] == [("th", 3), ("d", 1)]
        latest = sorted(await store.threads_of_agent("s", "alice"), key=lambda each: each.last_at)[-1].id
        assert await store.latest_threads("s", "alice", limit=1) == [latest]
        assert [await store.has_thread("s", "alice", name) for name in ("th", "d", "x")] == [True, True, False]
        assert len(await store.tasks_of_agent("s", "alice", limit=2)) == 2

    run(scenario)


def test_of_a_compacted_thread_only_what_follows_is_read(run: Run) -> None:
    async def scenario(store: Store) -> None:
        unit = Unit()
        for task_id, arrival, started_at in (("a", 1, 1.0), ("b", 2, 2.0), ("c", 3, 3.0), ("d", 4, 0.5)):
            unit.insert_task(replace(task(task_id, arrival=arrival, thread_id="th"), started_at=started_at))
            unit.put_step(
                StepRecord(session_id="s", task_id=task_id, number=1, kind=StepKind.MODEL, state=StepState.DONE)
            )
        unit.put_compacted(a_compacted_thread(arrival=1))
        unit.put_compacted(a_compacted_thread(arrival=2))
        unit.put_compacted(a_compacted_thread("other", arrival=9))
        await store.submit(unit)
        assert await store.compacted_thread("s", "alice", "th") == a_compacted_thread(arrival=2)
        assert await store.compacted_thread("s", "bob", "th") is None
        tasks = await store.tasks_of_thread("s", "alice", "th", arrival=2, began_at=2.0)
        assert [each.id for each in tasks] == ["b", "c"]
        assert sorted(await store.steps_of_thread("s", "alice", "th", arrival=2, began_at=2.0)) == ["b", "c"]

    run(scenario)


def test_the_same_ids_in_two_sessions_are_two_things(run: Run) -> None:
    async def scenario(store: Store) -> None:
        theirs = replace(task("t1"), session_id="other")
        unit = unit_with(task("t1"), theirs)
        unit.insert_mail(mail("m1"))
        unit.insert_mail(replace(mail("m1"), session_id="other"))
        unit.update_task(replace(theirs, state=TaskState.CANCELLED))
        unit.update_mail(replace(mail("m1"), session_id="other", state=MailState.READ))
        await store.submit(unit)
        assert await store.task("s", "t1") == task("t1")
        assert await store.mail("s", "m1") == mail("m1")
        assert await store.task("third", "t1") is None

    run(scenario)


def test_a_session_can_be_listened_to_once(run: Run) -> None:
    async def scenario(store: Store) -> None:
        store.listen("s", lambda *_: None, lambda _: None)
        with pytest.raises(StoreInUseError, match="open already"):
            store.listen("s", lambda *_: None, lambda _: None)

    run(scenario)


def test_after_a_refusal_whoever_decided_it_is_refused_for_good_and_others_are_not(run: Run) -> None:
    async def scenario(store: Store) -> None:
        refusals: list[BaseException] = []
        await store.submit(unit_with(task("t1")))
        owned = [Unit(refusals.append) for _ in range(3)]
        owned[0].insert_task(task("t1"))
        owned[1].insert_task(task("t2"))
        owned[2].insert_task(task("t3"))
        results = await asyncio.gather(
            store.submit(owned[0]), store.submit(owned[1]), store.submit(unit_with(task("t4"))), return_exceptions=True
        )
        assert [type(result) for result in results] == [StoreRefusedError, StoreRefusedError, type(None)]
        with pytest.raises(StoreRefusedError):
            await store.submit(owned[2])
        assert len(refusals) == 1
        assert [each.id for each in (await store.load("s")).tasks] == ["t1", "t4"]

    run(scenario)


def test_whoever_was_refused_and_has_closed_the_session_slows_nobody_any_more(run: Run) -> None:
    async def scenario(store: Store) -> None:
        refused: list[BaseException] = []
        on_refused = refused.append
        store.listen("s", lambda *_: None, on_refused)
        await store.submit(unit_with(task("t1")))
        bad = Unit(on_refused)
        bad.insert_task(task("t1"))
        with pytest.raises(StoreRefusedError):
            await store.submit(bad)
        late = Unit(on_refused)
        late.insert_task(task("t2"))
        on_its_way = store.submit(late)
        store.unlisten("s")
        with pytest.raises(StoreRefusedError):
            await on_its_way
        groups = store._groups  # type: ignore[attr-defined]
        assert groups._banned == {on_refused}, "what was on its way must not be written after what was refused"
        store.listen("s", lambda *_: None, on_refused)
        store.unlisten("s")
        assert groups._banned == set()

    run(scenario)


def test_what_is_first_told_in_a_unit_that_is_refused_can_be_told_and_read_later(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore.open(tmp_path)
        await store.submit(unit_with(task("t1")))
        with pytest.raises(StoreRefusedError):
            await store.submit(unit_with(task("t1"), note="x"))
        await store.submit(unit_with(note="x"))
        await store.close()
        store = SqliteStore.open(tmp_path)
        (note,) = await store.notifications("s", after=0, limit=9)
        assert (note.name, note.params) == ("x", {"n": "x"})
        await store.close()

    asyncio.run(main())


def test_a_thousand_units_are_committed_in_few_groups(run: Run) -> None:
    async def scenario(store: Store) -> None:
        assert isinstance(store, StoreParts)
        await asyncio.gather(*(store.submit(unit_with(task(f"t{n}"), note="x")) for n in range(1000)))
        assert store.commits <= 15
        assert len((await store.load("s")).tasks) == 1000

    run(scenario)


def test_agents_of_equal_definitions_share_one_in_memory(run: Run) -> None:
    async def scenario(store: Store) -> None:
        other = replace(agent("carl"), definition=AgentDefinition(prompt="Be long."))
        unit = Unit()
        for each in (agent("alice"), agent("bert"), other):
            unit.insert_agent(each)
        await store.submit(unit)
        alice, bert, carl = (await store.load("s")).agents
        assert alice.definition is bert.definition
        assert (alice, bert, carl) == (agent("alice"), agent("bert"), other)

    run(scenario)


def test_ids_are_found_by_how_they_begin_whatever_is_in_them(run: Run) -> None:
    ids = ["%", "%a", "_b", "a", "ab", "ab%", "aé", "b"]

    async def scenario(store: Store) -> None:
        await store.submit(unit_with(*(task(each) for each in ids)))
        asked = ("%", "a", "ab", "z")
        found = {each: await store.ids_beginning("s", IdKind.TASK, each, limit=9) for each in asked}
        assert found == {"%": ["%", "%a"], "a": ["a", "ab", "ab%", "aé"], "ab": ["ab", "ab%"], "z": []}
        assert await store.ids_beginning("s", IdKind.TASK, "a", limit=2) == ["a", "ab"]
        assert await store.ids_beginning("other", IdKind.TASK, "a", limit=9) == []

    run(scenario)
