"""Faults of models: what is retried, what is given up, and what the journal says of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import ModelError, ModelNameError, ModelRateLimitError, ModelRefusedError, ModelServerError
from ai_whisperer.models.base import Finished, Model, ModelRequest, StreamEvent, TextDelta
from tests.simulation.stage import play

Event = StreamEvent | ModelError | float
"""What a stream does next: send, raise, or wait so many seconds."""


class StreamModel:
    """Plays one list of events for each attempt; the last list again and again."""

    def __init__(self, *attempts: list[Event]) -> None:
        self._attempts = list(attempts)
        self.asked: list[int] = []
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked.append(request.attempt)
        events = self._attempts.pop(0) if len(self._attempts) > 1 else self._attempts[0]
        for event in events:
            if isinstance(event, float):
                await asyncio.sleep(event)
            elif isinstance(event, ModelError):
                raise event
            else:
                yield event

    async def close(self) -> None:
        self.closed = True


GOOD: list[Event] = [TextDelta(text="fine"), Finished()]


def with_model(model: Model) -> Callable[[str], Model]:
    return lambda _: model


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ([ModelServerError()], "model_server"),
        ([ModelRateLimitError()], "model_rate_limit"),
        ([TextDelta(text="half of it")], "model_cut_off"),
        ([Finished()], "model_empty"),
        ([TextDelta(text="  \n"), Finished()], "model_empty"),
        ([1000.0, *GOOD], "model_timeout"),
        ([TextDelta(text="a"), 1000.0, *GOOD], "model_timeout"),
    ],
)
def test_a_passing_fault_is_retried_and_each_attempt_is_journaled(first: list[Event], code: str) -> None:
    model = StreamModel(first, GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert ended.result.final == "fine"
        assert model.asked == [1, 2]
        told = [note for note in await manager.notifications() if note.name == "step.retried"]
        assert [(note.params["attempt"], note.params["error"]["code"]) for note in told] == [(1, code)]
        (step,) = await manager.list_steps(task.id)
        assert (step.attempt, step.state, step.error) == (2, StepState.DONE, None)

    play(scenario, models=with_model(model))


def test_a_stream_that_keeps_coming_is_not_a_stall_however_long_it_takes() -> None:
    events: list[Event] = [event for _ in range(50) for event in (100.0, TextDelta(text="x"))]
    model = StreamModel([*events, Finished()])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "x" * 50
        assert model.asked == [1]

    play(scenario, models=with_model(model))


def test_retry_after_is_waited_for() -> None:
    model = StreamModel([ModelRateLimitError(retry_after_seconds=600.0)], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        begun = asyncio.get_running_loop().time()
        await manager.run_task("alice", "go")
        assert 600 <= asyncio.get_running_loop().time() - begun < 700

    play(scenario, models=with_model(model))


def test_a_lasting_fault_fails_the_task_after_the_last_attempt_and_the_agent_goes_on() -> None:
    model = StreamModel([ModelServerError("down")])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"retry": {"max_attempts": 3}})
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.state is TaskState.FAILED
        assert ended.error is not None
        assert (ended.error.code, ended.error.message) == ("model_server", "down")
        assert model.asked == [1, 2, 3]
        assert manager.get_agent_status("alice").state == "idle"

    play(scenario, models=with_model(model))


def test_a_refused_request_is_not_repeated() -> None:
    model = StreamModel([ModelRefusedError("bad key")])

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.error is not None
        assert ended.error.message == "bad key"
        assert model.asked == [1]

    play(scenario, models=with_model(model))


def test_a_model_that_cannot_be_made_fails_the_task_with_the_reason() -> None:
    def factory(name: str) -> Model:
        raise ModelNameError(f"There is no model '{name}'.")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"model": "nonsense:x"})
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.error is not None
        assert ended.error.message == "There is no model 'nonsense:x'."

    play(scenario, models=factory)


def test_a_pause_cuts_the_wait_for_the_next_attempt_short_and_resume_waits_on() -> None:
    model = StreamModel([ModelRateLimitError(retry_after_seconds=600.0)], GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(10)
        await manager.pause_agent("alice")
        await asyncio.sleep(10)
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        await manager.resume_agent("alice")
        await manager.wait_task(task)
        assert 600 <= asyncio.get_running_loop().time() - begun < 700
        assert model.asked == [1, 2]

    play(scenario, models=with_model(model))


def test_the_model_client_is_closed_when_the_agent_is_stopped() -> None:
    model = StreamModel(GOOD)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.run_task("alice", "go")
        await manager.stop_agent("alice")
        assert model.closed

    play(scenario, models=with_model(model))


def test_one_agents_faults_do_not_touch_another() -> None:
    models = {"bad": StreamModel([ModelServerError()]), "good": StreamModel(GOOD)}

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", {"model": "bad"})
        await manager.create_agent("b", {"model": "good"})
        failing = await manager.send_task("a", "go")
        assert [await manager.run_task("b", "go") for _ in range(5)] == ["fine"] * 5
        assert (await manager.wait_task(failing)).state is TaskState.FAILED

    play(scenario, models=lambda name: models[name])
