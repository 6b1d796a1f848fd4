"""What steps have used together is the sum of what each has used, with and without prices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ai_whisperer.core.usage import seconds_between, usage_of
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolResult, ToolRun, Usage
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState


def model_step(number: int, usage: Usage, *, requests: int = 1) -> StepRecord:
    return StepRecord(
        session_id="s",
        task_id="t",
        number=number,
        kind=StepKind.MODEL,
        state=StepState.DONE,
        answer=Answer(text="x", usage=usage),
        requests=requests,
        request_seconds=0.5 * number,
    )


def tool_step(number: int, *, memory_bytes: int = 0, mails: int = 0) -> StepRecord:
    run = ToolRun(sandbox="x", wall_seconds=1.0, cpu_seconds=0.25, memory_bytes=memory_bytes) if memory_bytes else None
    return StepRecord(
        session_id="s",
        task_id="t",
        number=number,
        kind=StepKind.TOOL,
        state=StepState.DONE,
        result=ToolResult(content="x", run=run, mails_sent=mails),
        started_at=1.0,
        finished_at=1.25,
    )


PRICED = Usage(input_tokens=10, output_tokens=5, cached_tokens=3, cost_usd=0.25)
PARTLY = Usage(input_tokens=20, output_tokens=7, cost_usd=0.5, unpriced_tokens=4)
UNPRICED = Usage(input_tokens=100, output_tokens=1)


def test_a_tool_call_counts_once_it_has_ended_and_a_request_with_its_tokens() -> None:
    called = tool_step(2, memory_bytes=64, mails=2)
    assert usage_of([replace(called, state=StepState.STARTED, result=None, finished_at=None)]) == Usage()
    assert usage_of([called]) == Usage(tool_calls=1, wall_seconds=0.25, cpu_seconds=0.25, memory_bytes=64, mails_sent=2)
    assert usage_of([model_step(3, PARTLY, requests=2)]) == replace(PARTLY, model_calls=2, wall_seconds=1.5)


def test_a_call_that_waits_for_somebody_takes_no_time() -> None:
    waited = replace(tool_step(2), call=ToolCall(call_id="c", name="acquire_lock", arguments="{}"))
    assert usage_of([waited]) == Usage(tool_calls=1)


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [model_step(1, UNPRICED)],
        [model_step(1, PRICED), tool_step(2, memory_bytes=64), model_step(3, PARTLY, requests=3)],
        [model_step(1, UNPRICED), tool_step(2, mails=2), model_step(3, PRICED), tool_step(4, memory_bytes=8)],
        [tool_step(1), tool_step(2)],
    ],
)
def test_all_together_are_the_sum_of_each(steps: list[StepRecord]) -> None:
    assert usage_of(steps) == sum((usage_of([step]) for step in steps), Usage())


@pytest.mark.parametrize(
    ("begun_at", "ended_at", "seconds"),
    [(100.0, 100.05, 0.05), (1.0, 1.0000014, 0.000001), (1.0, 1.0000016, 0.000002), (7.0, 7.0, 0.0), (9.0, 2.0, 0.0)],
)
def test_seconds_are_counted_to_the_microsecond_and_never_below_nothing(
    begun_at: float, ended_at: float, seconds: float
) -> None:
    assert seconds_between(begun_at, ended_at) == seconds
