"""Whether a task goes round in circles: the same call with the same result again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from ai_whisperer.domain.conversation import ToolCall, ToolResult
from ai_whisperer.domain.tasks import MODEL, TOOL, StepRecord, StepState

_Round = list[StepRecord]


def not_run_again(call: ToolCall, repeats: int) -> ToolResult:
    """What the model is told in place of a call that it has made often enough."""
    return ToolResult(
        content=f"Not run again: you have called {call.name} with the same arguments {repeats} times in a row, with "
        "the same result each time. Once more brings nothing new. Change the arguments, use another tool, sleep until "
        "something has happened, or answer with what you have and say what is missing.",
        is_error=True,
        not_run=True,
    )


def repeats_before(steps: Sequence[StepRecord], call: ToolCall) -> int:
    """How often in a row the task has made this call, which its last answer asks for, with the same result.

    A row goes from one answer of the model to the next; calls that were made beside it do not break it. Calls that
    were not run again belong to the row and are not counted.
    """
    if not _was_made_before(steps, call):
        return 0
    count = 0
    result: ToolResult | None = None
    for made in islice(_rounds(steps), 1, None):
        same = [step for step in made if step.call is not None and _is_same(step.call, call)]
        if not same:
            break
        for step in same:
            if step.state is not StepState.DONE or step.result is None:
                return count
            if is_refused(step):
                continue
            if result is not None and not _brought(step.result, result):
                return count
            result = step.result
            count += 1
    return count


def refusals_at_end(steps: Sequence[StepRecord]) -> int:
    """How many answers in a row, up to the last one, asked for a call that was not run again."""
    for step in reversed(steps):
        if step.kind is MODEL:
            return 0  # the usual case, which is looked at before each request and costs next to nothing
        if is_refused(step):
            break
    return sum(1 for _ in takewhile(lambda made: any(map(is_refused, made)), _rounds(steps)))


def is_refused(step: StepRecord) -> bool:
    """Whether this call was not run, since it had been made often enough."""
    return step.result is not None and step.result.not_run


def _was_made_before(steps: Sequence[StepRecord], call: ToolCall) -> bool:
    """Whether the answer before the last one asked for the same call. Most calls differ, and this is soon told."""
    answers = 0
    for step in reversed(steps):
        if step.kind is MODEL:
            answers += 1
            if answers > 1:
                return False
        elif answers and step.call is not None and _is_same(step.call, call):
            return True
    return False


def _rounds(steps: Sequence[StepRecord]) -> Iterator[_Round]:
    """The calls of each answer as far as they have begun, those of the last answer first."""
    made: _Round = []
    for step in reversed(steps):
        if step.kind is TOOL:
            made.append(step)
        elif step.kind is MODEL:
            yield made
            made = []


def _is_same(one: ToolCall, other: ToolCall) -> bool:
    return one.name == other.name and one.arguments == other.arguments


def _brought(one: ToolResult, other: ToolResult) -> bool:
    return one.content == other.content and one.is_error == other.is_error
