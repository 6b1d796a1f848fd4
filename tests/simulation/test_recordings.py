"""Recorded sessions are played as they were, and the first thing that goes another way is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer, ToolResult
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.errors import (
    LockHeldError,
    ModelRateLimitError,
    ModelRefusedError,
    RecordingDiffersError,
    RecordingError,
)
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.replay.recording import Difference, Recording, Rerun, comparing
from ai_whisperer.replay.recording.comparing import LogComparison
from ai_whisperer.replay.recording.requests import RequestComparison
from ai_whisperer.replay.recording.run import Run
from tests.simulation.recording_stage import TOOLS, lived, look_up, pay, played, recorded
from tests.simulation.stage import call, calls, prompt_of, round_of, until


def say(request: ModelRequest) -> Answer | str:
    """A writer who delegates, asks, pays and sleeps; an editor who reads mail; a reader who reports."""
    prompt, number = prompt_of(request), round_of(request)
    if request.agent_id == "writer" and "report" in prompt:
        return _report(number)
    if request.agent_id == "writer" and "nap" in prompt and number == 0:
        return call("sleep", duration_seconds=50)
    if request.agent_id == "editor" and number == 0 and "may I" not in prompt:
        return call("check_mail")
    if request.agent_id == "reader" and number == 0:
        return call("send_mail", to_agent="user", subject="read", body="half of it")
    return f"{request.agent_id} has done it"


def _report(number: int) -> Answer | str:
    steps = [
        call("delegate_task", to_agent="reader", task="read the sources"),
        calls(
            ("look_up", {"what": "a long thing to look up"}),
            ("look_up", {"what": "x"}),
            ("send_mail", {"to_agent": "editor", "subject": "s", "body": "b"}),
        ),
        call("send_mail_with_switch", to_agent="editor", subject="q", body="may I?"),
        call("pay", amount=5, to="Ann"),
        call("ask_user", question="Really?"),
    ]
    return steps[number] if number < len(steps) else "the report is written"


WRITERS_TOOLS = ["send_mail", "sleep", "delegate_task", "send_mail_with_switch", "look_up", "pay", "ask_user"]


async def first_half(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("writer", {"prompt": "You write.", "tools": WRITERS_TOOLS})
    await manager.create_agent("editor", {"prompt": "You edit."})
    await manager.create_agent("reader", {"schedule": [{"interval_seconds": 30, "prompt": "tick"}]})
    await manager.send_task("writer", "write the report")
    await asyncio.sleep(0.3)
    await manager.send_mail("editor", "hi", "first mail", priority="high")
    await manager.send_task("editor", "look at it")
    await until(lambda: bool(manager._session.approvals.pending()))


async def second_half(manager: AsyncAgentSessionManager) -> None:
    await asyncio.sleep(3)
    (approval,) = await manager.list_approvals()
    await manager.approve(approval.id, reason="fine")
    await until(lambda: bool(manager._session.questions.pending()))
    (question,) = await manager.list_questions()
    await manager.answer_question(question.id, {"answer": "yes"})
    await asyncio.sleep(5)
    await manager.send_task("writer", "nap a while")
    await manager.broadcast_event("data_ready", {"x": 1})
    room = await manager.create_room(["writer", "editor"], title="talk")
    await manager.post_message(room, "hello @editor")
    await asyncio.sleep(60)
    await manager.pause_agent("editor", reason="lunch")
    await manager.send_mail("editor", "again", "second mail")
    await asyncio.sleep(5)
    await manager.resume_agent("editor")
    await manager.sleep_agent("reader", duration_seconds=10, reason="rest")
    await asyncio.sleep(15)
    mail = next(mail for mail in await manager.mailbox() if mail.sender == "reader")
    await manager.reply_mail(mail.id, "thanks")
    await asyncio.sleep(20)
    await manager.stop_agent("writer", reason="enough")


async def whole(manager: AsyncAgentSessionManager) -> None:
    await first_half(manager)
    await second_half(manager)


@cache
def team() -> Recording:
    return recorded(lived(whole, say=say))


def differs(rerun: Rerun) -> str:
    assert rerun.difference is not None, "nothing was found to differ"
    return str(rerun.difference)


def test_a_team_is_played_as_it_was_in_the_very_order_of_its_log() -> None:
    rerun = played(team(), tools=TOOLS)
    rerun.check()
    assert (rerun.compared, rerun.out_of_order) == (len(team().entries), 0)
    assert team().header.notes == ()


@pytest.mark.parametrize("consents", [True, False])
def test_who_decided_for_a_person_with_a_name_is_played_too(*, consents: bool) -> None:
    async def decide(manager: AsyncAgentSessionManager) -> None:
        await first_half(manager)
        (approval,) = await manager.list_approvals()
        await (manager.approve if consents else manager.refuse)(approval.id, by="ann@office")
        await until(lambda: bool(manager._session.questions.pending()))
        (question,) = await manager.list_questions()
        if consents:
            await manager.answer_question(question.id, {"answer": "yes"}, by="ann@office")
        else:
            await manager.refuse_question(question.id, by="ann@office")
        await asyncio.sleep(5)

    recording = recorded(lived(decide, say=say))
    decided = [entry.name for entry in recording.entries if entry.params.get("decidedBy") == "ann@office"]
    assert len(decided) == 2, decided
    played(recording).check()


@pytest.mark.parametrize("seed", range(5))
def test_it_is_played_so_whatever_runs_first_of_what_is_ready(seed: int) -> None:
    played(team(), seed=seed).check()


def test_two_runs_of_the_same_team_have_the_same_keys_ids_and_digests() -> None:
    other = recorded(lived(whole, say=say, seed=7))
    assert {reply.key: reply.asked for reply in other.replies} == {reply.key: reply.asked for reply in team().replies}
    assert {reply.key for reply in team().replies} >= {"4>writer/1", "4>writer>reader/1"}
    assert other.bodies == team().bodies


def test_a_team_whose_process_died_in_the_middle_is_played_as_it_was() -> None:
    async def dies_with_a_call_under_way(manager: AsyncAgentSessionManager) -> None:
        await first_half(manager)
        await manager.send_task("reader", "read on")
        await asyncio.sleep(0.5)

    recording = recorded(lived(dies_with_a_call_under_way, second_half, say=say, down_for_seconds=20.0))
    played(recording).check()
    assert [each.call for each in recording.inputs].count("open") == 1


def test_a_team_whose_process_was_closed_in_the_middle_of_its_work_is_played_as_it_was() -> None:
    def looks_twice(request: ModelRequest) -> Answer | str:
        return call("look_up", what="x") if round_of(request) < 2 else "done"

    async def begin(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.send_task("ann", "go")
        await manager.send_mail("ann", "s", "b")
        await asyncio.sleep(0.5)

    async def go_on(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(1.5)

    once = recorded(lived(begin, say=looks_twice))
    played(once).check()
    assert once.inputs[-1].call == "close"
    often = recorded(lived(begin, go_on, go_on, say=looks_twice, dies=False, down_for_seconds=20.0))
    played(often).check()
    assert [each.call for each in often.inputs if each.call in ("open", "close")] == ["close", "open"] * 2 + ["close"]


def test_calls_whose_outcome_is_unknown_are_not_made_again() -> None:
    @tool
    async def slow() -> str:
        """Take long."""
        await asyncio.sleep(100)
        return "done"

    def uses_it(request: ModelRequest) -> Answer | str:
        return call("slow") if round_of(request) == 0 else "so be it"

    async def begin(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.send_task("ann", "go")
        await asyncio.sleep(10)

    async def end(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(10)

    recording = recorded(lived(begin, end, say=uses_it, tools=[slow]), tools=[slow])
    rerun = played(recording)
    rerun.check()
    assert [result.result for result in recording.results] == [None]
    assert rerun.steps == 2  # the requests; the process dies as soon as it has told that the call begins


def test_failed_requests_are_made_again_after_the_wait_that_was_recorded() -> None:
    failures = iter([ModelRateLimitError("Slow down."), ModelRateLimitError("Slow down.", retry_after_seconds=7.0)])

    def fails(request: ModelRequest) -> Answer | str:
        for failure in failures:
            raise failure
        return "at last"

    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.send_task("ann", "go")
        await asyncio.sleep(60)

    recording = recorded(lived(work, say=fails))
    rerun = played(recording)
    rerun.check()
    waits = [reply.wait_seconds for reply in recording.replies]
    assert len(waits) == 3
    assert waits[1] == pytest.approx(7.0, abs=0.001)
    assert [round(each.at, 3) for each in rerun.entries] == [round(each.at, 3) for each in recording.entries]


def test_all_that_people_can_do_is_made_again() -> None:
    """Interrupts, limits, locks, schedules, messages to tasks at work, failed tasks that are retried or dismissed …"""
    failing = {"now": True}

    def talks(request: ModelRequest) -> Answer | str:
        prompt = prompt_of(request)
        if "fail" in prompt and failing["now"]:
            raise ModelRefusedError("No.")
        if "hire" in prompt and round_of(request) == 0:
            return call("create_agent", agent_id="helper", prompt="You help.")
        if "lock" in prompt and round_of(request) == 0:
            return call("acquire_lock", name="desk", ttl_seconds=30, wait_seconds=30)
        if "value" in prompt:
            return '{"n": 3}'
        return f"done: {round_of(request)}"

    async def people(manager: AsyncAgentSessionManager) -> None:
        tools = ["send_mail", "create_agent", "acquire_lock"]
        await manager.create_agent("ann", {"prompt": "p", "tools": tools}, auto_start=False)
        await manager.start_agent("ann")
        await manager.create_agent("ben", {"prompt": "p", "limits": {"max_queue_length": 5}})
        work = await manager.send_task("ann", "work", timeout_seconds=500, budget=Budget(max_tokens=100_000))
        await asyncio.sleep(0.4)
        await manager.interrupt_agent("ann", reason="wait")
        await asyncio.sleep(1)
        await manager.resume_agent("ann")
        await asyncio.sleep(0.2)
        await manager.send_task("ann", "by the way", thread_id=work.thread_id, deliver="next_step")
        await asyncio.sleep(5)
        await manager.set_limits({"max_queue_length": 9}, agent_id="ben")
        await manager.set_limits({"max_concurrent_loops": 7})
        lock = await manager.acquire_lock("desk", ttl_seconds=40)
        await manager.send_task("ann", "take the lock")
        await asyncio.sleep(5)
        await manager.release_lock("desk", lock.token)
        await asyncio.sleep(5)
        await manager.send_task("ann", "hire somebody")
        failed = await manager.send_task("ben", "fail")
        dropped = await manager.send_task("ben", "fail too")
        await asyncio.sleep(10)
        failing["now"] = False
        await manager.retry_task(failed)
        await manager.dismiss_task(dropped)
        await manager.send_task("ann", "the value", output={"type": "object", "properties": {"n": {"type": "integer"}}})
        schedule = await manager.create_schedule("ben", interval_seconds=20, prompt="tick")
        await asyncio.sleep(45)
        await manager.pause_schedule(schedule)
        await manager.resume_schedule(schedule)
        await manager.delete_schedule(schedule)
        room = await manager.open_chat("ben")
        await manager.post_message(room, "hello")
        group = await manager.create_room(["ann", "ben"], title="all")
        await manager.remove_member(group, "ann")
        await manager.add_member(group, "ann")
        await asyncio.sleep(5)
        late = await manager.send_task("ben", "late")
        await asyncio.sleep(0.1)
        await manager.cancel_task(late, reason="no need")
        await manager.sleep_agent("ben", wake_events=["go"], reason="rest")
        await asyncio.sleep(1)
        await manager.wake_agent("ben", reason="up")
        await asyncio.sleep(5)
        await manager.compact_context("ann", thread_id=work.thread_id)
        await asyncio.sleep(30)
        await manager.stop_agent("ben", reason="enough")
        await manager.start_agent("ben")

    recording = recorded(lived(people, say=talks))
    assert recording.header.notes == ()
    rerun = played(recording)
    rerun.check()
    calls_made = {each.call for each in recording.inputs}
    assert calls_made > {"interrupt_agent", "retry_task", "dismiss_task", "cancel_task", "acquire_lock", "wake_agent"}


def test_a_wait_of_a_person_that_ended_without_the_lock_ends_so_again() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.acquire_lock("desk", ttl_seconds=60, holder="Ann")
        with pytest.raises(LockHeldError):
            await manager.acquire_lock("desk", wait_seconds=3, holder="Ben")
        await manager.send_task("ann", "go")
        await asyncio.sleep(10)

    recording = recorded(lived(work, say=lambda _: "done"))
    assert recording.header.notes == ()
    assert [each.arguments.get("wait_seconds") for each in recording.inputs if each.call == "acquire_lock"] == [
        None,
        3.0,
    ]
    played(recording).check()


def test_a_changed_prompt_is_told_with_what_differs_and_can_be_ignored() -> None:
    definitions = {agent.id: agent.definition for agent in team().agents}
    changed = {"writer": replace(definitions["writer"], prompt="You write well.")}
    told = differs(played(team(), agents=changed))
    assert told.startswith("writer, task 1, request 1: the system prompt differs")
    assert "-You write.\n+You write well." in told
    played(team(), agents=changed, ignore=["system"]).check()


def test_an_updated_recording_has_what_is_asked_now() -> None:
    definitions = {agent.id: agent.definition for agent in team().agents}
    changed = {"writer": replace(definitions["writer"], prompt="You write well.")}
    updated = played(team(), agents=changed, ignore=["system"]).recording
    played(updated).check()
    assert "the system prompt differs" in differs(played(updated, agents={"writer": definitions["writer"]}))


def test_a_tool_that_is_told_otherwise_is_a_difference() -> None:
    @tool(name="look_up")
    async def other(what: str) -> str:
        """Find something."""
        return what

    told = differs(played(team(), tools=[other, pay]))
    assert told.startswith("writer, task 1, request 1: the tools differ")
    played(team(), tools=[other, pay], ignore=["tools"]).check()


def test_a_tool_that_is_missing_now_is_named() -> None:
    assert "is not there now: pay" in differs(played(team(), tools=[look_up]))
    with pytest.raises(RecordingError, match=r"calls tools that are not there now: pay\. Provide them"):
        played(team(), tools=[look_up], live_tools=True)


def test_tools_that_are_called_for_real_and_bring_something_else_are_a_difference() -> None:
    @tool(name="look_up")
    async def same(what: str) -> str:
        """Look something up."""
        return f"{what} is fine"

    @tool(name="look_up")
    async def other(what: str) -> str:
        """Look something up."""
        return f"{what} is broken"

    played(team(), tools=[same, pay], live_tools=True).check()
    told = differs(played(team(), tools=[other, pay], live_tools=True))
    assert told.startswith("writer, task 1, request 3: turn 5 differs")
    assert "+a long thing to look up is broken" in told


def test_models_can_answer_for_real_and_nothing_is_compared_then() -> None:
    asked: list[str] = []

    def answer(request: ModelRequest) -> Answer | str:
        asked.append(request.agent_id)
        return "another answer"

    class Outside(FunctionModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            await asyncio.to_thread(str)  # as whoever waits for a socket, it is woken from outside
            async for event in super().stream(request):
                yield event

    rerun = played(team(), models=lambda _: Outside(answer))
    rerun.check()
    assert {"writer", "editor", "reader"} == set(asked)
    final = [each.params["result"]["final"] for each in rerun.entries if each.name == "async.task.completed"]
    assert set(final) == {"another answer"}


def test_an_answer_that_was_changed_leads_to_a_call_that_was_not_recorded() -> None:
    first = team().replies[0]
    assert first.answer is not None
    changed = replace(first, answer=call("send_mail", to_agent="editor", subject="s", body="b"))
    told = differs(played(replace(team(), replies=(changed, *team().replies[1:]))))
    assert "mail.sent" in told or "request 2" in told


def test_a_result_that_was_changed_shows_in_the_next_request() -> None:
    changed = tuple(
        replace(each, result=ToolResult(content="x is lost")) if each.arguments == team().results[0].arguments else each
        for each in team().results
    )
    assert "request 3: turn 6 differs" in differs(played(replace(team(), results=changed)))


def test_answers_that_come_in_another_order_are_matched_by_their_keys() -> None:
    turned = replace(team(), replies=team().replies[::-1], results=team().results[::-1])
    played(turned).check()


def test_a_field_of_an_event_is_compared_whatever_it_is_called() -> None:
    """Times of the log are not compared; what somebody broadcasts is, a time too."""

    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.broadcast_event("moved", {"at": {"startsAt": "noon", "until": "night"}})

    recording = recorded(lived(work, say=lambda _: "done"))
    played(recording).check()
    inputs = tuple(
        replace(each, arguments={**each.arguments, "data": {"at": {"startsAt": "dawn", "until": "night"}}})
        for each in recording.inputs
    )
    assert '+      "startsAt": "dawn"' in differs(played(replace(recording, inputs=inputs)))


def test_the_model_that_is_asked_is_compared() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p", "model": "first"})
        await manager.send_task("ann", "go")
        await asyncio.sleep(10)

    recording = recorded(lived(work, say=lambda _: "done"))
    played(recording).check()
    (ann,) = recording.agents
    now = {"ann": replace(ann.definition, model="second")}
    told = differs(played(recording, agents=now))
    assert told.startswith("ann, task 1, request 1: the model differs")
    assert "-first\n+second" in told
    played(recording, agents=now, ignore=["settings"]).check()


def test_how_long_an_answer_may_be_is_compared() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.send_task("ann", "go", budget=Budget(max_tokens=5_000))
        await asyncio.sleep(10)

    recording = recorded(lived(work, say=lambda _: "done"))
    played(recording).check()
    inputs = tuple(
        replace(each, arguments={**each.arguments, "budget": {"max_tokens": 4_000}})
        if each.call == "send_task"
        else each
        for each in recording.inputs
    )
    assert "ann, task 1, request 1: the settings differ" in differs(played(replace(recording, inputs=inputs)))


def test_an_entry_that_was_not_recorded_is_told() -> None:
    fewer = tuple(entry for entry in team().entries if entry.name != "event.broadcast")
    assert "event.broadcast is new: it was not recorded" in differs(played(replace(team(), entries=fewer)))


def test_a_request_that_was_recorded_and_is_not_made_is_told() -> None:
    extra = replace(team().replies[0], key="4>writer/99")
    assert "4>writer/99: a model request was recorded" in differs(
        played(replace(team(), replies=(*team().replies, extra)))
    )


def test_an_input_that_is_refused_now_is_told() -> None:
    inputs = tuple(
        replace(each, arguments={**each.arguments, "agent_id": "nobody"}) if each.call == "send_task" else each
        for each in team().inputs
    )
    assert "input 4 (send_task): is refused now" in differs(played(replace(team(), inputs=inputs)))


def test_a_call_that_no_input_may_make_is_refused() -> None:
    inputs = (replace(team().inputs[0], call="close"), replace(team().inputs[0], call="_session"))
    with pytest.raises(RecordingError, match="'_session', which this AI Whisperer does not know"):
        played(replace(team(), inputs=inputs[1:]))


def test_the_difference_is_raised_as_an_assertion() -> None:
    extra = replace(team().replies[0], key="4>writer/99")
    rerun = played(replace(team(), replies=(*team().replies, extra)))
    with pytest.raises(RecordingDiffersError) as caught:
        rerun.check()
    assert isinstance(caught.value, AssertionError)


def test_secrets_and_what_is_scrubbed_are_not_in_a_recording() -> None:
    secret = "sk-" + "a1" * 12

    def leaks(request: ModelRequest) -> Answer | str:
        return call("look_up", what=secret) if round_of(request) == 0 else "Ann's key was found"

    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": f"The key is {secret}."})
        await manager.send_task("ann", f"Use {secret} for Ann.")
        await asyncio.sleep(20)

    recording = recorded(lived(work, say=leaks), scrub=lambda text: text.replace("Ann", "N."))
    written = repr(recording)
    assert secret not in written
    assert "Ann" not in written
    assert "[secret]" in written
    played(recording).check()


def test_a_secret_in_a_long_text_leaves_a_session_that_plays() -> None:
    """The log has the beginning of a long text: cut before it is redacted, that is another one than cut afterwards."""
    secret = "sk-" + "a1" * 60

    def leaks(request: ModelRequest) -> Answer | str:
        return call("look_up", what=f"{secret} {'y' * 300}") if round_of(request) == 0 else f"Ann {secret} {'z' * 300}"

    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.send_task("ann", f"{'x' * 150} {secret} {'Ann ' * 100}")
        await asyncio.sleep(90)
        await manager.send_mail("ann", "Ann's key", f"{'x' * 150} {secret} {'Ann ' * 100}")
        await asyncio.sleep(90)

    recording = recorded(lived(work, say=leaks), scrub=lambda text: text.replace("Ann", "Somebody"))
    assert recording.header.notes == ()
    written = repr(recording)
    assert secret[:40] not in written
    assert "Ann" not in written
    rerun = played(recording)
    rerun.check()
    assert [each.params for each in rerun.entries] == [each.params for each in recording.entries]


def test_a_difference_of_the_session_itself_is_told_although_it_was_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        LogComparison, "missing", lambda _: Difference(kind="missing", place="ann", what="is not told.")
    )
    recording = recorded(lived(whole, say=say), scrub=lambda text: text.replace("report", "book"))
    assert recording.header.notes == ("It does not play as it was: ann: is not told.",)


def test_secrets_that_only_their_names_tell_are_not_in_a_recording() -> None:
    hidden = "correct horse battery"

    @tool
    async def sign_in(account: dict[str, str]) -> str:
        """Sign in."""
        return f'{{"session": {{"token": "{hidden}"}}, "of": "{account["name"]}"}}'

    def leaks(request: ModelRequest) -> Answer | str:
        if "event" in prompt_of(request).lower() or round_of(request):
            return "done"
        return call("sign_in", account={"name": "Ann", "password": hidden})

    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p", "approve": ["sign_in"]})
        await manager.send_task("ann", "go")
        await until(lambda: bool(manager._session.approvals.pending()))
        (approval,) = await manager.list_approvals()
        await manager.approve(approval.id)
        await asyncio.sleep(20)
        await manager.sleep_agent("ann", wake_events=["key"])
        await manager.broadcast_event("key", {"token": hidden, "n": 1})
        await asyncio.sleep(20)

    recording = recorded(lived(work, say=leaks, tools=[sign_in]), tools=[sign_in])
    assert recording.header.notes == ()
    assert hidden not in repr(recording)
    assert '"of":"Ann"' in repr(recording)
    played(recording, tools=[sign_in]).check()


def test_a_session_is_recorded_up_to_an_entry_and_compared_from_one() -> None:
    store = lived(whole, say=say)
    half = recorded(store, first=20, last=100)
    assert (half.header.last, half.header.compared_from) == (len(half.entries), 20)
    assert 100 <= len(half.entries) < 110  # up to the end of the decision that entry 100 is of
    played(half).check()
    with pytest.raises(RecordingError, match=r"has the entries 1 to \d+; it cannot be compared from 9999 on"):
        recorded(store, first=9999)


def test_a_pruned_session_cannot_be_recorded() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.send_task("ann", "go")
        await asyncio.sleep(3600)
        await manager.prune(older_than=60)

    store = lived(work, say=lambda _: "done")
    with pytest.raises(
        RecordingError,
        match=r"begins at \d+: what came before was pruned, and a recording is played from the beginning",
    ):
        recorded(store)


def test_a_session_with_a_deleted_agent_is_recorded_up_to_that() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ben", {"prompt": "p"})
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.delete_agent("ann")

    store = lived(work, say=lambda _: "done")
    with pytest.raises(RecordingError, match=r"Entry \d+ of the log .* was erased.* --to 2"):
        recorded(store)
    played(recorded(store, last=2)).check()


def test_a_recording_says_what_it_has_less_of_than_the_session() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"}, auto_start=False)
        await manager.start_agent("ann", {"prompt": "q"})
        await manager.send_task("ann", "look")
        await asyncio.sleep(10)

    recording = recorded(lived(work, say=lambda _: "done"))
    told = "Of agents that were defined again only the last definition is kept: ann."
    assert recording.header.notes == (told,)
    played(recording).check()


def test_nothing_is_recorded_of_a_session_that_there_is_not() -> None:
    with pytest.raises(RecordingError, match="There is nothing to record of session 'other'"):
        recorded(lived(whole, say=say), session_id="other")


def _match_by_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: answers are taken in the order in which they are asked for, not by key."""
    reply_to = Run.reply_to

    async def in_order(self: Run, request: ModelRequest, model: str = "") -> Any:
        replies = list(self._recording.replies)
        taken = getattr(self, "_taken", 0)
        self._taken = taken + 1  # type: ignore[attr-defined]
        self._replies = {(self._paths.key(request.step_id), request.attempt): replies[taken % len(replies)]}
        return await reply_to(self, request, model)

    monkeypatch.setattr(Run, "reply_to", in_order)


def _compare_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: digests of requests are not compared."""
    monkeypatch.setattr(RequestComparison, "compare", lambda *_, **__: None)


def _look_at_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is told is not compared."""
    monkeypatch.setattr(comparing.LogComparison, "take", lambda *_: None)
    monkeypatch.setattr(comparing.LogComparison, "missing", lambda *_: None)


NOTHING = "nothing was found to differ"
OTHER_KEY = "^writer, task 1, request 1: the system prompt differs"
LATER = "'request 3: turn 6 differs' in 'writer: async.task.completed differs"


@pytest.mark.parametrize(
    ("plant", "caught_by", "told"),
    [
        (_match_by_order, test_answers_that_come_in_another_order_are_matched_by_their_keys, OTHER_KEY),
        (_compare_nothing, test_a_changed_prompt_is_told_with_what_differs_and_can_be_ignored, NOTHING),
        (_compare_nothing, test_a_result_that_was_changed_shows_in_the_next_request, LATER),
        (_look_at_no_log, test_an_entry_that_was_not_recorded_is_told, NOTHING),
    ],
)
def test_planted_bugs_are_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    caught_by: Callable[[], None],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team()  # as it is without the bug
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=told):
        caught_by()
