"""The rules of mail: what may be sent, what its states mean, how a model is shown it, which task it becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ai_whisperer.core.marks import harmless, said
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.tasks import parent_of
from ai_whisperer.core.text import NUL, check_text, one_line
from ai_whisperer.domain.mail import MailDraft, MailRecord, MailState
from ai_whisperer.domain.tasks import SWITCH_SUFFIX, Failure, Origin, Priority, TaskKind, TaskRecord, TaskState
from ai_whisperer.errors import InvalidInputError, StateError, TooLargeError, WhispererError

MAX_MAILS = 1_000
"""So many are sent at once: they are one unit, and all others wait while it is written."""

_MOVES: Mapping[MailState, frozenset[MailState]] = {
    MailState.QUEUED: frozenset(
        {MailState.DELIVERED, MailState.READ, MailState.REPLIED, MailState.ARCHIVED, MailState.DEAD}
    ),
    MailState.DELIVERED: frozenset(
        {MailState.QUEUED, MailState.READ, MailState.REPLIED, MailState.ARCHIVED, MailState.DEAD}
    ),
    MailState.READ: frozenset({MailState.REPLIED, MailState.ARCHIVED, MailState.DEAD}),
    MailState.REPLIED: frozenset({MailState.ARCHIVED, MailState.REPLIED}),
    MailState.ARCHIVED: frozenset({MailState.DELIVERED}),
    MailState.DEAD: frozenset({MailState.QUEUED, MailState.DELIVERED, MailState.ARCHIVED}),
}
"""`delivered`: handed to a task. `read`: a model was shown it. `dead`: its task could not be done.

A mail that was archived or is dead is delivered once more if its task is taken up again. A dead one is archived when a
person dismisses its task.
"""

_QUEUED = MailState.QUEUED
_SHOWN = (MailState.READ, MailState.REPLIED)

MAX_SUBJECT_CHARACTERS = 500


def move(mail: MailRecord, state: MailState, *, now: float, task_id: str | None = None) -> MailRecord:
    """Return the mail in its next state; raise `StateError` if the step is not in the table."""
    if state not in _MOVES[mail.state]:
        options = ", ".join(sorted(_MOVES[mail.state])) or "nothing"
        raise StateError(f"Mail {mail.id} is {mail.state} and cannot become {state}. It can become: {options}.")
    return replace(
        mail,
        state=state,
        task_id=None if state is _QUEUED else task_id or mail.task_id,
        read_at=now if state in _SHOWN and mail.read_at is None else mail.read_at,
    )


def check_mail_text(subject: str, body: str, max_bytes: int) -> None:
    """Raise unless the text can be a mail: not empty, within the recipient's limit."""
    if (
        type(subject) is str is type(body)
        and subject.isprintable()
        and subject.isascii()
        and len(subject) <= MAX_SUBJECT_CHARACTERS
        and subject.strip()
        and body.isascii()
        and len(body) <= max_bytes
        and NUL not in body
    ):
        return  # as nearly always: it has nothing of what is looked for below
    check_text("mail body", body, max_bytes=max_bytes)
    check_text("subject", subject, max_bytes=max(max_bytes, 4 * MAX_SUBJECT_CHARACTERS))
    if not body.strip() and not one_line(subject).strip():
        raise InvalidInputError("The mail has neither a subject nor a body; nothing was sent. Write at least one.")
    if len(subject) > MAX_SUBJECT_CHARACTERS:
        raise TooLargeError(
            f"The subject has {len(subject)} characters, at most {MAX_SUBJECT_CHARACTERS} are allowed; nothing was "
            "sent. Put the text into the body."
        )


def priority_of(given: Priority | str) -> Priority:
    """The priority of that name; raises `InvalidInputError` with those that there are."""
    if isinstance(given, Priority):
        return given
    try:
        return Priority(given)
    except ValueError as error:
        raise InvalidInputError(f"'{given}' is not a priority. Use one of: {', '.join(Priority)}.") from error


def mark_of(given: MailState | str) -> MailState:
    """What a person may mark a mail as; raises `InvalidInputError`."""
    if given not in (MailState.READ, MailState.ARCHIVED):
        raise InvalidInputError(f"A mail can be marked as read or archived, not as '{given}'.")
    return MailState(given)


def task_for_mail(mail: MailRecord, *, task_id: str, now: float, busy_threads: Container[str] = ()) -> TaskRecord:
    """The task that a mail becomes when it is its turn in the queue of its agent (`agents/work`); it runs at once.

    An awaited mail does not wait for its thread: if that is busy, it opens one of its own.
    """
    thread_id, origin = mail.work_thread_id, mail.origin
    if mail.awaited:
        origin = replace(origin or Origin(), answers=mail.id)
        if thread_id in busy_threads:
            thread_id = f"{mail.id}{SWITCH_SUFFIX}"
    return TaskRecord(
        session_id=mail.session_id,
        id=task_id,
        agent_id=mail.recipient,
        thread_id=thread_id,
        kind=TaskKind.MAIL,
        prompt=as_prompt(mail),
        arrival=mail.arrival,
        cause=f"mail:{mail.id}",
        priority=mail.priority,
        state=TaskState.RUNNING,
        mail_id=mail.id,
        parent_id=parent_of(mail.cause),
        attempts=1,
        created_at=now,
        started_at=now,
        origin=origin,
    )


def as_prompt(mail: MailRecord) -> str:
    """The mail as the model is shown it when it starts a task."""
    return f"You have mail.\n{as_text(mail)}\n\nTo answer, call reply_mail with mail_id {mail.id}."


def as_text(mail: MailRecord) -> str:
    """The mail for a model to read: heading lines, and the body between marks, so that it cannot look like another."""
    lines = [f"Mail id: {mail.id}", f"From: {mail.sender}", f"Priority: {mail.priority}"]
    if mail.reply_to is not None:
        lines.append(f"In reply to: {mail.reply_to}")
    subject = harmless(one_line(mail.subject))
    return "\n".join([*lines, f"Subject: {subject}", "", said(mail.sender, mail.body)])


def in_order(mails: Iterable[MailRecord]) -> list[MailRecord]:
    """Urgent before high before normal before low; within that by arrival."""
    return sorted(mails, key=lambda mail: (mail.priority.rank, mail.arrival))


def reply_subject(subject: str) -> str:
    """The subject of an answer to a mail with this subject."""
    answered = subject if subject.lower().startswith("re:") else f"Re: {subject}"
    return answered[:MAX_SUBJECT_CHARACTERS]


def check_each(drafts: Sequence[MailDraft], check: Callable[[MailDraft], None]) -> None:
    """Check the mails one after the other; what that raises says which of them it is about."""
    number = 0
    try:
        for number, draft in enumerate(drafts, 1):  # noqa: B007 - for the error
            check(draft)
    except WhispererError as error:
        error.args = (f"None of the {len(drafts)} mails was sent, for the {number}. cannot be: {error.message}",)
        raise


def checked_drafts(mails: Sequence[MailDraft]) -> list[MailDraft]:
    """The mails that are to be sent at once; raises `InvalidInputError` unless they can be told apart."""
    given: object = mails
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInputError(f"Give a list of mails, not {type(given).__name__}; none was sent.")
    drafts = list(mails)
    if len(drafts) > MAX_MAILS:
        raise InvalidInputError(
            f"{len(drafts):,} mails are too many for one call, which takes {MAX_MAILS:,}; none was sent. Use several."
        )
    check_each(drafts, _check_draft)
    ids = Counter(draft.mail_id for draft in drafts if draft.mail_id is not None)
    twice = [mail_id for mail_id, count in ids.items() if count > 1]
    if twice:
        raise InvalidInputError(f"The id '{twice[0]}' is given to several mails; none was sent. Give each its own.")
    return drafts


def _check_draft(draft: MailDraft) -> None:
    if not hasattr(draft, "mail_id"):
        raise InvalidInputError(f"Give mails as MailDraft(to=…, subject=…, body=…), not {type(draft).__name__}.")
    priority_of(draft.priority)
    if draft.mail_id is not None:
        checked_id(draft.mail_id)


def notice_subject(subject: str) -> str:
    """The subject of the notice that a mail with this subject could not be handled."""
    return f"Not done: {subject}"[:MAX_SUBJECT_CHARACTERS]


def notice_body(mail: MailRecord, failure: Failure | None) -> str:
    """What the sender of a mail that could not be handled is told."""
    why = "No reason was recorded." if failure is None else failure.message
    return f"{mail.recipient} could not handle your mail {mail.id}: {why}"
