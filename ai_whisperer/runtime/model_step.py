"""One model request of a loop: its attempts, the waits between them, the pieces of its stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ai_whisperer.conversation import Answer, Turn
from ai_whisperer.core.channels import Channel, ChannelParser
from ai_whisperer.core.failures import failure_from
from ai_whisperer.core.retry import delay_before_retry
from ai_whisperer.errors import ModelError
from ai_whisperer.models.base import (
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    collect,
)
from ai_whisperer.records import StepRecord, StepState
from ai_whisperer.runtime.mcp_grants import prepare_mcp
from ai_whisperer.runtime.notices import failure_of
from ai_whisperer.runtime.tool_step import is_being_cancelled

if TYPE_CHECKING:
    from ai_whisperer.runtime.agent_work import AgentWork
    from ai_whisperer.runtime.ai_loop import AILoop


class ModelStep:
    """The last step of a loop's journal, which is a model request that has begun."""

    __slots__ = ("_agent", "_asked_at", "_loop", "_max_output_tokens", "_step")

    def __init__(self, agent: AgentWork, loop: AILoop, max_output_tokens: int | None = None) -> None:
        self._agent = agent
        self._max_output_tokens = max_output_tokens
        self._loop = loop
        self._step = loop.running.steps[-1]
        self._asked_at: float | None = None

    async def run(self, turns: tuple[Turn, ...]) -> StepRecord | None:
        """Ask until there is an answer or the policy gives up; each attempt is journaled before it begins.

        Returns the finished step, not yet recorded, or None if the agent may not begin another attempt now. A request
        that is cut off is counted before this raises `CancelledError`.
        """
        while True:
            if self._step.retry_at is not None:
                await self._wait_for_retry(self._step.retry_at)
                if not self._agent.may_step:
                    return None
                await self._journal_next_attempt()
            try:
                answer = await self._ask(turns)
            except ModelError as error:
                self._step = self._ended()
                if not self._journal_failure(error):
                    return self._ended(state=StepState.FAILED, error=failure_from(error), finished_at=self._now())
            except asyncio.CancelledError:
                self._journal_cut_off()
                raise
            else:
                return self._ended(state=StepState.DONE, answer=answer, error=None, finished_at=self._now())

    async def _ask(self, turns: tuple[Turn, ...]) -> Answer:
        if self._agent.registry.mcp is not None:
            await prepare_mcp(self._agent)
        definition = self._agent.record.definition
        request = ModelRequest(
            step_id=self._step.id,
            agent_id=self._agent.agent_id,
            system=definition.prompt,
            turns=turns,
            tools=self._agent.registry.specs,
            settings=definition.settings,
            attempt=self._step.attempt,
            max_output_tokens=self._max_output_tokens,
        )
        tell = self._stream_teller() if self._agent.workspace.bus.wants_deltas else None
        self._asked_at = self._now()
        try:
            with self._agent.workspace.stalls.guard(definition.retry.stall_seconds, tell) as guard:
                return await collect(self._agent.model.stream(request), guard.take)
        except asyncio.CancelledError as error:
            if is_being_cancelled():
                raise
            raise ModelError("The model client cancelled its own request.") from error
        except ModelError:
            raise
        except Exception as error:
            # Whatever a client library raises must end this request, not the loop.
            raise ModelError(f"The model client failed: {type(error).__name__}: {error}") from error

    def _journal_failure(self, error: ModelError) -> bool:
        """Journal a failed attempt; False if it was the last one."""
        workspace = self._agent.workspace
        delay = delay_before_retry(
            self._agent.record.definition.retry,
            attempt=self._step.failures + 1,
            error=error,
            chance=workspace.random.random,
        )
        if delay is None:
            return False
        failure, retry_at = failure_from(error), workspace.clock.now() + delay
        self._step = replace(
            self._step,
            failures=self._step.failures + 1,
            error=failure,
            retry_at=retry_at,
        )
        decision = workspace.decide(f"task:{self._step.task_id}")
        requests = self._loop.running.count(self._step)
        self._loop.running.record_step(decision, self._step)
        params = {**self._told(), "error": failure_of(failure), "retryAt": workspace.clock.shown(retry_at)}
        decision.tell("step.retried", params if requests == 1 else {**params, "requests": requests})
        decision.submit()
        return True

    def _journal_cut_off(self) -> None:
        """Journal that a request was made which will have no answer, as far as anything can be journaled now."""
        workspace = self._agent.workspace
        if self._asked_at is None or self._loop.is_cut_off or workspace.bus.failure is not None:
            return
        self._step = self._ended()
        decision = workspace.decide(f"task:{self._step.task_id}")
        self._loop.running.count(self._step)
        self._loop.running.record_step(decision, self._step)
        decision.tell("step.interrupted", self._told())
        decision.submit()

    def _told(self) -> dict[str, Any]:
        return {
            "agentId": self._agent.agent_id,
            "taskId": self._step.task_id,
            "stepId": self._step.id,
            "attempt": self._step.attempt,
        }

    def _ended(self, **changes: Any) -> StepRecord:
        """The step with these changes, and with the request that was made if it came to that.

        Clocks may be set back.
        """
        if self._asked_at is None:
            return replace(self._step, **changes)
        seconds = max(round(self._now() - self._asked_at, 6), 0.0)
        self._asked_at = None
        return replace(
            self._step,
            requests=self._step.requests + 1,
            request_seconds=self._step.request_seconds + seconds,
            **changes,
        )

    def _now(self) -> float:
        return self._agent.workspace.clock.now()

    async def _wait_for_retry(self, retry_at: float) -> None:
        self._loop.is_waiting = True
        try:
            await asyncio.sleep(max(retry_at - self._agent.workspace.clock.now(), 0.0))
        finally:
            self._loop.is_waiting = False

    async def _journal_next_attempt(self) -> None:
        self._step = replace(self._step, attempt=self._step.attempt + 1, error=None, retry_at=None)
        decision = self._agent.workspace.decide(f"task:{self._step.task_id}")
        self._loop.running.record_step(decision, self._step)
        self._loop.running.tell_started(decision, self._step)
        await decision.submit()

    def _stream_teller(self) -> Callable[[StreamEvent], None]:
        """Passes the pieces of the stream on, told apart by channel."""
        parser = ChannelParser()
        workspace = self._agent.workspace

        def send(channel: Channel, text: str) -> None:
            workspace.bus.publish_delta(
                "async.task.delta",
                cause=f"task:{self._step.task_id}",
                at=workspace.clock.now(),
                params={
                    "agentId": self._agent.agent_id,
                    "taskId": self._step.task_id,
                    "stepId": self._step.id,
                    "attempt": self._step.attempt,
                    "channel": channel,
                    "text": text,
                },
            )

        def tell(event: StreamEvent) -> None:
            match event:
                case ReasoningDelta():
                    send(Channel.ANALYSIS, event.text)
                case TextDelta():
                    for delta in parser.feed(event.text):
                        send(delta.channel, delta.text)
                case Finished():
                    for delta in parser.finish():
                        send(delta.channel, delta.text)
                case CallRequested():
                    pass

        return tell
