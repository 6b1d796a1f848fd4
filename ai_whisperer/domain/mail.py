"""Mail between agents, and with the person."""

from __future__ import annotations

from enum import StrEnum
from typing import final

import msgspec

from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import SWITCH_SUFFIX, Origin, Priority, TaskRecord

USER = "user"
"""The address of the person: sender of what the API sends, recipient of what agents mail to people."""


class MailState(StrEnum):
    """How far a mail has come. `dead`: a dead letter, which waits for a person."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    READ = "read"
    REPLIED = "replied"
    ARCHIVED = "archived"
    DEAD = "dead"


@final
class MailRecord(Record, frozen=True, kw_only=True):
    """A durable message. `sequence` counts the mails of one sender; `task_id` is the task that handles it.

    An `awaited` mail is one whose sender waits for the answer, or did: its task's result is its reply. A mail with
    `erased_at` no longer has a subject and a body.
    """

    session_id: str
    id: str
    thread_id: str
    sender: str
    sequence: int
    recipient: str
    subject: str
    body: str
    arrival: int
    cause: str
    priority: Priority = Priority.NORMAL
    reply_to: str | None = None
    state: MailState = MailState.QUEUED
    task_id: str | None = None
    created_at: float = 0.0
    read_at: float | None = None
    awaited: bool = False
    origin: Origin | None = None
    erased_at: float | None = None

    @property
    def mail_id(self) -> str:
        """The id, called as it is on the wire."""
        return self.id

    @property
    def work_thread_id(self) -> str:
        """The thread of the task that handles the mail: an awaited one has a conversation of its own."""
        return f"{self.thread_id}{SWITCH_SUFFIX}" if self.awaited else self.thread_id


class MailDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A mail that is to be sent. `to` is any name of an agent; the sender is who sends it.

    Under a `mail_id` it is sent once, however often that is tried.
    """

    to: str
    subject: str
    body: str
    priority: Priority = Priority.NORMAL
    thread_id: str | None = None
    mail_id: str | None = None


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be done and waits for a person: `retry_task` takes it up again, `dismiss_task` off the list."""

    tasks: list[TaskRecord]
    mails: list[MailRecord]
