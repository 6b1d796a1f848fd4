"""One model request of a loop: its attempts, the waits between them, the pieces of its stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ai_whisperer.core.call_reading import read_calls, repairs_of
from ai_whisperer.core.contexts import estimated_usage
from ai_whisperer.core.failure_records import failure_from
from ai_whisperer.core.model_failures import Wait, longest_outage, longest_wait, wait_before_retry, wait_in_outage
from ai_whisperer.core.usage import believable, is_believable
from ai_whisperer.domain.conversation import Answer, ToolSpec, Turn
from ai_whisperer.domain.notifications.steps import StepInterrupted, StepRetried
from ai_whisperer.domain.tasks import DONE, Failure, Retried, StepRecord, StepState
from ai_whisperer.errors import ModelError, ModelUnavailableError
from ai_whisperer.models.base import (
    Model,
    ModelRequest,
    StreamEvent,
    collect,
)
from ai_whisperer.runtime.agents.mcp import WaitingLoop
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.stream_teller import StreamTeller
from ai_whisperer.runtime.agents.tool_step import is_being_cancelled


class Asking(Struct, frozen=True, kw_only=True):
    """What is asked, and of which model: the agent's own with its conversation, or the one that writes a summary.

    Without a `model` it is that of the agent. `input_tokens` tells how long it is, by an estimate. Of a summary nobody
    is told while it comes.
    """

    system: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...]
    settings: Mapping[str, Any]
    input_tokens: Callable[[], int]
    output_tokens: Callable[[], int]
    model: Callable[[], Model] | None = None
    is_summary: bool = False


class ModelLoop(WaitingLoop, Protocol):
    """The loop whose model is asked."""

    @property
    def is_cut_off(self) -> bool: ...


class ModelStep:
    """The last step of a loop's journal, which asks a model and has begun."""

    __slots__ = ("_agent", "_asked_at", "_loop", "_max_output_tokens", "_step")

    def __init__(self, agent: Owner, loop: ModelLoop, max_output_tokens: int | None = None) -> None:
        self._agent = agent
        self._max_output_tokens = max_output_tokens
        self._loop = loop
        self._step = loop.running.journal.steps[-1]
        self._asked_at: float | None = None

    async def run(self, asking: Asking) -> StepRecord | None:
        """Ask once; another attempt is journaled before it begins.

        Returns the finished step, not yet recorded, or None if the attempt failed and is to be repeated: the journal
        says when. A request that is cut off is counted before this raises `CancelledError`.
        """
        if self._step.retry_at is not None:
            await self._journal_next_attempt()
        try:
            answer = await self._ask(asking)
        except ModelError as error:
            self._step = self._failed(error)
            if self._journal_failure(error):
                return None
            now = self._now()
            return self._ended(now, state=StepState.FAILED, error=self._last_failure(error), finished_at=now)
        except asyncio.CancelledError:
            self._journal_cut_off()
            raise
        now = self._now()
        if not asking.is_summary:
            answer = self._read(answer, asking)
        return self._ended(now, state=DONE, answer=answer, error=None, finished_at=now)

    def _read(self, answer: Answer, asking: Asking) -> Answer:
        """The answer with the calls that are in it, also where they are not written as they should."""
        read = read_calls(answer, self._agent.registry.told, step_id=self._step.id, turns=asking.turns)
        if read is not answer:
            for kind in repairs_of(read):
                self._agent.parts.counters.repaired[kind] += 1
        return read

    async def _ask(self, asking: Asking) -> Answer:
        agent = self._agent
        definition, limits = agent.record.definition, agent.limits
        request = ModelRequest(
            step_id=self._step.id,
            agent_id=agent.agent_id,
            system=asking.system,
            turns=asking.turns,
            tools=asking.tools,
            settings=asking.settings,
            attempt=self._step.attempt,
            max_output_tokens=self._max_output_tokens,
        )
        tell = _ignore if asking.is_summary else StreamTeller(agent.parts.kernel, agent.agent_id, self._step).take
        self._asked_at = self._now()
        try:
            with agent.parts.supplies.stalls.guard(
                definition.retry.stall_seconds,
                tell,
                first_seconds=definition.retry.first_token_seconds,
                max_seconds=limits.max_answer_seconds,
            ) as guard:
                model = agent.model if asking.model is None else asking.model()
                answer = await collect(model.stream(request), guard.take, max_bytes=limits.max_answer_bytes)
        except asyncio.CancelledError as error:
            if is_being_cancelled():
                raise
            raise ModelError("The model client cancelled its own request.") from error
        except ModelError:
            raise
        except Exception as error:
            # Whatever a client library raises must end this request, not the loop.
            raise ModelError(f"The model client failed: {type(error).__name__}: {error}") from error
        if is_believable(answer.usage):
            return answer
        usage = believable(answer.usage, lambda: estimated_usage(asking.input_tokens(), answer))
        return replace(answer, usage=usage)

    def _journal_failure(self, error: ModelError) -> bool:
        """Journal a failed attempt; False if it was the last one."""
        parts = self._agent.parts
        wait = self._wait_after(error)
        if wait is None:
            return False
        failure, retry_at = failure_from(error), parts.kernel.clock.now() + wait.seconds
        if wait.refused_seconds is not None:
            failure = replace(failure, message=f"{failure.message} {_told_of(wait)}")
        step = replace(self._step, error=failure, retry_at=retry_at)
        if isinstance(error, ModelUnavailableError):
            self._step = replace(step, outage_seconds=step.outage_seconds + wait.seconds)
        else:
            self._step = replace(step, failures=step.failures + 1)
        decision = parts.kernel.decide(f"task:{self._step.task_id}")
        requests = self._loop.running.journal.count(self._step)
        self._loop.running.journal.record_step(decision, self._step)
        if wait.refused_seconds is not None:
            parts.reached.wait_cut(decision, self._loop.running.journal.task, wait)
        parts.counters.retried[Retried.REQUEST] += 1
        decision.tell(
            StepRetried(
                agent_id=self._agent.agent_id,
                task_id=self._step.task_id,
                step_id=self._step.id,
                attempt=self._step.attempt,
                error=failure,
                retry_at=parts.kernel.clock.shown(retry_at),
                requests=UNSET if requests == 1 else requests,
                retry_after_seconds=UNSET if wait.refused_seconds is None else wait.refused_seconds,
            )
        )
        decision.submit()
        return True

    def _wait_after(self, error: ModelError) -> Wait | None:
        """How long to wait until the request is repeated; None if it is not."""
        policy, limits = self._agent.record.definition.retry, self._agent.limits
        chance = self._agent.parts.kernel.random.random
        if isinstance(error, ModelUnavailableError):
            return wait_in_outage(
                policy,
                outage_seconds=self._step.outage_seconds,
                error=error,
                max_outage_seconds=limits.max_outage_seconds,
                max_retry_after_seconds=limits.max_retry_after_seconds,
                chance=chance,
            )
        return wait_before_retry(
            policy,
            attempt=self._step.failures + 1,
            error=error,
            max_retry_after_seconds=limits.max_retry_after_seconds,
            chance=chance,
        )

    def _failed(self, error: ModelError) -> StepRecord:
        """The step after an attempt that failed; how long it took counts if the provider is down."""
        step = self._ended(self._now())
        if not isinstance(error, ModelUnavailableError):
            return step
        took = step.request_seconds - self._step.request_seconds
        return replace(step, outage_seconds=step.outage_seconds + took)

    def _last_failure(self, error: ModelError) -> Failure:
        failure = failure_from(error)
        if not isinstance(error, ModelUnavailableError):
            return failure
        most = self._agent.limits.max_outage_seconds
        limit = " (max_outage_seconds)" if longest_outage(error, max_outage_seconds=most) == most else ""
        waited = (
            f"The provider was waited for, for {self._step.outage_seconds:,.0f} seconds{limit}. "
            "Retry the task when it is back."
        )
        return replace(failure, message=f"{failure.message} {waited}")

    def _journal_cut_off(self) -> None:
        """Journal that a request was made which will have no answer, as far as anything can be journaled now."""
        parts = self._agent.parts
        if self._asked_at is None or self._loop.is_cut_off or parts.kernel.log.failure is not None:
            return
        self._step = self._ended(self._now())
        decision = parts.kernel.decide(f"task:{self._step.task_id}")
        self._loop.running.journal.count(self._step)
        self._loop.running.journal.record_step(decision, self._step)
        decision.tell(
            StepInterrupted(
                agent_id=self._agent.agent_id,
                task_id=self._step.task_id,
                step_id=self._step.id,
                attempt=self._step.attempt,
            )
        )
        decision.submit()

    def _ended(self, now: float, **changes: Any) -> StepRecord:
        """The step with these changes, and with the request that was made if it came to that.

        Clocks may be set back.
        """
        if self._asked_at is None:
            return replace(self._step, **changes)
        seconds = max(round(now - self._asked_at, 6), 0.0)
        self._asked_at = None
        return replace(
            self._step,
            requests=self._step.requests + 1,
            request_seconds=self._step.request_seconds + seconds,
            **changes,
        )

    def _now(self) -> float:
        return self._agent.parts.kernel.clock.now()

    async def _journal_next_attempt(self) -> None:
        self._step = replace(self._step, attempt=self._step.attempt + 1, error=None, retry_at=None)
        decision = self._agent.parts.kernel.decide(f"task:{self._step.task_id}")
        self._loop.running.journal.record_step(decision, self._step)
        self._loop.running.journal.tell_started(decision, self._step)
        await decision.submit()


async def waited_for_retry(agent: Owner, loop: ModelLoop) -> bool:
    """Wait until the last step may be tried again, if it has to be; False if the agent may not go on, now or then.

    Nothing is held meanwhile: no place among the loops at work, no tokens and no money. A suspect on trial holds up
    nobody either, since it does nothing.
    """
    retry_at = loop.running.journal.steps[-1].retry_at
    if retry_at is None:
        return True
    if not agent.may_step:
        return False  # nobody cuts a wait short that begins after the pause
    loop.running.settled()
    longest = longest_wait(agent.record.definition.retry, max_retry_after_seconds=agent.limits.max_retry_after_seconds)
    loop.is_waiting = True
    try:
        async with loop.without_place():
            await asyncio.sleep(min(max(retry_at - agent.parts.kernel.clock.now(), 0.0), longest))
    finally:
        loop.is_waiting = False
    return agent.may_step


def _ignore(event: StreamEvent) -> None:
    del event


def _told_of(wait: Wait) -> str:
    return (
        f"The provider asks to wait for {wait.refused_seconds:,.0f} seconds; it is asked again after "
        f"{wait.seconds:,.0f} ({wait.limit})."
    )
