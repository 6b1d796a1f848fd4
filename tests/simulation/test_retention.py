"""What is pruned and deleted is gone, what is open stays, and nothing is done twice for it."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import (
    DuplicateIdError,
    InvalidInputError,
    LogPrunedError,
    ModelRefusedError,
    StateError,
    TaskEndedError,
    UnknownAgentError,
    UnknownRoomError,
    UnknownThreadError,
)
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.store.sqlite import SqliteStore
from tests.simulation.stage import call, play, play_over_crash, prompt_of, results_of, round_of, until

DAY = 86_400.0
SECRET = "the code is 4711"  # noqa: S105 - it is none


def answer(request: ModelRequest) -> Answer | str:
    if prompt_of(request) == "fail":
        raise ModelRefusedError("No.")
    return f"done: {SECRET}"


async def contents(manager: AsyncAgentSessionManager) -> str:
    """All that the store has of the session, as text."""
    store = manager._session.kernel.store
    assert isinstance(store, SqliteStore)
    rows = []
    for table in ("task", "step", "mail", "event", "message", "approval", "notification"):
        rows += [str(row) for row in store._reading.execute(f"SELECT * FROM {table}")]  # noqa: S608
    return "\n".join(rows)


def test_what_ended_before_the_horizon_has_no_content_any_more_and_what_ended_since_has() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "an old matter", task_id="old")
        await manager.send_mail("ann", "old subject", "old body", mail_id="old-mail")
        await manager.broadcast_event("data_ready", "old data", event_id="old-event")
        await manager.at_rest()
        await asyncio.sleep(40 * DAY)
        await manager.run_task("ann", "a new matter", task_id="new")
        report = await manager.prune(older_than="30d")
        assert (report.erased.tasks, report.erased.mails, report.erased.events) == (2, 1, 1)
        kept = await contents(manager)
        assert "old matter" not in kept
        assert "old body" not in kept
        assert "old data" not in kept
        assert "new matter" in kept
        old = await manager.get_task("old")
        assert (old.state, old.prompt, old.result) == (TaskState.COMPLETED, "", None)
        assert old.erased_at is not None
        assert (await manager.list_steps("old")) == []
        assert (await manager.get_task("new")).result is not None

    play(scenario, answer)


def test_a_dry_run_tells_what_would_go_and_changes_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "an old matter")
        await asyncio.sleep(2 * DAY)
        before = await contents(manager)
        told = await manager.prune(older_than="1d", dry_run=True)
        assert await contents(manager) == before
        done = await manager.prune(older_than="1d")
        assert told.dry_run
        assert (told.erased, told.first_seq) == (done.erased, done.first_seq)
        assert not (await manager.prune(older_than="1d")).erased, "nothing is left to be pruned"

    play(scenario, answer)


def test_open_work_and_dead_letters_stay_however_old_they_are() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name)
        await manager.wait_task(await manager.send_task("ann", "fail", task_id="dead"))
        await manager.pause_agent("ben")
        await manager.send_task("ben", "waits", task_id="open")
        await manager.send_mail("ben", "waits too", "unread body")
        await asyncio.sleep(90 * DAY)
        await manager.prune(older_than="1d")
        assert (await manager.get_task("dead")).prompt == "fail"
        assert [task.id for task in (await manager.dead_letters()).tasks] == ["dead"]
        await manager.resume_agent("ben")
        await manager.at_rest()
        assert (await manager.get_task("open")).state is TaskState.COMPLETED
        await manager.retry_task("dead")

    play(scenario, answer)


def test_the_usage_of_what_was_pruned_still_counts() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        for _ in range(3):
            await manager.run_task("ann", "go")
        before = await manager.usage()
        await asyncio.sleep(2 * DAY)
        await manager.prune(older_than="1h")
        assert await manager.usage() == before

    play(scenario, answer)


def test_what_was_done_under_an_id_is_not_done_again_after_it_was_pruned() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> str:
        asked.append(prompt_of(request))
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name)
        await manager.run_task("ann", "pay the bill", task_id="bill")
        await manager.send_mail("ann", "s", "b", mail_id="letter")
        await manager.broadcast_event("data_ready", 1, event_id="signal")
        await manager.at_rest()
        await asyncio.sleep(2 * DAY)
        await manager.prune(older_than="1d")
        count = len(asked)
        again = await manager.send_task("ann", "pay the bill", task_id="bill")
        assert (again.state, again.erased_at is None) == (TaskState.COMPLETED, False)
        with pytest.raises(TaskEndedError, match="It was not done again"):
            await manager.run_task("ann", "pay the bill", task_id="bill")
        with pytest.raises(DuplicateIdError):
            await manager.send_task("ben", "pay the bill", task_id="bill")
        await manager.send_mail("ann", "s", "b", mail_id="letter")
        await manager.broadcast_event("data_ready", 1, event_id="signal")
        await manager.at_rest()
        assert len(asked) == count
        with pytest.raises(StateError):
            await manager.retry_task("bill")

    play(scenario, say)


def test_a_thread_that_was_pruned_begins_anew_when_somebody_talks_in_it_again() -> None:
    seen: list[int] = []

    def say(request: ModelRequest) -> str:
        seen.append(len(request.turns))
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        for _ in range(3):
            await manager.run_task("ann", "go", thread_id="talk")
        await asyncio.sleep(2 * DAY)
        await manager.prune(older_than="1d")
        await manager.run_task("ann", "go", thread_id="talk")
        assert seen == [1, 3, 5, 1]

    play(scenario, say)


def test_the_log_says_where_it_begins_and_numbers_are_never_given_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "go")
        last = manager.last_seq
        await asyncio.sleep(2 * DAY)
        report = await manager.prune(older_than="1d")
        assert report.first_seq == last + 1
        for after in (0, last - 2):
            with pytest.raises(LogPrunedError, match=f"begins at {last + 1}") as refused:
                await manager.notifications(after=after)
            assert refused.value.data == {"firstSeq": last + 1}
        with pytest.raises(LogPrunedError):
            manager.subscribe(after=0)
        [told] = await manager.notifications(after=last)
        assert (told.seq, told.name) == (last + 1, "session.pruned")
        await manager.run_task("ann", "go")
        assert manager.last_seq > last + 1

    play(scenario, answer)


def test_a_subscriber_that_fell_behind_the_horizon_is_told_so() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        slow = manager.subscribe(after=0)
        await manager.run_task("ann", "go")
        await asyncio.sleep(2 * DAY)
        await manager.prune(older_than="1d")
        with pytest.raises(LogPrunedError):
            await slow.some()

    play(scenario, answer)


@pytest.mark.parametrize("age", ["", "30", "30 years", "-1d", "1e9d", "soon", "1.2.3d", True, None, -1.0, float("nan")])
def test_what_is_no_age_is_refused_and_nothing_pruned(age: object) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(InvalidInputError, match=r"age|too long"):
            await manager.prune(older_than=age)  # type: ignore[arg-type]

    play(scenario)


@pytest.mark.parametrize("seed", range(6))
def test_pruning_goes_on_after_a_crash_between_slices(seed: int) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        for number in range(30):
            await manager.run_task("ann", f"secret {number}", task_id=f"t{number}")
        await asyncio.sleep(2 * DAY)
        await manager.prune(older_than="1d")

    async def after(manager: AsyncAgentSessionManager) -> None:
        store = manager._session.kernel.store
        begun = await store.horizon("default") is not None or bool(await store.erasures("default"))
        if begun:
            await until(lambda: not manager._session.kernel.background._tasks)
            erased = [task.erased_at is not None for task in await manager.list_tasks("ann")]
            assert all(erased) or not any(erased) or (await store.horizon("default")) is None
        await manager.prune(older_than="1d")
        assert "secret" not in await contents(manager)
        assert await store.erasures("default") == []
        assert (await manager.send_task("ann", "secret 3", task_id="t3")).state is TaskState.COMPLETED

    play_over_crash(before, after, crash_after_seconds=2 * DAY + 31 + 0.02 * seed, seed=seed)


def test_a_deleted_thread_is_gone_from_records_mail_and_log_and_its_numbers_stay() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", f"remember {SECRET}", thread_id="private", task_id="p1")
        await manager.send_mail("ann", SECRET, SECRET, thread_id="private")
        await manager.run_task("ann", "something else", thread_id="other")
        await manager.at_rest()
        last = manager.last_seq
        await manager.delete_thread("ann", "private")
        assert SECRET not in await contents(manager)
        assert "something else" in await contents(manager)
        notes = await manager.notifications(limit=10_000)
        assert [note.seq for note in notes] == list(range(1, last + 2))
        assert "log.erased" in {note.name for note in notes}
        assert notes[-1].name == "thread.deleted"
        assert (await manager.get_task("p1")).erased_at is not None

    play(scenario, lambda request: "no secret" if "else" in prompt_of(request) else SECRET)


def test_a_thread_in_which_something_waits_is_not_deleted_and_an_unknown_one_neither() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.send_task("ann", "go", thread_id="talk")
        with pytest.raises(StateError, match="wait or run"):
            await manager.delete_thread("ann", "talk")
        await manager.at_rest()
        with pytest.raises(UnknownThreadError, match="Did you mean talk"):
            await manager.delete_thread("ann", "tolk")

    play(scenario)


def test_a_deleted_room_is_gone_and_one_of_its_id_goes_on_with_its_numbers() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name)
        room = await manager.create_room(["ann", "ben"], room_id="lobby")
        await manager.post_message(room, SECRET, message_id="m1")
        await manager.at_rest()
        last = manager.get_room("lobby").last_number
        await manager.post_message(room, "and while you answer")
        await manager.delete_room("lobby")
        assert SECRET not in await contents(manager)
        with pytest.raises(UnknownRoomError):
            manager.get_room("lobby")
        again = await manager.create_room(["ann"], room_id="lobby")
        assert again.last_number >= last
        message = await manager.post_message(again, "hello")
        assert message.number == again.last_number + 1
        await manager.at_rest()
        shown = await manager.room_messages("lobby")
        assert next(each.text for each in shown if each.erased_at is None) == "hello"

    play(scenario)


def test_an_agent_that_runs_is_asked_holds_a_lock_and_has_all_else_can_be_deleted() -> None:
    @tool(needs_approval=True)
    async def risky() -> str:
        """Do something risky."""
        return "done"

    def say(request: ModelRequest) -> Answer | str:
        turn = round_of(request)
        if request.agent_id == "asker":
            told = results_of(request)
            return told[0] if told else call("send_mail_with_switch", to_agent="gone", subject="?", body="ask me")
        if prompt_of(request) == "lock" and not turn:
            return call("acquire_lock", name="door", ttl_seconds=100_000)
        if prompt_of(request) in ("lock", "risk") or "ask me" in prompt_of(request):
            return call("risky")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("gone", {"limits": {"max_concurrent_tasks": 3}})
        await manager.create_agent("asker")
        await manager.create_agent("stays")
        await manager.create_schedule("gone", interval_seconds=100_000, prompt="wake", schedule_id="s")
        group = await manager.create_room(["gone", "stays"], room_id="g")
        chat = await manager.open_chat("gone")
        await manager.post_message(chat, "hello you")
        await manager.send_task("gone", "lock", task_id="locker")
        await manager.send_task("gone", "risk", task_id="risk")
        asking = await manager.send_task("asker", "ask")
        await until(lambda: len(manager._session.approvals.pending()) == 3)
        used = (await manager.usage()).total.usage
        for number in range(3):
            await manager.send_task("gone", "waits", task_id=f"w{number}")
        await manager.delete_agent("gone")
        with pytest.raises(UnknownAgentError):
            manager.get_agent_status("gone")
        answered = await manager.wait_task(asking)
        assert "was stopped" in (answered.result.final if answered.result else "")
        assert manager.list_locks() == []
        assert manager.list_schedules() == []
        assert manager._session.approvals.pending() == []
        assert manager.get_room(group).members == ("stays",)
        with pytest.raises(UnknownRoomError):
            manager.get_room(chat)
        assert {(await manager.get_task(f"w{number}")).state for number in range(3)} == {TaskState.CANCELLED}
        assert (await manager.usage()).total.usage.model_calls >= used.model_calls
        assert "hello you" not in await contents(manager), "what it said to others is theirs, the rest is gone"
        await manager.at_rest()
        await manager.create_agent("gone")
        assert (await manager.send_task("gone", "waits", task_id="w1")).state is TaskState.CANCELLED
        assert await manager.run_task("gone", "again") == "done"
        assert manager.get_agent_status("gone").tasks == 1

    play(scenario, say, tools=[risky])


def test_a_deleted_agent_stays_deleted_over_a_crash_and_its_numbers_go_on() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        for name in ("ann", "ben"):
            await manager.create_agent(name)
        await manager.run_task("ann", SECRET, task_id="t")
        await manager.wait_task(await manager.send_task("ann", "fail"))
        await manager.delete_agent("ann")

    async def after(manager: AsyncAgentSessionManager) -> None:
        await until(lambda: not manager._session.kernel.background._tasks)
        assert list(manager.active_sessions) == ["ben"]
        assert SECRET not in await contents(manager)
        assert (await manager.dead_letters()).tasks == []
        await manager.create_agent("ann")
        assert await manager.run_task("ann", "hello") == f"done: {SECRET}"
        assert (await manager.usage()).total.tasks == 3

    play_over_crash(before, after, answer, crash_after_seconds=20)


def test_whoever_is_told_the_result_of_a_delegated_task_may_be_gone() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "boss":
            return "done" if round_of(request) else call("delegate_task", to_agent="ben", task="work")
        return "result"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("boss", "ben"):
            await manager.create_agent(name)
        await manager.pause_agent("ben")
        await manager.run_task("boss", "go")
        await manager.delete_agent("boss")
        await manager.resume_agent("ben")
        await manager.at_rest()
        assert (await manager.list_tasks("ben"))[0].state is TaskState.COMPLETED

    play(scenario, say)


def test_a_tool_cannot_delete_its_own_agent() -> None:
    refused: list[str] = []

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        @tool
        async def vanish() -> str:
            """Go away."""
            try:
                await manager.delete_agent("ann")
            except StateError as error:
                refused.append(error.message)
            return "no"

        await manager.create_agent("ann", tools=[vanish])
        await manager.run_task("ann", "go")
        assert "cannot delete its own agent" in refused[0]

    play(scenario, lambda request: "done" if round_of(request) else call("vanish"))


def test_what_is_stored_is_told_by_what_it_is() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", "x" * 50_000)
        report = await manager.storage()
        parts = {each.name: each for each in report.parts}
        assert parts["tasks"].size_bytes > 50_000
        assert parts["log"].rows == report.last_seq
        assert report.size_bytes == sum(each.size_bytes for each in report.parts)
        assert report.database_bytes >= report.size_bytes > report.free_bytes

    play(scenario)


def test_a_thread_in_which_an_old_task_was_retried_lately_stays() -> None:
    refuses = True

    def say(_: ModelRequest) -> str:
        if refuses:
            raise ModelRefusedError("No.")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        nonlocal refuses
        await manager.create_agent("ann")
        await manager.send_task("ann", "the first", thread_id="talk", task_id="t0")
        await manager.at_rest()
        refuses = False
        for number in range(1, 8):
            await manager.run_task("ann", f"number {number}", thread_id="talk", task_id=f"t{number}")
        await asyncio.sleep(40 * DAY)
        await manager.retry_task("t0")
        await manager.at_rest()
        dry = await manager.prune(older_than="30d", dry_run=True)
        assert (await manager.prune(older_than="30d")).erased == dry.erased
        assert [task.erased_at for task in await manager.list_tasks("ann")] == [None] * 8
        await asyncio.sleep(40 * DAY)
        dry = await manager.prune(older_than="30d", dry_run=True)
        assert dry.erased.tasks == 8
        assert (await manager.prune(older_than="30d")).erased == dry.erased

    play(scenario, say)


def test_others_have_their_turn_while_many_threads_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_whisperer.runtime.api.retention._PAGE", 1)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        for _ in range(20):
            await manager.run_task("ann", "go")
        for dry_run, older_than in ((True, "0s"), (False, "30d")):
            turns, looking = 0, asyncio.ensure_future(manager.prune(older_than=older_than, dry_run=dry_run))
            while not looking.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns > 20

    play(scenario, answer)


def test_threads_are_erased_many_in_a_commit() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        for _ in range(60):
            await manager.run_task("ann", "go")
        store = manager._session.kernel.store
        assert isinstance(store, SqliteStore)
        before = store.commits
        await asyncio.sleep(1)
        assert (await manager.prune(older_than=0)).erased.tasks == 60
        assert store.commits - before < 20

    play(scenario, answer)


def test_what_is_deleted_goes_also_if_whoever_asked_gives_up() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        await manager.run_task("ann", f"remember {SECRET}", thread_id="talk")
        asked = asyncio.ensure_future(manager.delete_thread("ann", "talk"))
        while not manager._session.kernel.erasing.has_erased("ann", "talk", 1):  # noqa: ASYNC110 - at that instant
            await asyncio.sleep(0)
        asked.cancel()
        await until(lambda: not manager._session.kernel.background._tasks)
        assert asked.cancelled()
        assert SECRET not in await contents(manager)

    play(scenario, answer)
