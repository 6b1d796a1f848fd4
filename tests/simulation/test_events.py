"""Events: who is woken, who gets a task, what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, WhispererError
from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import DuplicateIdError, InvalidInputError, TooLargeError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, play_over_crash, prompt_of, results_of, round_of, until


def test_an_event_wakes_those_who_listen_and_tells_them_name_and_data() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name, events in {"a": ["alert"], "b": ["alert", "other"], "c": ["other"]}.items():
            await manager.create_agent(name)
            await manager.sleep_agent(name, wake_events=events)
        event = await manager.broadcast_event("alert", {"level": 3})
        assert (event.woken, event.notified, event.sender) == (2, 0, "user")
        await until(lambda: manager.get_agent_status("a").state is AgentState.IDLE)
        woken = (await manager.list_tasks("a"))[0]
        assert "Event 'alert' was broadcast by user. Data: {\"level\":3}" in without_marks(woken.prompt)
        assert (woken.kind, woken.cause) == ("wake_up", f"event:{event.id}")
        assert manager.get_agent_status("c").state is AgentState.SLEEPING
        assert await manager.list_tasks("c") == []

    play(scenario)


def test_an_event_becomes_a_task_for_subscribers() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("sub", {"subscribes": ["data_ready"]})
        await manager.create_agent("all", {"subscribes": ["*"]})
        await manager.create_agent("none")
        event = await manager.broadcast_event("data_ready", {"source": "analyzer"})
        assert event.notified == 2
        assert [(await manager.list_tasks(name))[0].kind for name in ("sub", "all")] == ["event", "event"]
        assert await manager.list_tasks("none") == []
        assert await manager.list_events() == [event]

    play(scenario)


def test_a_subscriber_that_sleeps_until_the_event_gets_one_task_only() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("sub", {"subscribes": ["alert"]})
        await manager.sleep_agent("sub", wake_events=["alert"])
        event = await manager.broadcast_event("alert")
        assert (event.woken, event.notified) == (1, 0)
        assert len(await manager.list_tasks("sub")) == 1

    play(scenario)


def test_an_event_that_nobody_knows_is_fine_and_recorded() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        event = await manager.broadcast_event("never_heard_of")
        assert (event.woken, event.notified) == (0, 0)
        assert [note.params["event"] for note in await manager.notifications()] == ["never_heard_of"]

    play(scenario)


def test_an_agent_broadcasts_and_does_not_hear_itself() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "caster" and round_of(request) == 0:
            return call("broadcast_event", event="data_ready", data={"rows": 7})
        return results_of(request)[-1] if round_of(request) else "heard"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("caster", {"subscribes": ["*"]})
        await manager.create_agent("sub", {"subscribes": ["data_ready"]})
        final = await manager.run_task("caster", "go")
        assert final == "Broadcast 'data_ready': 0 agent(s) woken, 1 subscriber(s) told."
        caster, sub = await manager.list_tasks("caster"), await manager.list_tasks("sub")
        assert len(caster) == 1
        assert (sub[0].parent_id, sub[0].root_id) == (caster[0].id, caster[0].id)
        assert (await manager.list_events())[0].cause == f"task:{caster[0].id}"

    play(scenario, say)


def test_a_paused_sleeper_hears_the_event_and_works_after_the_resume() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.sleep_agent("a", wake_events=["alert"])
        await manager.pause_agent("a")
        await manager.broadcast_event("alert")
        await asyncio.sleep(10)
        assert manager.get_agent_status("a").state is AgentState.PAUSED
        await manager.resume_agent("a")

        async def is_so() -> bool:
            return (await manager.list_tasks("a"))[0].state == "completed"

        await until(is_so)

    play(scenario)


def test_a_stopped_subscriber_finds_the_event_when_it_is_started_and_a_full_one_is_left_out() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("s", {"subscribes": ["e"], "limits": {"max_queue_length": 1}}, auto_start=False)
        assert (await manager.broadcast_event("e", 1)).notified == 1
        assert (await manager.broadcast_event("e", 2)).notified == 0
        assert [note.name for note in await manager.notifications()][-2:] == ["event.not_taken", "event.broadcast"]
        await manager.start_agent("s")

        async def is_so() -> bool:
            return (await manager.list_tasks("s"))[0].state == "completed"

        await until(is_so)

    play(scenario)


@pytest.mark.parametrize(
    ("event", "data", "error"),
    [
        ("", None, InvalidInputError),
        ("  ", None, InvalidInputError),
        ("*", None, InvalidInputError),
        ("line\nbreak", None, InvalidInputError),
        ("x" * 300, None, TooLargeError),
        ("e", object(), InvalidInputError),
        ("e", "\ud800", InvalidInputError),
        ("e", "x" * 300_000, TooLargeError),
        (7, None, InvalidInputError),
    ],
)
def test_an_event_that_makes_no_sense_is_refused_and_nothing_changes(
    event: Any, data: Any, error: type[WhispererError]
) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"subscribes": ["*"]})
        before = manager.last_seq
        with pytest.raises(error):
            await manager.broadcast_event(event, data)
        await manager.flushed()
        assert manager.last_seq == before
        assert await manager.list_tasks("a") == []
        assert await manager.list_events() == []

    play(scenario)


@pytest.mark.parametrize("crash_after", [0.5 + step * 0.002 for step in range(20)])
def test_a_broadcast_happens_wholly_or_not_at_all(crash_after: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        for number in range(5):
            await manager.create_agent(f"s{number}")
            await manager.sleep_agent(f"s{number}", wake_events=["alert"])
        await asyncio.sleep(0.5 - asyncio.get_running_loop().time())
        await manager.broadcast_event("alert")
        await asyncio.sleep(100)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await asyncio.sleep(60)
        heard = [len(await manager.list_tasks(f"s{number}")) for number in range(5)]
        assert heard == [len(await manager.list_events())] * 5

    play_over_crash(before, after, crash_after_seconds=crash_after)


def test_an_event_that_is_broadcast_twice_under_one_id_happens_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"subscribes": ["e"]})
        first, second = await asyncio.gather(
            manager.broadcast_event("e", {"n": 1}, event_id="one"),
            manager.broadcast_event("e", {"n": 1}, event_id="one"),
        )
        third = await manager.broadcast_event("e", {"n": 1}, event_id="one")
        assert first == second == third
        assert len(await manager.list_tasks("a")) == len(await manager.list_events()) == 1
        for name, data in (("e", {"n": 2}), ("other", {"n": 1})):
            with pytest.raises(DuplicateIdError):
                await manager.broadcast_event(name, data, event_id="one")

    play(scenario)


def say_sleep(**arguments: Any) -> Callable[[ModelRequest], Answer | str]:
    def say(request: ModelRequest) -> Answer | str:
        if "have been woken" in prompt_of(request):
            return "awake"
        return call("sleep", **arguments) if round_of(request) == 0 else results_of(request)[-1]

    return say


def test_an_agent_puts_itself_to_sleep_when_its_work_has_ended() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        final = await manager.run_task("a", "rest")
        assert "You will sleep until 2027-01-15T08:30:01+00:00 or until one of the events alert" in final
        await until(lambda: manager.get_agent_status("a").state is AgentState.SLEEPING)
        assert manager.get_agent_status("a").reason == "nothing to do"
        await asyncio.sleep(1800)
        assert (await manager.list_tasks("a"))[0].kind == "wake_up"

    play(scenario, say_sleep(duration_seconds=1800, wake_events=["alert"], reason="nothing to do"))


def test_an_agent_sleeps_until_a_time_of_day() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.run_task("a", "rest")
        await until(lambda: manager.get_agent_status("a").state is AgentState.SLEEPING)
        assert manager.get_agent_status("a").sleeping_until == 1_800_003_600.0

    play(scenario, say_sleep(until="2027-01-15T10:00:00+01:00"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "Give a duration, a time or at least one wake event"),
        ({"duration_seconds": -1}, "must be more than 0"),
        ({"duration_seconds": 1e300}, "at most 100 years"),
        ({"until": "tomorrow"}, "is not a time"),
        ({"until": "2030-01-01T00:00:00"}, "has no zone"),
        ({"until": "2001-01-01T00:00:00Z"}, "a time in the future"),
        ({"wake_events": ["*"]}, "cannot name an event"),
        ({"wake_events": "alert"}, "do not fit"),
        ({"duration_seconds": "soon"}, "do not fit"),
    ],
)
def test_a_sleep_that_makes_no_sense_is_an_error_for_the_model(arguments: dict[str, Any], told: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        assert told in await manager.run_task("a", "rest")
        await until(lambda: manager.get_agent_status("a").state is AgentState.IDLE)

    play(scenario, say_sleep(**arguments))


def test_one_agent_wakes_another_and_says_why() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "a" and round_of(request) == 0:
            return call("wake_agent", agent="b", reason="the data is in")
        return results_of(request)[-1] if round_of(request) else prompt_of(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.create_agent("b")
        assert "Cannot wake agent 'b': it is idle" in await manager.run_task("a", "go")
        await manager.sleep_agent("b", duration_seconds=1e6)
        assert await manager.run_task("a", "go") == "Woke b."
        assert "Reason: the data is in (from a)" in without_marks((await manager.list_tasks("b"))[0].prompt)

    play(scenario, say)
