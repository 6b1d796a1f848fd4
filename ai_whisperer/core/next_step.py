"""What comes next in a task, as its journal says, and what its answer is.

The journal of a task is its steps in order: a model request, then one step for each tool call of its answer, then the
next model request. Before a request there may be a step that makes the conversation shorter. A running loop and a loop
that is taken up after a crash ask the same functions, so that a restart continues at exactly the step that was next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

from msgspec.structs import replace

from ai_whisperer.core.call_reading import as_read
from ai_whisperer.core.channels import parse, parse_as_written
from ai_whisperer.core.outputs import MAX_CORRECTIONS, read_output
from ai_whisperer.domain.conversation import Answer, ChannelResponse, ToolCall
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import COMPACTION, MODEL, STARTED, Failure, StepRecord
from ai_whisperer.errors import OutputError, StepLimitError

OUTCOME_UNKNOWN = (
    "Outcome unknown: this call was cut off while it was under way, because the process ended or the task was stopped. "
    "It may have taken effect or not, and it was not repeated. Find out before you call it again."
)
NO_LONGER_WAITED = "No result: the task ended while this call waited. Should an answer come, it arrives as mail."
_COMMENTARY_CHARACTERS = 500


@final
class RequestModel(Record, frozen=True, kw_only=True):
    """Ask the model. `repeats` is the step under way that has no answer yet; it keeps its number."""

    number: int
    repeats: StepRecord | None = None


@final
class Compact(Record, frozen=True, kw_only=True):
    """Make the conversation shorter: the step has begun."""

    step: StepRecord


class PendingCall(Record, frozen=True, kw_only=True):
    """A tool call without a result. `interrupted` is its step if it was begun before."""

    number: int
    call: ToolCall
    interrupted: StepRecord | None = None


@final
class CallTools(Record, frozen=True, kw_only=True):
    """Run these tool calls, side by side."""

    calls: tuple[PendingCall, ...]


@final
class Complete(Record, frozen=True, kw_only=True):
    """The task is done."""

    response: ChannelResponse


@final
class Continue(Record, frozen=True, kw_only=True):
    """The answer wants another round: queue a continuation. One that was `cut` by its length did not ask for it."""

    response: ChannelResponse
    cut: bool = False


@final
class Fail(Record, frozen=True, kw_only=True):
    """The task cannot be done."""

    failure: Failure


Next = RequestModel | Compact | CallTools | Complete | Continue | Fail


def next_action(
    steps: Sequence[StepRecord],
    *,
    max_steps: int,
    output_schema: Mapping[str, Any] | None = None,
    continues_cut: bool = False,
) -> Next:
    """What comes next in a task with this journal, whose answer has to fit the schema if there is one.

    `continues_cut` if it goes on within an answer.
    """
    asked = _last_request(steps)
    if steps and steps[-1].kind is COMPACTION and steps[-1].state is STARTED:
        return Compact(step=steps[-1])
    if asked is None:
        return RequestModel(number=len(steps) + 1)
    if asked.state is STARTED:
        return RequestModel(number=asked.number, repeats=asked)
    if asked.answer is None:
        return Fail(failure=asked.error or Failure(code="model", message="The model request failed."))
    calls = asked.answer.read_as or asked.answer.tool_calls
    if not calls:
        if asked.answer.objection:
            return _correction(steps, asked.answer, max_steps=max_steps)
        return _ending(steps, asked.answer, output_schema, continues_cut=continues_cut)
    pending = _calls_without_result(steps, asked, calls)
    wanted = asked.number + len(calls) + (0 if pending else 1)
    if wanted > max_steps:
        wanted -= sum(step.kind is COMPACTION for step in steps)  # the task did not want those
    if pending and wanted <= max_steps:
        return CallTools(calls=pending)
    if wanted > max_steps:
        return _too_many_steps(wanted, max_steps)
    return RequestModel(number=steps[-1].number + 1)


def _too_many_steps(wanted: int, max_steps: int) -> Fail:
    error = StepLimitError(
        f"The task wants step {wanted} and may have {max_steps}. Raise max_steps_per_task or split the task."
    )
    return Fail(failure=Failure(code=error.code, message=error.message))


def pending_calls(steps: Sequence[StepRecord]) -> tuple[PendingCall, ...]:
    """The calls of the last answer that have no result, whatever the limits say about them by now."""
    asked = _last_request(steps)
    if asked is None or asked.answer is None:
        return ()
    return _calls_without_result(steps, asked, asked.answer.calls)


def _parsed(steps: Sequence[StepRecord]) -> tuple[ChannelResponse, bool]:
    """The answer so far in its channels, and whether the last text asks to be continued. Each text is read once.

    The channels are the reasoning, the talk around tools, and what the user reads.
    """
    wants_continuation = False
    analysis: list[str] = []
    commentary: list[str] = []
    final = ""
    for step in steps:
        if step.kind is COMPACTION:
            continue
        if step.answer is not None:
            answer = as_read(step.answer) if step.answer.read_as else step.answer
            analysis.append(answer.reasoning)
            if not answer.text:
                wants_continuation = False
                final = final if answer.tool_calls else ""
                continue
            whole = parse(answer.text)
            parsed, wants_continuation = whole.response, whole.wants_continuation
            analysis.append(parsed.analysis)
            commentary.append(parsed.commentary)
            if answer.tool_calls:
                commentary.append(parsed.final)
            else:
                final = parsed.final
        elif step.call is not None and step.result is not None:
            commentary.append(_call_line(step.call, step.result.content))
    response = ChannelResponse(
        analysis="\n".join(filter(None, analysis)),
        commentary="\n".join(filter(None, commentary)),
        final=final,
    )
    return response, wants_continuation


def _correction(steps: Sequence[StepRecord], answer: Answer, *, max_steps: int) -> RequestModel | Fail:
    """Ask again for an answer that fits the schema, unless the model was told often enough what is wrong."""
    objected = sum(bool(step.answer.objection) and not step.answer.excused for step in steps if step.answer is not None)
    if objected > MAX_CORRECTIONS:
        told = "was told what is wrong" if objected == 2 else f"was told {objected - 1} times what is wrong"
        error = OutputError(
            f"The answer does not fit the output schema, though the model {told}. The last objection: "
            f"{answer.objection} Make the schema simpler, say more in the prompt, or use another model; then retry the "
            "task."
        )
        return Fail(failure=Failure(code=error.code, message=error.message))
    wanted = steps[-1].number + 1
    return _too_many_steps(wanted, max_steps) if wanted > max_steps else RequestModel(number=wanted)


def _ending(
    steps: Sequence[StepRecord], answer: Answer, output_schema: Mapping[str, Any] | None, *, continues_cut: bool
) -> Next:
    response, wants_continuation = _parsed(steps)
    if output_schema is not None:
        read = read_output(answer.text, output_schema)
        if not read.complaint:
            return Complete(response=replace(response, final=read.text, output=read.value))
    cut = answer.finish == "length" and not wants_continuation
    if cut or continues_cut:
        response = replace(response, final=_part(answer, keeps_start=continues_cut, keeps_end=cut))
    return Continue(response=response, cut=cut) if cut or wants_continuation else Complete(response=response)


def _part(answer: Answer, *, keeps_start: bool, keeps_end: bool) -> str:
    """What the user reads of a part of an answer, with the blanks at the edges where another part goes on."""
    text = parse_as_written((as_read(answer) if answer.read_as else answer).text).response.final
    text = text if keeps_start else text.lstrip()
    return text if keeps_end else text.rstrip()


def _last_request(steps: Sequence[StepRecord]) -> StepRecord | None:
    for step in reversed(steps):
        if step.kind is MODEL:
            return step
    return None


def _calls_without_result(
    steps: Sequence[StepRecord], asked: StepRecord, calls: tuple[ToolCall, ...]
) -> tuple[PendingCall, ...]:
    begun: dict[int, StepRecord] = {}
    for step in reversed(steps):
        if step.number <= asked.number:
            break
        begun[step.number] = step
    pending = []
    for number, call in enumerate(calls, asked.number + 1):
        known = begun.get(number)
        if known is None or known.state is STARTED:
            pending.append(PendingCall(number=number, call=call, interrupted=known))
    return tuple(pending)


def _call_line(call: ToolCall, content: str) -> str:
    shown = content if len(content) <= _COMMENTARY_CHARACTERS else content[:_COMMENTARY_CHARACTERS] + "…"
    return f"{call.name}({call.arguments}) → {shown}"
