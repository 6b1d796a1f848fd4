"""The desk at which coordination tools work: in the name of one agent, inside one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ai_whisperer.core.mailbox import in_order
from ai_whisperer.records import MailRecord, Priority, StepRecord
from ai_whisperer.runtime.status import status_of

if TYPE_CHECKING:
    from ai_whisperer.runtime.agent_session import AgentSession
    from ai_whisperer.runtime.running_task import RunningTask
    from ai_whisperer.runtime.workspace import Decision


class AgentDesk:
    """See `tools.coordination.Desk`. Everything done here joins the decision that records the step's result."""

    def __init__(self, agent: AgentSession, running: RunningTask, decision: Decision, step: StepRecord) -> None:
        self._agent = agent
        self._running = running
        self._decision = decision
        self._step = step

    def send_mail(self, *, to: str, subject: str, body: str, priority: Priority) -> MailRecord:
        return self._agent.workspace.post.send(
            self._decision,
            sender=self._agent.agent_id,
            to=to,
            subject=subject,
            body=body,
            priority=priority,
            thread_id=self._running.task.thread_id,
            mail_id=self._mail_id,
        )

    def reply_mail(self, *, mail_id: str, body: str, priority: Priority) -> MailRecord:
        post = self._agent.workspace.post
        original = post.received_by(self._agent.agent_id, mail_id)
        return post.reply(self._decision, original, body=body, priority=priority, mail_id=self._mail_id)

    def take_mail(self, limit: int) -> tuple[Sequence[MailRecord], int]:
        waiting = in_order(item for item in self._agent.queue if isinstance(item, MailRecord))
        for mail in waiting[:limit]:
            self._agent.queue.remove_mail(mail.id)
            self._agent.workspace.post.deliver(self._decision, mail, self._running.task.id)
        return waiting[:limit], len(waiting[limit:])

    def agents(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "agent": agent.agent_id,
                "name": agent.record.definition.name or agent.agent_id,
                "description": agent.record.definition.description,
                "state": agent.state,
            }
            for agent in self._agent.workspace.agents.values()
        ]

    def agent_status(self, name: str) -> Mapping[str, Any]:
        workspace = self._agent.workspace
        status = status_of(workspace.agents[workspace.book.resolve(name)])
        return {
            "agent": status.agent_id,
            "state": status.state,
            "current_task": status.current_task,
            "queue_size": status.queue_size,
            "sleeping_until": status.sleeping_until,
            "progress_percent": status.progress_percent,
            "progress_note": status.progress_note,
        }

    def report_progress(self, percent: float | None, note: str) -> None:
        task = replace(self._running.task, progress_percent=percent, progress_note=note)
        self._running.update_task(self._decision, task)
        self._decision.tell(
            "async.task.progress",
            {"agentId": task.agent_id, "taskId": task.id, "percent": percent, "note": note},
        )

    @property
    def _mail_id(self) -> str:
        """The same step sends the same mail. Callers cannot give ids with this sign, so that the two never meet."""
        return f"{self._step.id}~mail"
