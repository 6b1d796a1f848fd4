"""Takes mail, stamps it, and hands it to the recipient's queue; keeps track of mail that is under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import attrgetter

from msgspec.structs import replace

from ai_whisperer.core import mailbox
from ai_whisperer.core.paging import can_be_id
from ai_whisperer.core.tasks import parent_of
from ai_whisperer.core.text import one_line
from ai_whisperer.domain.limits import Limits
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.notifications.mail import MailChanged, MailSent
from ai_whisperer.domain.snapshot import InboxMail, LinkKind
from ai_whisperer.domain.tasks import Origin, Priority, TaskRecord
from ai_whisperer.domain.waits import WaitRecord
from ai_whisperer.errors import InvalidInputError, StateError, TooLargeError, UnknownMailError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.session.counters import Counters
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.reads import Overlay
from ai_whisperer.runtime.session.roles import Roster
from ai_whisperer.runtime.waiting.waits import Waits

_NOTHING_STATED = Limits()
_QUEUED, _DELIVERED, _DEAD = MailState.QUEUED, MailState.DELIVERED, MailState.DEAD
_MAIL = LinkKind.MAIL


class Mail:
    """The mail of one session."""

    def __init__(
        self,
        kernel: Kernel,
        roster: Roster,
        stated: StatedLimits,
        reached: ReachedLimits,
        trees: Trees,
        waits: Waits,
        counters: Counters,
        *,
        sequences: dict[str, int],
        received: dict[str, int],
        on_reply: Callable[[Decision, WaitRecord, MailRecord], None],
    ) -> None:
        """`on_reply` is called with a reply for which a call waits."""
        self._kernel = kernel
        self._roster = roster
        self._stated = stated
        self._reached = reached
        self._trees = trees
        self._waits = waits
        self._counters = counters
        self._on_reply = on_reply
        self._received = received
        self._sequences = sequences
        self._under_way: dict[str, MailRecord] = {}
        self._of_task: dict[str, set[str]] = {}
        self._moving: Overlay[str, MailRecord] = Overlay()

    def send(
        self,
        decision: Decision,
        *,
        sender: str,
        to: str,
        subject: str,
        body: str,
        priority: Priority,
        thread_id: str | None = None,
        reply_to: str | None = None,
        mail_id: str | None = None,
        origin: Origin | None = None,
        awaited: bool = False,
        given_to: str | None = None,
        is_checked: bool = False,
        is_result: bool = False,
        cause: str | None = None,
    ) -> MailRecord:
        """Accept a mail as part of a decision. Raises, having changed nothing, if it cannot be delivered.

        The sender is what the runtime says, never what a caller or a model writes. The sender of an `awaited` mail
        waits for the answer. A mail that is `given_to` a task is in its hands already. One that `is_checked` is taken
        as it is: whoever calls this has asked `check` a moment ago. So is one that `is_result` of a task, by a full
        queue too: whoever calls this has cut it to size, and a task that is done does not fail for want of room for its
        result. Nobody is told if such a mail cannot be handled: see `Notices`.
        """
        recipient = self._roster.book.resolve_recipient(to)
        if recipient == sender:
            raise _to_itself(sender)
        agent = self._roster.agents.get(recipient)
        if not (is_checked or is_result):
            most = self.max_bytes(recipient) if agent is None else agent.limits.max_mail_bytes
            self._check_text(recipient, subject, body, most)
            if agent is not None and given_to is None:
                agent.work.check_room()
        mail_id = mail_id or self._kernel.ids.new()
        self._sequences[sender] = sequence = self._sequences.get(sender, 0) + 1
        mail = MailRecord(
            session_id=self._kernel.session_id,
            id=mail_id,
            thread_id=thread_id or mail_id,
            sender=sender,
            sequence=sequence,
            recipient=recipient,
            subject=one_line(subject),
            body=body,
            arrival=self._kernel.next_arrival(),
            cause=cause or decision.cause,
            priority=priority,
            reply_to=reply_to,
            state=_QUEUED if given_to is None else _DELIVERED,
            task_id=given_to,
            created_at=decision.at,
            awaited=awaited,
            origin=replace(origin or Origin(), quiet=True) if is_result else origin,
        )
        decision.unit.insert_mail(mail)
        self._received[recipient] = self._received.get(recipient, 0) + 1
        self._counters.link(decision, _MAIL, sender, recipient)
        if recipient == USER:
            self._moving.keep(mail.id, mail, until=decision.when_readable)
        decision.tell(MailSent.of(mail))
        if given_to is not None:
            self.take_up(mail)
        elif agent is not None:
            agent.accept_mail(decision, mail)
        return mail

    def check(self, *, sender: str, to: str, subject: str, body: str, before: Counter[str]) -> None:
        """Raise what `send` would, if so many as are counted in `before` were sent first; then it is counted too."""
        recipient = self._roster.book.resolve_recipient(to)
        if recipient == sender:
            raise _to_itself(sender)
        self._check_text(recipient, subject, body, self.max_bytes(recipient))
        agent = self._roster.agents.get(recipient)
        if agent is not None:
            agent.work.check_room(returning=before[recipient])
        before[recipient] += 1

    def _check_text(self, recipient: str, subject: str, body: str, most: int) -> None:
        try:
            mailbox.check_mail_text(subject, body, most)
        except TooLargeError:
            self._reached.tell_size(recipient, "max_mail_bytes", body, most=most)
            raise

    def max_bytes(self, recipient: str) -> int:
        """How many bytes a mail to this agent, or to the person, may have."""
        agent = self._roster.agents.get(recipient)
        return (self._stated.for_agent(_NOTHING_STATED) if agent is None else agent.limits).max_mail_bytes

    def received(self, owner: str) -> int:
        """How many mails the agent, or the person, was ever sent."""
        return self._received.get(owner, 0)

    def forget(self, owner: str) -> None:
        """The agent is deleted: one of the same id has received nothing."""
        self._received.pop(owner, None)

    def deliver(self, decision: Decision, mail: MailRecord, task_id: str) -> None:
        """The mail is handed to a task."""
        self.take_up(self._move(decision, mail, _DELIVERED, task_id=task_id))

    def shown(self, decision: Decision, mail_id: str) -> None:
        """A model was shown the mail: only now it counts as read."""
        mail = self._under_way.get(mail_id)
        if mail is not None and mail.state is _DELIVERED:
            self.move(decision, mail, MailState.READ)

    def reply(
        self,
        decision: Decision,
        original: MailRecord,
        *,
        body: str,
        priority: Priority,
        mail_id: str | None = None,
        origin: Origin | None = None,
        is_result: bool = False,
    ) -> MailRecord:
        """Answer a mail in the name of its recipient. Raises, having changed nothing, if that is not possible.

        If its sender waits for the answer, the reply is the result of the call that waits.
        """
        original = self.in_memory(original.id) or original
        mailbox.move(original, MailState.REPLIED, now=decision.at)
        wait = self._waits.for_reply_to(original.id)
        reply = self.send(
            decision,
            sender=original.recipient,
            to=original.sender,
            subject=mailbox.reply_subject(original.subject),
            body=body,
            priority=priority,
            thread_id=original.thread_id,
            reply_to=original.id,
            mail_id=mail_id,
            origin=origin,
            given_to=None if wait is None else wait.task_id,
            is_result=is_result,
        )
        self.move(decision, original, MailState.REPLIED)
        owner = self._roster.agents.get(original.recipient)
        if owner is not None:
            owner.work.take_out_mail(original)
        if wait is not None:
            self._on_reply(decision, wait, reply)
        return reply

    def task_given_up(self, decision: Decision, task: TaskRecord) -> None:
        """The mail that the task was cannot be handled: it is a dead letter."""
        mail = self._under_way.get(task.mail_id or "")
        if mail is not None and mail.state in (MailState.DELIVERED, MailState.READ):
            self.move(decision, mail, MailState.DEAD)

    def task_ended(self, decision: Decision, task: TaskRecord, *, heir: TaskRecord | None = None) -> list[MailRecord]:
        """Settle the mails that a task had. Those that no model was shown are queued again, and returned.

        The others go over to the task that continues it, the `heir`, if there is one. A mail whose sender is being
        cancelled together with the task is withdrawn.
        """
        returned: list[MailRecord] = []
        for mail_id in sorted(self._of_task.pop(task.id, ())):
            mail = self._under_way[mail_id]
            if mail.state is not _DELIVERED:
                if heir is not None:
                    self._of_task.setdefault(heir.id, set()).add(mail_id)
                else:
                    self._moving.keep(mail_id, self._under_way.pop(mail_id), until=decision.when_readable)
                continue
            del self._under_way[mail_id]
            if self._trees.is_being_cancelled(parent_of(mail.cause)):
                self.move(decision, mail, MailState.ARCHIVED)
            else:
                returned.append(self.move(decision, mail, MailState.QUEUED))
        return returned

    def take_up(self, mail: MailRecord, *, by: str | None = None) -> None:
        """Keep in mind a mail that a task has: the one that it was handed to, or the one that continues that."""
        task_id = by or mail.task_id
        if task_id is not None:
            self._under_way[mail.id] = mail
            self._of_task.setdefault(task_id, set()).add(mail.id)

    def reclaim(self, decision: Decision, task: TaskRecord, mail: MailRecord | None) -> None:
        """Give a task that is taken up again its mail back; raises `StateError` if that went another way meanwhile."""
        if mail is None:
            return
        mail = self.in_memory(mail.id) or mail
        if mail.task_id != task.id:
            raise StateError(
                f"Task {task.id} was for mail {mail.id}, which went back to the mailbox and is handled from there."
            )
        if mail.state in (MailState.DEAD, MailState.ARCHIVED):
            self.deliver(decision, mail, task.id)
        else:
            self.take_up(mail)

    def in_hands_of(self, task_id: str) -> list[MailRecord]:
        """The mails that a task has, the oldest first: the one that it is for, and those that it has taken."""
        return sorted((self._under_way[each] for each in self._of_task.get(task_id, ())), key=attrgetter("arrival"))

    def in_memory(self, mail_id: str) -> MailRecord | None:
        """The mail as it is now, if it is in the hands of a task, or changed a moment ago."""
        return self._under_way.get(mail_id) or self._moving.get(mail_id)

    def is_in_use(self, mail_id: str) -> bool:
        """Whether a task has the mail in its hands, or it is changing: it must stay as it is."""
        return self.in_memory(mail_id) is not None

    async def find(self, mail_id: str) -> MailRecord | None:
        """The mail as it is now."""
        if not can_be_id(mail_id):
            return None
        known = self.in_memory(mail_id)
        if known is None:
            stored = await self._kernel.reads.mail(mail_id)
            known = self.in_memory(mail_id) or stored
        return known

    async def received_by(self, recipient: str, mail_id: str) -> MailRecord:
        """The mail in this mailbox; raises `UnknownMailError` for another's mail as for none."""
        return own_mail(recipient, mail_id, await self.find(mail_id))

    def move(self, decision: Decision, mail: MailRecord, state: MailState) -> MailRecord:
        """Bring a mail into another state; raises `StateError` if that is not possible."""
        moved = self._move(decision, mail, state)
        if mail.id in self._under_way:
            self._under_way[mail.id] = moved
        else:
            self._moving.keep(mail.id, moved, until=decision.when_readable)
        return moved

    def _move(
        self, decision: Decision, mail: MailRecord, state: MailState, *, task_id: str | None = None
    ) -> MailRecord:
        moved = mailbox.move(mail, state, now=decision.at, task_id=task_id)
        decision.unit.update_mail(moved)
        self._counters.dead_mails += (state is _DEAD) - (mail.state is _DEAD)
        decision.tell(
            MailChanged(mail_id=mail.id, agent_id=mail.recipient, before=mail.state, state=state, task_id=moved.task_id)
        )
        return moved

    def inbox(self, stored: list[InboxMail]) -> list[InboxMail]:
        """The mails of the user that are neither archived nor dead, the oldest first, after those on disk were read."""
        moving = [mail for mail in self._moving.values() if mail.recipient == USER]
        if not moving:
            return stored
        still = [mail for mail in stored if mail.mail_id not in self._moving]
        shown = [mail for mail in moving if mail.state not in (MailState.ARCHIVED, MailState.DEAD)]
        return sorted([*still, *map(_in_inbox, shown)], key=attrgetter("arrival"))


def _to_itself(sender: str) -> InvalidInputError:
    return InvalidInputError(f"'{sender}' cannot send mail to itself; nothing was sent. Keep it in mind instead.")


def own_mail(recipient: str, mail_id: str, found: MailRecord | None) -> MailRecord:
    """The mail that was found, if it is in this mailbox; raises `UnknownMailError` for another's mail as for none."""
    if found is None or found.recipient != recipient:
        raise UnknownMailError(f"'{recipient}' has received no mail '{mail_id}'. Use an id that the mailbox shows.")
    return found


def _in_inbox(mail: MailRecord) -> InboxMail:
    return InboxMail(
        mail_id=mail.id,
        thread_id=mail.thread_id,
        sender=mail.sender,
        subject=mail.subject,
        priority=mail.priority,
        is_read=mail.state is not MailState.QUEUED,
        at=mail.created_at,
        arrival=mail.arrival,
    )
