"""`stream`: what happens to one task, as typed events, from its beginning to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.core.deltas import MAX_PENDING, PendingDeltas
from ai_whisperer.core.following import Follower
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.task_events import (
    AnswerDelta,
    ModelStepEnded,
    ModelStepRetried,
    ModelStepStarted,
    ProgressReported,
    TaskEnded,
    TaskEvent,
    TaskStateChanged,
    ToolCallEnded,
    ToolCallStarted,
)
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskState
from ai_whisperer.errors import ClosedError, ModelServerError, TaskEndedError, UnknownTaskError
from ai_whisperer.models.base import Finished, ModelRequest, ReasoningDelta, StreamEvent, TextDelta
from ai_whisperer.runtime.agents.stream_teller import StreamTeller
from ai_whisperer.simulation.loop import VirtualClock
from tests.contract.records import task as task_record

from .stage import call, play, play_over_crash, prompt_of, round_of


@tool(idempotent=True)
async def look_up(name: str) -> str:
    """Look somebody up."""
    await asyncio.sleep(1)
    return f"{name} lives in Paris"


def looks_up(request: ModelRequest) -> Answer | str:
    match round_of(request):
        case 0:
            return call("look_up", name="Ada")
        case 1:
            return call("report_progress", percent=50, note="half")
    return "[ANALYSIS]found[/ANALYSIS][FINAL]In Paris.[/FINAL]"


async def collected(manager: AsyncAgentSessionManager, task_id: str) -> list[TaskEvent]:
    return [event async for event in manager.stream(task_id)]


def shapes(events: list[TaskEvent]) -> list[str]:
    """The events without those whose number or place depends on who was there when."""
    told: list[str] = []
    for event in events:
        match event:
            case TaskStateChanged():
                told.append(event.state)
            case ToolCallStarted():
                told.append(f"{event.tool}{event.arguments}")
            case ToolCallEnded():
                told.append(event.content if event.tool == "look_up" else f"{event.tool} ended")
            case TaskEnded():
                told.append(f"= {event.answer}")
            case AnswerDelta() | ProgressReported():
                pass
            case _:
                told.append(type(event).__name__)
    return told


LIFE = [
    "queued",
    "running",
    "ModelStepStarted",
    "ModelStepEnded",
    'look_up{"name":"Ada"}',
    "Ada lives in Paris",
    "ModelStepStarted",
    "ModelStepEnded",
    'report_progress{"percent":50,"note":"half"}',
    "report_progress ended",
    "ModelStepStarted",
    "ModelStepEnded",
    "completed",
    "= In Paris.",
]


def final_text(events: list[TaskEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, AnswerDelta) and event.channel == "final")


def test_a_stream_tells_the_life_of_a_task_and_ends_with_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "Where is Ada?")
        live = await collected(manager, task.id)
        assert shapes(live) == LIFE
        assert final_text(live) == "In Paris."
        times = [event.at for event in live if not isinstance(event, ProgressReported)]
        assert times == sorted(times)
        after = await collected(manager, task.id)
        assert shapes(after) == LIFE
        assert final_text(after) == "In Paris."
        ended = after[-1]
        assert isinstance(ended, TaskEnded)
        assert ended.task == await manager.get_task(task)
        for events in (live, after):
            (progress,) = [event for event in events if isinstance(event, ProgressReported)]
            assert (progress.percent, progress.note) == (50, "half")

    play(scenario, looks_up, tools=[look_up])


@pytest.mark.parametrize("joined_after", [0.0, 0.5, 1.5, 2.5, 3.5, 4.5])
def test_whoever_joins_later_is_told_the_same_steps(joined_after: float) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "Where is Ada?", task_id="t")
        await asyncio.sleep(joined_after)
        assert shapes(await collected(manager, "t")) == LIFE

    play(scenario, looks_up, tools=[look_up])


def test_a_reader_that_is_slow_is_told_every_step_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "Where is Ada?", task_id="t")
        events: list[TaskEvent] = []
        async for event in manager.stream("t"):
            events.append(event)
            await asyncio.sleep(7)
        assert shapes(events) == LIFE

    play(scenario, looks_up, tools=[look_up])


def test_a_stream_goes_on_after_a_crash_with_what_was_and_what_comes() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "Where is Ada?", task_id="t")
        await collected(manager, "t")

    async def after(manager: AsyncAgentSessionManager) -> None:
        events = await collected(manager, "t")
        steps = [event.step_id for event in events if isinstance(event, ModelStepEnded)]
        assert steps == ["t.1", "t.3", "t.5"]
        assert shapes(events)[-2:] == LIFE[-2:]

    play_over_crash(before, after, looks_up, tools=[look_up], crash_after_seconds=2.5)


def test_the_events_of_a_continuation_follow_with_its_own_id_and_the_answer_is_whole() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if "first" in prompt_of(request):
            return '{"final": "One.", "continuation": {"status": "CONTINUE"}}'
        return "Two."

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "first", task_id="t")
        for events in (await collected(manager, task.id), await collected(manager, task.id)):
            states = [(event.task_id, event.state) for event in events if isinstance(event, TaskStateChanged)]
            assert states == [
                ("t", TaskState.QUEUED),
                ("t", TaskState.RUNNING),
                ("t", TaskState.CONTINUED),
                ("t~1", TaskState.QUEUED),
                ("t~1", TaskState.RUNNING),
                ("t~1", TaskState.COMPLETED),
            ]
            ended = events[-1]
            assert isinstance(ended, TaskEnded)
            assert ended.answer == "One.\nTwo."

    play(scenario, say)


def test_a_task_that_is_cancelled_ends_its_stream_without_an_answer() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "Where is Ada?", task_id="t")
        reading = asyncio.ensure_future(collected(manager, "t"))
        await asyncio.sleep(1.5)
        await manager.cancel_task("t")
        ended = (await reading)[-1]
        assert isinstance(ended, TaskEnded)
        assert (ended.answer, ended.task.state) == (None, TaskState.CANCELLED)

    play(scenario, looks_up, tools=[look_up])


def test_a_reader_that_was_cancelled_in_between_misses_nothing() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "Where is Ada?", task_id="t")
        stream = manager.stream("t")
        events: list[TaskEvent] = []
        while not events or not isinstance(events[-1], TaskEnded):
            try:
                async with asyncio.timeout(0.003):
                    events.append(await anext(stream))
            except TimeoutError:
                pass
        assert shapes(events) == LIFE
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    play(scenario, looks_up, tools=[look_up])


class Talker:
    """A model that streams without end, in small pieces."""

    async def stream(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        pieces = [f"{number} " for number in range(20_000)]
        for index, piece in enumerate(pieces):
            yield TextDelta(text=piece)
            if index % 100 == 0:
                await asyncio.sleep(0.01)
        yield Finished(finish="stop", usage=Usage(), model="talker")

    async def close(self) -> None:
        pass


def test_a_reader_who_comes_while_an_answer_streams_has_what_came_before_too() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "talk", task_id="t")
        await asyncio.sleep(0.2)
        async for event in manager.stream("t"):
            if isinstance(event, AnswerDelta):
                assert event.text.startswith("0 1 2 ")
                break

    play(scenario, models=lambda _: Talker())


class Stammerer:
    """A model that is cut off twice in its answer."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        await asyncio.sleep(1)
        yield ReasoningDelta(text="I think.")
        if request.attempt < 3:
            yield TextDelta(text="Not")
            raise ModelServerError
        yield TextDelta(text="[ANALYSIS]I know.[/ANALYSIS]All of it.")
        await asyncio.sleep(1)
        yield Finished()

    async def close(self) -> None:
        pass


def test_a_request_that_is_repeated_tells_each_attempt_in_its_time() -> None:
    clock = VirtualClock()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "talk", task_id="t")
        events = await collected(manager, "t")
        times = [event.at for event in events]
        assert times == sorted(times)
        started = [event for event in events if isinstance(event, ModelStepStarted)]
        retried = [event for event in events if isinstance(event, ModelStepRetried)]
        assert [event.attempt for event in started] == [1, 2, 3]
        assert [event.attempt for event in retried] == [1, 2]
        assert [event.error.code for event in retried] == ["model_server"] * 2
        for failed, again in zip(retried, started[1:], strict=True):
            assert failed.at < failed.retry_at <= again.at < failed.retry_at + 0.1
        after = await collected(manager, "t")
        assert [event.at for event in after] == sorted(event.at for event in after)
        analysis = [event.text for event in after if isinstance(event, AnswerDelta) and event.channel == "analysis"]
        assert analysis == ["I think.\nI know."]

    play(scenario, models=lambda _: Stammerer(), clock=clock)


def test_a_request_that_waits_tells_what_the_wall_clock_will_show_when_it_is_repeated() -> None:
    clock = VirtualClock()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"retry": {"first_delay_seconds": 600.0, "max_delay_seconds": 600.0}})
        await manager.send_task("alice", "talk", task_id="t")
        stream = manager.stream("t")
        while not isinstance(event := await anext(stream), ModelStepRetried):
            pass
        clock.set(3_600)
        await asyncio.sleep(100)
        async for late in manager.stream("t"):
            if isinstance(late, ModelStepRetried):
                assert late.retry_at == event.retry_at + 3_600
                break
        assert (await manager.list_steps("t"))[0].retry_at == event.retry_at + 3_600
        assert late.at == event.at

    play(scenario, models=lambda _: Stammerer(), clock=clock)


def test_a_reader_that_missed_the_pieces_of_the_last_attempt_has_its_whole_text() -> None:
    task = task_record("t")
    follower = Follower(task)
    params = {"taskId": "t", "stepId": "t.1", "attempt": 1, "channel": "final", "text": "Not"}
    note = Notification(session_id="s", seq=0, name="async.task.delta", params=params, at=1.0, cause="task:t")
    assert follower.piece(note) is not None
    step = StepRecord(
        session_id="s",
        task_id="t",
        number=1,
        kind=StepKind.MODEL,
        state=StepState.DONE,
        attempt=2,
        answer=Answer(text="All of it."),
        started_at=0.0,
        finished_at=2.0,
    )
    assert final_text(list(follower.look(task, [step]))) == "All of it."


@pytest.mark.parametrize("seconds", [0.2, 1.9])
def test_a_reader_who_comes_while_somebody_else_listens_is_told_how_much_is_missing(seconds: float) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        other = manager.subscribe(deltas=True)
        await manager.create_agent("alice")
        await manager.send_task("alice", "talk", task_id="t")
        await asyncio.sleep(seconds)
        events = [event async for event in manager.stream("t")]
        pieces = [event for event in events if isinstance(event, AnswerDelta)]
        whole = "".join(f"{number} " for number in range(20_000))
        assert pieces[0].skipped > 0
        assert whole.endswith("".join(piece.text for piece in pieces))
        assert sum(piece.skipped + len(piece.text) for piece in pieces) == len(whole)
        other.close()

    play(scenario, models=lambda _: Talker())


def test_what_nobody_hears_is_bounded_and_whoever_comes_then_is_told_how_much_is_missing() -> None:
    tellers: list[StreamTeller] = []

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "talk", task_id="t")
        await asyncio.sleep(1.9)
        (teller,) = tellers
        assert teller._kept is not None
        assert teller._kept.size <= MAX_PENDING
        assert sum(len(event.text) for event in teller._unheard if isinstance(event, TextDelta)) <= 16 << 10
        pieces = [event async for event in manager.stream("t") if isinstance(event, AnswerDelta)]
        whole = "".join(f"{number} " for number in range(20_000))
        assert len(pieces[0].text) > MAX_PENDING // 2
        assert whole.endswith("".join(piece.text for piece in pieces))
        assert sum(piece.skipped + len(piece.text) for piece in pieces) == len(whole)

    with pytest.MonkeyPatch.context() as patch:
        begin = StreamTeller.__init__

        def noted(self: StreamTeller, *given: Any) -> None:
            begin(self, *given)
            tellers.append(self)

        patch.setattr(StreamTeller, "__init__", noted)
        play(scenario, models=lambda _: Talker())


def test_what_waits_for_a_slow_reader_is_bounded_and_the_whole_text_comes_at_the_end() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_agent("bob")
        await manager.send_task("alice", "talk", task_id="t")
        stream = manager.stream("t")
        while not isinstance(await anext(stream), ModelStepStarted):
            pass
        await manager.send_task("bob", "talk, and push her out", task_id="other")
        await asyncio.sleep(1.9)
        waiting = stream._source._subscription._deltas  # type: ignore[attr-defined]
        assert 0 < waiting.size <= MAX_PENDING
        assert all(piece.note.params["taskId"] == "t" for piece in waiting._pieces)
        rest = [event async for event in stream]
        assert any(isinstance(event, AnswerDelta) and event.skipped for event in rest)
        (ended,) = [event for event in rest if isinstance(event, ModelStepEnded)]
        assert ended.text.split() == [str(number) for number in range(20_000)]

    play(scenario, models=lambda _: Talker())


def test_a_stream_that_nobody_reads_any_more_is_forgotten() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "Where is Ada?", task_id="t")
        async for _ in manager.stream("t"):
            break
        async with manager.stream("t") as stream:
            await anext(stream)
        assert not manager._session.kernel.log._subscriptions

    play(scenario, looks_up, tools=[look_up])


def test_a_session_that_is_closed_tells_the_readers_of_its_tasks() -> None:
    async def main() -> None:
        manager = AsyncAgentSessionManager(templates=(), model="scripted")
        await manager.open()
        await manager.create_agent("alice", auto_start=False)
        await manager.send_task("alice", "go", task_id="t")
        reading = asyncio.ensure_future(collected(manager, "t"))
        await asyncio.sleep(0)
        await manager.flushed()
        await manager.close()
        with pytest.raises(ClosedError, match="resumes later"):
            await reading

    asyncio.run(main())


def test_a_task_that_does_not_exist_has_no_stream() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(UnknownTaskError):
            await anext(manager.stream("nothing"))

    play(scenario)


def test_run_task_takes_what_send_task_takes() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", auto_start=False)
        with pytest.raises(TaskEndedError, match="failed"):
            await manager.run_task("alice", "go", task_id="t", timeout_seconds=5, priority="urgent")
        assert (await manager.get_task("t")).priority == "urgent"

    play(scenario)


def test_reasoning_without_an_opening_tag_is_taken_back_in_the_stream() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann")
        task = await manager.send_task("ann", "What is it?")
        pieces = [event for event in await collected(manager, task.id) if isinstance(event, AnswerDelta)]
        told = {"analysis": "", "final": ""}
        for piece in pieces:
            if piece.reclassifies:
                told = {"analysis": "".join(told.values()), "final": ""}
            told[piece.channel] += piece.text
        assert sum(piece.reclassifies for piece in pieces) == 1
        assert pieces[0].channel == "final", "nobody could know"
        result = (await manager.get_task(task.id)).result
        assert result is not None
        assert {name: text.strip() for name, text in told.items()} == {
            "analysis": result.analysis,
            "final": result.final,
        }

    play(scenario, models=lambda _: UnopenedReasoning())


class UnopenedReasoning:
    """A model whose server has left out the opening tag, in pieces with time between them."""

    async def stream(self, _: ModelRequest) -> AsyncIterator[StreamEvent]:
        for text in ("Let me see", ".\nIt is 42.\n</th", "ink>\n", "\nIt is ", "42."):
            await asyncio.sleep(1)
            yield TextDelta(text=text)
        yield Finished()


def test_a_reader_that_lags_is_still_told_what_was_reasoning() -> None:
    pending = PendingDeltas()

    def put(channel: str, text: str, **more: Any) -> None:
        params = {"taskId": "t", "stepId": "t.1", "attempt": 1, "channel": channel, "text": text, **more}
        note = Notification(seq=0, session_id="s", name="async.task.delta", cause="", at=0.0, params=params)
        pending.put(0, note)

    put("analysis", "I think")
    put("analysis", ".", analysisUntil=7)
    put("final", "x" * (2 * MAX_PENDING), analysisUntil=7)
    taken = []
    while pending:
        taken.append(pending.take().params)
    assert all(params["analysisUntil"] == 7 for params in taken)
    assert taken[0]["skipped"] > 0
