"""The desk at which coordination tools work, and what such a tool is. They run in-process and touch only the store.

They work on a `Desk`, which the runtime provides: everything done there is part of the same transaction as the tool's
result, so it happens exactly once, and it happens in the name of the agent that called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from ai_whisperer.domain.conversation import ToolResult, ToolSpec
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.locks import LockRecord, LockSummary
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import Priority, TaskRecord
from ai_whisperer.errors import ToolArgumentsError
from ai_whisperer.tools.brief_schema import brief
from ai_whisperer.tools.parameters import ArgumentsParser, object_schema


class Desk(Protocol):
    """What a coordination tool may do in the name of the agent whose loop calls it."""

    def send_mail(self, *, to: str, subject: str, body: str, priority: Priority) -> MailRecord: ...

    def reply_mail(self, *, mail_id: str, body: str, priority: Priority | None) -> MailRecord:
        """Answer a mail; without a priority the answer is as urgent as the mail."""
        ...

    def take_mail(self, limit: int) -> tuple[Sequence[MailRecord], int]:
        """The first unread mails, in order, and how many are left."""
        ...

    def earlier_mail(self, limit: int) -> Sequence[MailRecord]:
        """The latest mails that the agent was shown before, in any conversation, in the order of their arrival."""
        ...

    def mail_to_answer(self) -> MailRecord | None:
        """The mail that the task is about, unless it was answered."""
        ...

    def ask(self, *, to: str, subject: str, body: str, priority: Priority, timeout_seconds: float | None) -> None:
        """Mail a question; the call waits for the answer, which becomes its result."""
        ...

    def ask_user(self, *, question: str, schema: Any, timeout_seconds: float | None) -> None:
        """Ask the person; the call waits for the answer, which becomes its result."""
        ...

    def delegate(self, *, to: str, prompt: str, priority: Priority, timeout_seconds: float | None) -> TaskRecord: ...

    def sleep(
        self, *, duration_seconds: float | None, until: str | None, wake_events: Sequence[str], reason: str
    ) -> str:
        """Let the agent sleep when its work has ended. Returns until when, in words."""
        ...

    def wake(self, *, agent: str, reason: str) -> None: ...

    def broadcast(self, *, event: str, data: Any) -> EventRecord: ...

    def listeners(self, event: str) -> int:
        """How many other agents that are started would hear of such an event."""
        ...

    def acquire_lock(self, *, name: str, ttl_seconds: float, wait_seconds: float | None) -> LockRecord | None:
        """The lock; None if the call waits for it, and has the lock as its result then."""
        ...

    def release_lock(self, name: str) -> None: ...

    def renew_lock(self, name: str, ttl_seconds: float) -> LockRecord: ...

    def locks(self) -> Sequence[LockSummary]: ...

    def agents(self) -> Sequence[Mapping[str, Any]]: ...

    def agent_status(self, name: str) -> Mapping[str, Any]: ...

    def task_status(self, task_id: str) -> Mapping[str, Any]:
        """How far a task is that the agent has delegated; raises `UnknownTaskError` for any other."""
        ...

    def create_agent(self, agent_id: str, *, template: str | None, prompt: str | None, description: str) -> str:
        """Create an agent that has no more rights than this one; returns its id."""
        ...

    def read_result(self, step: str) -> tuple[str, bool]:
        """The text of a step of this conversation as the journal has it, and whether strangers may have written it."""
        ...

    def report_progress(self, percent: float | None, note: str) -> None: ...


class Wanted(Struct, frozen=True):
    """What a tool needs at its desk that may not be in memory.

    A mail, so many of the latest of the mailbox, a step, a task.
    """

    mail_id: str = ""
    mailbox: int = 0
    step: str = ""
    task_id: str = ""


_NOTHING_WANTED = Wanted()


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters: what a tool does not know is refused, a sender above all.

    The docstring of each is what models are told that the tool does, in each request: it has to be short, and to name
    the defaults that matter.
    """

    def run(self, desk: Desk) -> ToolResult | None:
        """Do it, see `CoordinationTool.run`."""
        raise NotImplementedError

    def wants(self) -> Wanted:
        """What has to be looked up before it runs."""
        return _NOTHING_WANTED


class CoordinationTool:
    """A tool that runs on the desk."""

    def __init__(self, name: str, arguments: type[Arguments]) -> None:
        self.name = name
        self._arguments = arguments
        self._looks_up = arguments.wants is not Arguments.wants

    @cached_property
    def spec(self) -> ToolSpec:
        whole = object_schema(self._arguments)
        description = " ".join(whole["description"].split())
        return ToolSpec(name=self.name, description=description, parameters=brief(whole))

    @cached_property
    def _parse(self) -> Callable[[str], Arguments]:
        return cast(Callable[[str], Arguments], ArgumentsParser(self._arguments).parse)

    def wanted(self, arguments: str) -> Wanted:
        """What has to be looked up before it runs; nothing for arguments that do not fit."""
        if not self._looks_up:
            return _NOTHING_WANTED
        try:
            return self._parse(arguments).wants()
        except ToolArgumentsError:
            return _NOTHING_WANTED

    def run(self, desk: Desk, arguments: str) -> ToolResult | None:
        """Do it and return the result, or None if the call waits for it.

        Raises a `WhispererError`, having changed nothing, if it cannot be done.
        """
        return self._parse(arguments).run(desk)
