"""What the journal of a task says that its model is to be shown, and was shown.

The journal has every result whole. What is shown of it may be less: a long one as its beginning and its end, an old one
as a line. The note beside it says how to get the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from ai_whisperer.core.call_reading import as_read, note_on
from ai_whisperer.core.contexts import text_bytes
from ai_whisperer.core.marks import harmless, has_marks, said
from ai_whisperer.core.outputs import told_of
from ai_whisperer.core.text import one_line
from ai_whisperer.domain.conversation import AnswerTurn, ToolResult, ToolTurn, Turn, UserTurn
from ai_whisperer.domain.tasks import COMPACTION_TASK, MODEL, TOOL, StepRecord, TaskRecord

READ_RESULT = "read_result"
"""The tool that gets the rest of a result."""
RESULT_BYTES = 100_000
"""So much of one result is shown, unless a compaction says less: about 25,000 tokens."""

_NO_RESULT = "No result: the task ended before this call did."
_LINE_CHARACTERS = 120
_WORTH_TRIMMING = 400
"""A result of fewer characters stays as it is: the line and the note would not be much shorter."""


def turns(task: TaskRecord, steps: Sequence[StepRecord], *, result_bytes: int = 0) -> list[Turn]:
    """The conversation of one task. Every tool call has a result in it, since providers refuse orphans."""
    return [*prompt_of(task), *turns_of(steps, result_bytes=result_bytes)]


def prompt_of(task: TaskRecord) -> list[Turn]:
    """What the task was told; nothing for one that only makes the conversation shorter."""
    if task.kind is COMPACTION_TASK:
        return []
    schema = task.output_schema
    if schema is None and task.notes is None and task.parts is None:
        return [UserTurn(text=task.prompt)]
    return [
        UserTurn(
            text=task.prompt,
            note="" if schema is None else told_of(schema),
            memory=task.notes or "",
            parts=task.parts or (),
        )
    ]


def notes_shown(turns: Sequence[Turn]) -> str:
    """What the conversation shows last of the agent's memory; nothing if it does not."""
    return next((turn.memory for turn in reversed(turns) if isinstance(turn, UserTurn) and turn.memory), "")


def turns_of(
    steps: Sequence[StepRecord], *, result_bytes: int = 0, covered: int = 0, trimmed: int = 0, heard: int = 0
) -> list[Turn]:
    """The part of a conversation that these steps are: what was said before each, answers with all their calls, and
    what was objected to them.

    Up to the number `covered` they are left out, up to `trimmed` each result is a line. Others are cut if they have
    more than `result_bytes`; 0 leaves them whole. What was said before the step of the number `heard` was shown
    already, with the request that it is.
    """
    shown: list[Turn] = []
    results = {step.number: step for step in steps if step.kind is TOOL}
    for step in steps:
        if step.kind is not MODEL or step.number <= covered:
            continue
        if step.said is not None and step.number != heard:
            shown.extend(UserTurn(text=said.text, parts=said.parts) for said in step.said)
        if step.answer is None:
            continue
        answer = as_read(step.answer) if step.answer.read_as else step.answer
        shown.append(AnswerTurn(answer=answer))
        if answer.objection:
            shown.append(UserTurn(text=answer.objection))
        for number, call in enumerate(answer.tool_calls, step.number + 1):
            note = "" if answer is step.answer else note_on(step.answer, call)
            made = results.get(number)
            if made is None or made.result is None:
                shown.append(ToolTurn(call=call, content=_NO_RESULT, is_error=True, note=note))
                continue
            result = made.result
            if step.number > trimmed and (not result_bytes or len(result.content) * 4 <= result_bytes):
                content, is_error, untrusted = result.content, result.is_error, result.untrusted  # as nearly always
            else:
                content, note = _in_part(made, result, note, most=result_bytes, is_old=step.number <= trimmed)
                is_error, untrusted = result.is_error, result.untrusted
            shown.append(ToolTurn(call=call, content=content, is_error=is_error, untrusted=untrusted, note=note))
    return shown


def _in_part(made: StepRecord, result: ToolResult, note: str, *, most: int, is_old: bool) -> tuple[str, str]:
    """What is shown of a result, and the note beside it.

    Mail is shown whole until it is old: a model that was shown a part has not read it.
    """
    content = result.content
    if is_old:
        if len(content) > _WORTH_TRIMMING:
            return _line(content), _with_note(note, _rest_of(made, content, 0))
    elif not result.mails and text_bytes(content) > most:
        shown, begin = cut(content, most)
        return shown, _with_note(note, _rest_of(made, content, begin))
    return content, note


def cut(text: str, most: int) -> tuple[str, int]:
    """The beginning and the end of a long text, about so many bytes together, and how many characters begin it.

    Marks around what others said would lose each other: then what is left stands between marks of its own.
    """
    characters = max(most * len(text) // text_bytes(text), 2)
    begin = characters * 3 // 4
    end = len(text) - (characters - begin)
    first, last = text[:begin], text[end:]
    if has_marks(text):
        first, last = said("others", first), said("others", last)
    return f"{first}\n[… {end - begin:,} characters are left out here …]\n{last}", begin


def _line(content: str) -> str:
    beginning = harmless(one_line(content[: 2 * _LINE_CHARACTERS]).strip())[:_LINE_CHARACTERS]
    return f"[An earlier result of {len(content):,} characters, which began: {beginning} …]"


def _rest_of(step: StepRecord, content: str, shown: int) -> str:
    return (
        f'This result has {len(content):,} characters, not all of them shown. {READ_RESULT} with step "{step.id}" and '
        f"offset {shown} gets more of it."
    )


def _with_note(note: str, more: str) -> str:
    return f"{note}\n{more}" if note else more


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
