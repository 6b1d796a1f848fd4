"""The tools with which agents work together. They touch only the store.

Such a tool runs in-process on the agent's desk. What it does becomes durable together with its result, in one
transaction, so that it happens exactly once whenever the process dies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol

import msgspec

from ai_whisperer.core.mailbox import as_text
from ai_whisperer.records import MailRecord, Priority, ToolResult, ToolSpec
from ai_whisperer.tools.function import ArgumentsParser, object_schema


class Desk(Protocol):
    """What a coordination tool may do in the name of the agent whose loop calls it."""

    def send_mail(self, *, to: str, subject: str, body: str, priority: Priority) -> MailRecord: ...

    def reply_mail(self, *, mail_id: str, body: str, priority: Priority) -> MailRecord: ...

    def take_mail(self, limit: int) -> tuple[Sequence[MailRecord], int]:
        """The first unread mails, in order, and how many are left."""
        ...

    def agents(self) -> Sequence[Mapping[str, Any]]: ...

    def agent_status(self, name: str) -> Mapping[str, Any]: ...

    def report_progress(self, percent: float | None, note: str) -> None: ...


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters: what a tool does not know is refused, a sender above all."""


class SendMail(_Arguments, frozen=True, kw_only=True):
    to_agent: str
    subject: str
    body: str
    priority: Priority = Priority.NORMAL


class ReplyMail(_Arguments, frozen=True, kw_only=True):
    mail_id: str
    body: str
    priority: Priority = Priority.NORMAL


class CheckMail(_Arguments, frozen=True, kw_only=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10


class ListAgents(_Arguments, frozen=True, kw_only=True):
    pass


class AgentStatusOf(_Arguments, frozen=True, kw_only=True):
    agent: str


class ReportProgress(_Arguments, frozen=True, kw_only=True):
    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""


class CoordinationTool:
    """A tool that runs on the desk."""

    __slots__ = ("_parser", "_run", "name", "spec")

    def __init__(
        self,
        name: str,
        description: str,
        arguments: type[_Arguments],
        run: Callable[[Desk, Any], ToolResult],
    ) -> None:
        self.name = name
        self.spec = ToolSpec(name=name, description=description, parameters=object_schema(arguments))
        self._parser = ArgumentsParser(arguments)
        self._run = run

    def run(self, desk: Desk, arguments: str) -> ToolResult:
        """Do it and return the result; raises a `WhispererError`, having changed nothing, if it cannot be done."""
        return self._run(desk, self._parser.parse(arguments))


def _send_mail(desk: Desk, given: SendMail) -> ToolResult:
    mail = desk.send_mail(to=given.to_agent, subject=given.subject, body=given.body, priority=given.priority)
    return ToolResult(content=f"Sent to {mail.recipient} as mail {mail.id}.")


def _reply_mail(desk: Desk, given: ReplyMail) -> ToolResult:
    mail = desk.reply_mail(mail_id=given.mail_id, body=given.body, priority=given.priority)
    return ToolResult(content=f"Replied to {mail.recipient} as mail {mail.id}.")


def _check_mail(desk: Desk, given: CheckMail) -> ToolResult:
    mails, left = desk.take_mail(given.limit)
    if not mails:
        return ToolResult(content="No new mail.")
    heading = f"{len(mails)} new mail(s)" + (f", {left} more waiting." if left else ".")
    return ToolResult(content="\n\n---\n".join([heading, *map(as_text, mails)]), mails=tuple(mail.id for mail in mails))


def _list_agents(desk: Desk, given: ListAgents) -> ToolResult:
    del given
    return _json(desk.agents())


def _agent_status(desk: Desk, given: AgentStatusOf) -> ToolResult:
    return _json(desk.agent_status(given.agent))


def _report_progress(desk: Desk, given: ReportProgress) -> ToolResult:
    desk.report_progress(given.percent, given.note)
    return ToolResult(content="Noted.")


def _json(value: Any) -> ToolResult:
    return ToolResult(content=msgspec.json.encode(value).decode())


COORDINATION_TOOLS: Mapping[str, CoordinationTool] = {
    made.name: made
    for made in (
        CoordinationTool(
            "send_mail",
            "Send mail to another agent, or to 'user' for the person. You do not wait; an answer comes as mail.",
            SendMail,
            _send_mail,
        ),
        CoordinationTool("check_mail", "Read your unread mail, the most urgent first.", CheckMail, _check_mail),
        CoordinationTool("reply_mail", "Answer a mail that you received.", ReplyMail, _reply_mail),
        CoordinationTool("list_agents", "List the agents of this session and what they do.", ListAgents, _list_agents),
        CoordinationTool(
            "agent_status", "See the state, the work and the progress of one agent.", AgentStatusOf, _agent_status
        ),
        CoordinationTool(
            "report_progress", "Tell others how far your present task is.", ReportProgress, _report_progress
        ),
    )
}
