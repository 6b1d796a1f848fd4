"""Notifications about steps: the model requests and tool calls of a task."""

from __future__ import annotations

from typing import Self

import msgspec
from msgspec import UNSET, UnsetType

from ai_whisperer.domain.conversation import ToolRun, Usage
from ai_whisperer.domain.notifications.base import OfStep, notification
from ai_whisperer.domain.tasks import TOOL, Failure, StepKind, StepRecord, StepState, TaskRecord


@notification("step.output", "| {text:last}", level="debug")
class StepOutput(OfStep, frozen=True, kw_only=True):
    """A piece of what a tool writes while it runs; not numbered, not kept."""

    text: str
    skipped: int | UnsetType = UNSET


@notification(
    "step.started",
    "[kind=compaction?began a compaction|called {tool}|asked its model {model}|asked its model]",
    level="debug",
    watched=False,
)
class StepStarted(OfStep, frozen=True, kw_only=True):
    """A model request, a tool call or a compaction began. A request that would be too long becomes a compaction.

    `attempt` and `started_at`, when it first began since its task did, are there if it is begun again. `model` is which
    of its models an agent asks that has several.
    """

    kind: StepKind
    tool: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    started_at: float | UnsetType = UNSET
    model: str | UnsetType = UNSET

    @classmethod
    def of(cls, task: TaskRecord, step: StepRecord) -> Self:
        again = step.attempt > 1
        return cls(
            agent_id=task.agent_id,
            task_id=task.id,
            step_id=f"{task.id}.{step.number}",
            kind=step.kind,
            tool=UNSET if step.call is None else step.call.name,
            attempt=step.attempt if again else UNSET,
            started_at=step.started_at if again else UNSET,
            model=step.model or UNSET,
        )


@notification(
    "step.retried",
    "got no answer from its model[ {model}] (attempt {attempt}) and asks "
    "[nextModel?{nextModel} instead|again at {retryAt:time}]: {error.message}",
    level="warning",
)
class StepRetried(OfStep, frozen=True, kw_only=True):
    """A model request failed and is repeated.

    `requests` is how many requests to the model ended with this, if that is not one.

    `retry_after_seconds` is how long the provider asked to wait, if the task does not wait that long. `model` is which
    of its models was asked if an agent has several, and `next_model` the one that is asked instead.
    """

    attempt: int
    error: Failure
    retry_at: float
    requests: int | UnsetType = UNSET
    retry_after_seconds: float | UnsetType = UNSET
    model: str | UnsetType = UNSET
    next_model: str | UnsetType = UNSET


@notification("step.interrupted", "had its model request cut off", level="debug", watched=False)
class StepInterrupted(OfStep, frozen=True, kw_only=True):
    """A model request was cut off; it is repeated when its agent continues, or the step ends."""

    attempt: int


class StepUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What one model request used. `cost_usd` is None when the price of the model is not known."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @classmethod
    def of(cls, usage: Usage) -> Self:
        return cls(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost_usd=usage.cost_usd)


class StepRun(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What the processes of a tool call took, and the sandbox that held them."""

    sandbox: str
    wall_seconds: float
    cpu_seconds: float
    memory_bytes: int

    @classmethod
    def of(cls, run: ToolRun) -> Self:
        return cls(
            sandbox=run.sandbox,
            wall_seconds=run.wall_seconds,
            cpu_seconds=run.cpu_seconds,
            memory_bytes=run.memory_bytes,
        )


@notification(
    "step.finished",
    "[kind=compaction?ended a compaction|isError?used {tool}, which failed|used {tool}"
    "|state=failed?got no answer from its model|got an answer from its model]"
    "[: {usage.inputTokens:count} tokens in, {usage.outputTokens:count} out]"
    "[usage.costUsd>0?, {usage.costUsd:money}][: {error.message}]",
    level="debug",
)
class StepFinished(OfStep, frozen=True, kw_only=True):
    """A model request, a tool call or a compaction ended.

    `requests` is how many requests to the model ended with this, if it is no tool call and that is not one.
    """

    kind: StepKind
    state: StepState
    tool: str | UnsetType = UNSET
    usage: StepUsage | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    run: StepRun | UnsetType = UNSET
    error: Failure | UnsetType = UNSET
    requests: int | UnsetType = UNSET

    @classmethod
    def of(cls, task: TaskRecord, step: StepRecord, *, requests: int) -> Self:
        """`requests` is how many requests to the model have ended with the step."""
        answer, result = step.answer, step.result
        return cls(
            agent_id=task.agent_id,
            task_id=task.id,
            step_id=f"{task.id}.{step.number}",
            kind=step.kind,
            state=step.state,
            tool=UNSET if step.call is None else step.call.name,
            usage=UNSET if answer is None else StepUsage.of(answer.usage),
            is_error=UNSET if result is None or not result.is_error else True,
            run=UNSET if result is None or result.run is None else StepRun.of(result.run),
            error=UNSET if step.error is None else step.error,
            requests=UNSET if requests == 1 or step.kind is TOOL else requests,
        )
