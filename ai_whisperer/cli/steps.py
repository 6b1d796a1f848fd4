"""The steps of a task as people read them: a line each, or all that is in them."""

from __future__ import annotations

from collections.abc import Sequence

from ai_whisperer.cli.fleet import style_of
from ai_whisperer.cli.output import Column
from ai_whisperer.cli.printable import readable_arguments
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.tasks import StepRecord, StepState

_FINE_SECONDS = 10.0
"""Below this, thousandths of a second tell something."""


def outcome(step: StepRecord) -> str:
    """Its state; a call whose tool told of a failure has failed, though the step was done."""
    if step.state is StepState.DONE and step.result is not None:
        return "not run" if step.result.not_run else "failed" if step.result.is_error else step.state
    return step.state


def took(step: StepRecord) -> str:
    """How long it took, with all its attempts and the waits between them; empty while it is under way."""
    if step.finished_at is None:
        return ""
    seconds = max(step.finished_at - step.started_at, 0.0)
    return f"{seconds:.3f} s" if seconds < _FINE_SECONDS else f"{seconds:.1f} s"


def brought(step: StepRecord) -> str:
    """What it brought: the answer, the result of the tool, or the error."""
    if step.error is not None and step.retry_at is not None:
        return f"Waits for the provider, next try at {moment(step.retry_at)}: {step.error.message}"
    if step.error is not None:
        return step.error.message
    if step.result is not None:
        return step.result.content
    if step.answer is None:
        return ""
    return step.answer.text or ", ".join(call.name for call in step.answer.calls)


def whole_step(step: StepRecord) -> str:
    """All that is in a step, with nothing cut."""
    head = (f"step {step.number}", _kind(step), outcome(step), moment(step.started_at), took(step))
    parts = ["  ".join(part for part in head if part)]
    if step.call is not None:
        parts.append(readable_arguments(step.call.arguments))
    parts.append(brought(step))
    return "\n".join(part for part in parts if part)


def _kind(step: StepRecord) -> str:
    return step.kind if step.call is None else f"{step.kind} {step.call.name}"


STEPS: Sequence[Column[StepRecord]] = (
    Column("STEP", lambda each: str(each.number), right=True),
    Column("KIND", _kind),
    Column("STATE", outcome, style=style_of),
    Column("STARTED", lambda each: moment(each.started_at)),
    Column("TOOK", took, right=True),
    Column("ATTEMPT", lambda each: str(each.attempt), right=True),
    Column("ARGUMENTS", lambda each: "" if each.call is None else each.call.arguments),
    Column("RESULT", brought),
)
