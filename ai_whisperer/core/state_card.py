"""The card behind a summary: how things stand, as the runtime knows it. No model writes it, so nothing is made up.

What others have written, such as subjects, stands on it within quotation marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ai_whisperer.core.contexts import text_bytes
from ai_whisperer.core.marks import inside_marks, named, quoted
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.schedules import ScheduleRecord
from ai_whisperer.domain.tasks import Budget, TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord

_TITLE = "How things stand now, as the runtime knows it:"
_NOTHING_OPEN = "- Nothing is open: no delegated task, no question, no lock, no unanswered mail."
_SHOWN_CHARACTERS = 80


class Standing(Record, frozen=True, kw_only=True):
    """What an agent has open, and what it has done that others do not tell it again."""

    delegated: Sequence[TaskRecord] = ()
    questions: Sequence[WaitRecord] = ()
    locks: Sequence[LockRecord] = ()
    unanswered: Sequence[MailRecord] = ()
    unread: Sequence[MailRecord] = ()
    schedules: Sequence[ScheduleRecord] = ()
    files: Sequence[str] = ()
    unknown: Sequence[str] = ()
    budget: Budget | None = None
    used: Usage = Usage()


def card(standing: Standing, *, most: int) -> str:
    """The card, of so many bytes at most: what does not fit is counted."""
    open_lines = list(_open_lines(standing))
    lines = [*(open_lines or [_NOTHING_OPEN]), *_other_lines(standing)]
    kept: list[str] = [_TITLE]
    room = most - text_bytes(_TITLE)
    for number, line in enumerate(lines):
        room -= text_bytes(line) + 1
        if room < 0:
            kept.append(f"- and {len(lines) - number} more")
            break
        kept.append(line)
    return "\n".join(kept)


def _open_lines(standing: Standing) -> Iterator[str]:
    for task in standing.delegated:
        wanted = _short(inside_marks(task.prompt))
        yield f"- Delegated to {named(task.agent_id)}, result not in yet: {wanted} (task {task.id})"
    for wait in standing.questions:
        if wait.kind is WaitKind.QUESTION:
            yield f"- Waiting for the person's answer to question {wait.id}"
        else:
            yield f"- Waiting for an answer of {named(wait.target_agent)} to mail {wait.target}"
    for lock in standing.locks:
        yield f"- Holding the lock {named(lock.name)}, token {lock.token}"
    for mail in standing.unanswered:
        yield f"- Not answered yet: mail {mail.id} from {named(mail.sender)}, {_short(mail.subject)}"
    for mail in standing.unread:
        yield f"- Not read yet: mail from {named(mail.sender)}, {_short(mail.subject)}"
    for call in standing.unknown:
        yield f"- Outcome unknown, may have taken effect: {call}"


def _other_lines(standing: Standing) -> Iterator[str]:
    budget, used = standing.budget, standing.used
    if budget is not None and budget.max_tokens is not None:
        left = max(budget.max_tokens - used.input_tokens - used.output_tokens, 0)
        yield f"- Budget left for the task and all it causes: {left:,} tokens"
    if budget is not None and budget.max_cost_usd is not None:
        left_usd = max(budget.max_cost_usd - (used.cost_usd or 0.0), 0.0)
        yield f"- Budget left for the task and all it causes: {left_usd:.4f} USD"
    for schedule in standing.schedules:
        when = schedule.definition.cron or f"every {schedule.definition.interval_seconds:g} s"
        yield f"- Schedule {schedule.id}: {when}{', paused' if schedule.paused else ''}"
    yield from _files(standing.files)


def _files(files: Iterable[str]) -> Iterator[str]:
    names = [named(name) for name in files]
    if names:
        yield f"- Files written earlier: {', '.join(names)}"


def _short(text: str) -> str:
    return quoted(text[:_SHOWN_CHARACTERS] + ("…" if len(text) > _SHOWN_CHARACTERS else ""))
