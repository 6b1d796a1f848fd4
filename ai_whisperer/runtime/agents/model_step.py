"""One model request of a loop: its attempts, the waits between them, the pieces of its stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ai_whisperer.core.call_reading import read_calls, repairs_of
from ai_whisperer.core.contexts import estimated_usage
from ai_whisperer.core.failure_records import failure_from
from ai_whisperer.core.fallbacks import BARRED_SECONDS, bars, waits_for_any
from ai_whisperer.core.model_failures import (
    Wait,
    is_asked_for,
    longest_outage,
    wait_before_retry,
    wait_in_outage,
    wait_of_others,
)
from ai_whisperer.core.outputs import objection_to
from ai_whisperer.core.usage import believable, is_believable, seconds_between
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.definition import TAKES_IMAGES
from ai_whisperer.domain.notifications.providers import ModelSkipped
from ai_whisperer.domain.notifications.steps import StepInterrupted, StepRetried
from ai_whisperer.domain.tasks import DONE, Failure, Retried, StepRecord, StepState
from ai_whisperer.errors import (
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import (
    ModelRequest,
    StreamEvent,
    collect,
)
from ai_whisperer.runtime.agents.attachments import contents_for
from ai_whisperer.runtime.agents.inquiry import Inquiry
from ai_whisperer.runtime.agents.model_turn import (
    AskingLoop,
    ModelTurn,
    NoTurnError,
    asking_of,
    chosen_model,
    lasting_seconds,
)
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.stream_teller import StreamTeller
from ai_whisperer.runtime.agents.tool_step import is_being_cancelled
from ai_whisperer.runtime.limits.provider_turns import FREE_TURN
from ai_whisperer.runtime.limits.provider_turns import Turn as ProviderTurn

_NONE: Mapping[str, bytes] = MappingProxyType({})


class ModelStep:
    """The last step of a loop's journal, which asks a model and has begun."""

    __slots__ = ("_agent", "_asked_at", "_inquiry", "_loop", "_now", "_step")

    def __init__(self, agent: Owner, loop: AskingLoop, inquiry: Inquiry) -> None:
        self._agent = agent
        self._loop = loop
        self._inquiry = inquiry
        self._now = agent.parts.kernel.clock.now
        self._step = loop.running.journal.steps[-1]
        asking = loop.asking
        if asking is not None and asking.held_up_seconds and asking.number == self._step.number:
            outage_seconds = self._step.outage_seconds + asking.held_up_seconds
            self._step = replace(self._step, outage_seconds=outage_seconds)
            asking.held_up_seconds = 0.0
        self._asked_at: float | None = None

    def given_up(self, error: NoTurnError) -> StepRecord:
        """The step, not yet recorded, which fails without having been asked: nobody is let in."""
        now = self._now()
        failure = self._last_failure(error, is_timed=True)
        return self._ended(now, state=StepState.FAILED, error=failure, retry_at=None, finished_at=now)

    async def run(self, asked: ModelTurn) -> StepRecord | None:
        """Ask once, and tell the gate of the account what comes of it; another attempt is journaled before it begins.

        Returns the finished step, not yet recorded, or None if the attempt failed and is to be repeated: the journal
        says when. A request that is cut off is counted before this raises `CancelledError`.
        """
        if not isinstance(self._agent.record.definition.model, str):
            self._step = replace(self._step, model=asked.name)
        if self._step.retry_at is not None:
            await self._journal_next_attempt()
        try:
            answer = await self._ask(asked)
        except ModelError as error:
            return self._failed(error, asked)
        except asyncio.CancelledError:
            self._journal_cut_off()
            raise
        asked.turn.taken()
        now = self._now()
        if not self._inquiry.is_summary:
            answer = self._read(answer)
        return self._ended(now, state=DONE, answer=answer, error=None, finished_at=now)

    def _read(self, answer: Answer) -> Answer:
        """The answer with the calls that are in it, also where they are not written as they should.

        With what is wrong with it, too, if it is the last one and does not fit the output schema of the task.
        """
        read = read_calls(answer, self._agent.registry.told, step_id=self._step.id, turns=self._inquiry.turns)
        if read is not answer:
            for kind in repairs_of(read):
                self._agent.parts.counters.repaired[kind] += 1
        schema = self._loop.running.journal.task.output_schema
        if schema is None or read.calls:
            return read
        objection = objection_to(read, schema)
        return replace(read, objection=objection) if objection else read

    async def _ask(self, asked: ModelTurn) -> Answer:
        agent, inquiry = self._agent, self._inquiry
        definition, limits = agent.record.definition, agent.limits
        most_tokens = asked.reserved.max_output_tokens  # where that leaves room for less than the settings say
        if most_tokens is None and inquiry.is_summary:
            most_tokens = inquiry.output_tokens()
        request = ModelRequest(
            step_id=f"{self._step.id}.summary" if inquiry.is_summary else self._step.id,
            agent_id=agent.agent_id,
            system=inquiry.system,
            turns=inquiry.turns,
            tools=inquiry.tools,
            settings=inquiry.settings,
            attempt=self._step.attempt,
            max_output_tokens=most_tokens,
            attachments=await contents_for(agent, inquiry.turns) if inquiry.has_parts else _NONE,
        )
        tell = _ignore if inquiry.is_summary else StreamTeller(agent.parts.kernel, agent.agent_id, self._step).take
        self._asked_at = self._now()
        try:
            with agent.parts.supplies.stalls.guard(
                definition.retry.stall_seconds,
                tell,
                first_seconds=definition.retry.first_token_seconds,
                max_seconds=limits.max_answer_seconds,
                on_taken=None if asked.turn is FREE_TURN else asked.turn.taken,
            ) as guard:
                answer = await collect(asked.model.stream(request), guard.take, max_bytes=limits.max_answer_bytes)
        except asyncio.CancelledError as error:
            if is_being_cancelled():
                raise
            raise ModelError("The model client cancelled its own request.") from error
        except ModelRefusedError as error:
            if request.attachments and not isinstance(error, ModelTooLongError):
                hint = f"Images and files went along; set `{TAKES_IMAGES}: false` in settings if it takes none."
                raise ModelRefusedError(f"{error.message} {hint}") from None
            raise
        except ModelError:
            raise
        except Exception as error:
            # Whatever a client library raises must end this request, not the loop.
            raise ModelError(f"The model client failed: {type(error).__name__}: {error}") from error
        if is_believable(answer.usage):
            return answer
        usage = believable(answer.usage, lambda: estimated_usage(inquiry.input_tokens(), answer))
        return replace(answer, usage=usage)

    def _failed(self, error: ModelError, asked: ModelTurn) -> StepRecord | None:
        """Journal a failed attempt; the finished step, not yet recorded, if it was the last one.

        An outage is counted in seconds, not in attempts, and so is a refusal for which others may be the reason.
        """
        is_refused = isinstance(error, ModelRateLimitError) and not asked.turn.stands_alone
        is_timed = is_refused or isinstance(error, ModelUnavailableError)
        before, self._step = self._step, self._ended(self._now())
        if is_timed:
            took = self._step.request_seconds - before.request_seconds
            self._step = replace(self._step, outage_seconds=self._step.outage_seconds + took)
        wait = self._wait_after(error, asked.turn, is_timed=is_timed)
        self._tell_gate(error, asked.turn, wait)
        skipped, next_model = self._next_model(error, asked, wait)
        if next_model:
            self._step = replace(self._step, failures=0)
            wait = Wait(0.0)
        elif wait is None:
            now = self._now()
            failure = self._last_failure(error, is_timed=is_timed)
            return self._ended(now, state=StepState.FAILED, error=failure, finished_at=now)
        else:
            wait = self._wait_for_any(wait)
            if is_timed:
                self._step = replace(self._step, outage_seconds=self._step.outage_seconds + wait.seconds)
            else:
                self._step = replace(self._step, failures=self._step.failures + 1)
        self._journal_failure(error, wait, skipped, next_model)
        return None

    def _journal_failure(self, error: ModelError, wait: Wait, skipped: ModelSkipped | None, next_model: str) -> None:
        parts = self._agent.parts
        failure, retry_at = failure_from(error), parts.kernel.clock.now() + wait.seconds
        if wait.refused_seconds is not None:
            failure = replace(failure, message=f"{failure.message} {_told_of(wait)}")
        self._step = replace(self._step, error=failure, retry_at=retry_at)
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
                model=self._step.model or UNSET,
                next_model=next_model or UNSET,
            )
        )
        if skipped is not None:
            decision.tell(skipped)
        decision.submit()

    def _wait_after(self, error: ModelError, turn: ProviderTurn, *, is_timed: bool) -> Wait | None:
        """How long to wait until the request is repeated; None if it is not."""
        policy, limits = self._agent.record.definition.retry, self._agent.limits
        chance = self._agent.parts.kernel.random.random
        if is_timed:
            return wait_in_outage(
                policy,
                outage_seconds=self._step.outage_seconds,
                shut_seconds=turn.shut_seconds,
                error=error,
                max_outage_seconds=limits.max_outage_seconds,
                max_retry_after_seconds=limits.max_retry_after_seconds,
                chance=chance,
            )
        return wait_before_retry(
            policy,
            attempt=self._step.failures + 1,
            refusals_in_a_row=turn.refusals_in_a_row if isinstance(error, ModelRateLimitError) else 0,
            error=error,
            max_retry_after_seconds=limits.max_retry_after_seconds,
            chance=chance,
        )

    def _tell_gate(self, error: ModelError, turn: ProviderTurn, wait: Wait | None) -> None:
        """Tell the gate of the account what its request came to: it concerns all others there."""
        if isinstance(error, ModelRefusedError):
            turn.taken()  # the provider is there, and has its reasons
        if not isinstance(error, ModelRateLimitError | ModelUnavailableError):
            return
        asking_of(self._agent, self._loop)  # from now on it has its place before those that come later
        if wait is None:
            seconds = wait_of_others(
                self._agent.record.definition.retry,
                error,
                shut_seconds=turn.shut_seconds,
                max_retry_after_seconds=self._agent.limits.max_retry_after_seconds,
            )
        else:
            seconds = wait.seconds
        if isinstance(error, ModelUnavailableError):
            turn.failed(seconds=seconds, reason=error.message)
        else:
            turn.refused(seconds=seconds, is_asked_for=is_asked_for(error), reason=error.message)

    def _next_model(self, error: ModelError, asked: ModelTurn, wait: Wait | None) -> tuple[ModelSkipped | None, str]:
        """Which other model the request goes on to, if it does; before it, that the one that was asked is passed over.

        What a model refuses it would refuse again: other requests of the agent pass it over for a while too.
        """
        agent, names = self._agent, self._inquiry.models
        if len(names) == 1:
            return None, ""
        skipped = None
        if bars(error):
            clock = agent.parts.kernel.clock
            until = clock.now() + BARRED_SECONDS
            agent.bar_model(asked.name, until)
            skipped = ModelSkipped(
                agent_id=agent.agent_id, model=asked.name, until=clock.shown(until), reason=error.message
            )
        goes_on = asking_of(agent, self._loop).attempts.goes_on(
            asked.name,
            error,
            names=names,
            barred=agent.barred_models(),
            wait_seconds=None if wait is None else wait.seconds,
            is_down=asked.turn.is_down,
        )
        return skipped, chosen_model(agent, self._loop, names) if goes_on else ""

    def _wait_for_any(self, wait: Wait) -> Wait:
        """The wait, unless another of the models can be asked before it is over."""
        names = self._inquiry.models
        if len(names) == 1:
            return wait
        lasting = lasting_seconds(self._agent, chosen_model(self._agent, self._loop, names))
        seconds = waits_for_any(wait.seconds, lasting)
        return wait if seconds == wait.seconds else Wait(seconds)

    def _last_failure(self, error: ModelError, *, is_timed: bool) -> Failure:
        failure = failure_from(error)
        if not is_timed:
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
        seconds = seconds_between(self._asked_at, now)
        self._asked_at = None
        return replace(
            self._step,
            requests=self._step.requests + 1,
            request_seconds=self._step.request_seconds + seconds,
            **changes,
        )

    async def _journal_next_attempt(self) -> None:
        self._step = replace(self._step, attempt=self._step.attempt + 1, error=None, retry_at=None)
        decision = self._agent.parts.kernel.decide(f"task:{self._step.task_id}")
        self._loop.running.journal.begin(decision, self._step)
        await decision.submit()


def _ignore(event: StreamEvent) -> None:
    del event


def _told_of(wait: Wait) -> str:
    return (
        f"The provider asks to wait for {wait.refused_seconds:,.0f} seconds; it is asked again after "
        f"{wait.seconds:,.0f} ({wait.limit})."
    )
