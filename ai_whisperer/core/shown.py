"""What the journal of a task says that its model is to be shown, and was shown."""

from __future__ import annotations

from collections.abc import Sequence

from ai_whisperer.core.call_reading import as_read, note_on
from ai_whisperer.domain.conversation import AnswerTurn, ToolTurn, Turn, UserTurn
from ai_whisperer.domain.tasks import MODEL, TOOL, StepRecord, TaskRecord

_NO_RESULT = "No result: the task ended before this call did."


def turns(task: TaskRecord, steps: Sequence[StepRecord]) -> list[Turn]:
    """The conversation of one task. Every tool call has a result in it, since providers refuse orphans."""
    return [UserTurn(text=task.prompt), *turns_of(steps)]


def turns_of(steps: Sequence[StepRecord], *, heard: int = 0) -> list[Turn]:
    """The part of a conversation that these steps are: what was said before each, answers with all their calls.

    What was said before the step of the number `heard` was shown already, with the request that it is.
    """
    shown: list[Turn] = []
    results = {step.number: step.result for step in steps if step.kind is TOOL}
    for step in steps:
        if step.kind is not MODEL:
            continue
        if step.said is not None and step.number != heard:
            shown.extend(UserTurn(text=said.text) for said in step.said)
        if step.answer is None:
            continue
        answer = as_read(step.answer) if step.answer.read_as else step.answer
        shown.append(AnswerTurn(answer=answer))
        for number, call in enumerate(answer.tool_calls, step.number + 1):
            result = results.get(number)
            note = "" if answer is step.answer else note_on(step.answer, call)
            if result is None:
                shown.append(ToolTurn(call=call, content=_NO_RESULT, is_error=True, note=note))
            else:
                is_error, untrusted = result.is_error, result.untrusted
                shown.append(
                    ToolTurn(call=call, content=result.content, is_error=is_error, untrusted=untrusted, note=note)
                )
    return shown


def mails_shown_by(steps: Sequence[StepRecord], answered: StepRecord) -> list[str]:
    """The mails that the model had been shown for the first time when it gave this answer."""
    shown: list[str] = []
    for step in reversed(steps):
        if step.number >= answered.number:
            continue
        if step.kind is MODEL:
            break
        if step.result is not None:
            shown.extend(step.result.mails)
    return shown
