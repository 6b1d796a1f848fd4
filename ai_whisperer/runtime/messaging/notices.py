"""Notices of failure: whoever sent a mail that could not be handled is told so, by mail."""

from __future__ import annotations

from ai_whisperer.core.mailbox import notice_body, notice_subject
from ai_whisperer.core.text import fitted
from ai_whisperer.domain.mail import USER, MailState
from ai_whisperer.domain.tasks import Origin, TaskRecord
from ai_whisperer.runtime.messaging.continuations import Continuations
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.roles import Roster

_UNANSWERED = (MailState.DELIVERED, MailState.READ, MailState.DEAD)


class Notices:
    """Tells senders of failures, each once.

    Nobody is told of a mail that the runtime wrote itself, such as a notice or the result of a delegated task: so no
    notice follows from another. A question that somebody waits for has its own way back (`Switch`), and a mail that was
    answered before its task failed needs none.
    """

    def __init__(self, roster: Roster, mail: Mail, continuations: Continuations) -> None:
        self._roster = roster
        self._mail = mail
        self._continuations = continuations

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Tell the sender of the mail that the task, or the one it continues, was about, if that failed."""
        if not task.state.is_dead_letter or task.answers_a_switch or (task.origin is not None and task.origin.quiet):
            return
        mail_id = self._continuations.parts_of(task)[0].mail_id
        mail = None if mail_id is None else self._mail.in_memory(mail_id)
        if mail is None or mail.state not in _UNANSWERED:
            return
        if mail.sender != USER and mail.sender not in self._roster.agents:
            return  # it was deleted
        late = task.deadline_at is not None and task.deadline_at <= decision.at
        self._mail.send(
            decision,
            sender=task.agent_id,
            to=mail.sender,
            subject=notice_subject(mail.subject),
            body=fitted(notice_body(mail, task.error), self._mail.max_bytes(mail.sender)),
            priority=mail.priority,
            thread_id=mail.thread_id,
            reply_to=mail.id,
            # It belongs to the tree, whose limits end an exchange of failures; what is over leaves no time to read it.
            origin=Origin(root_id=task.root_id, deadline_at=None if late else task.deadline_at, budget=task.budget),
            is_result=True,
            cause=f"task:{task.id}",  # whoever ended it, a timer or the recovery
        )
