"""What steps have used together is the sum of what each has used, with and without prices."""

from __future__ import annotations

import pytest

from ai_whisperer.core.usage import usage_of, usage_of_all
from ai_whisperer.domain.conversation import Answer, ToolResult, ToolRun, Usage
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
    assert usage_of_all(steps) == sum(map(usage_of, steps), Usage())
