"""What an agent is doing now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ai_whisperer.coordination import WaitKind
from ai_whisperer.records import MailRecord, StepRecord
from ai_whisperer.status import AgentStatus

if TYPE_CHECKING:
    from ai_whisperer.runtime.agent_session import AgentSession


def status_of(agent: AgentSession) -> AgentStatus:
    loop = next(iter(agent.loops.values()), None)
    record = agent.record
    sleep = record.sleep
    queue_size = agent.queue_size
    return AgentStatus(
        agent_id=record.id,
        state=record.state,
        current_task=loop.task.kind.value if loop else None,
        queue_size=queue_size,
        sleeping_until=sleep.until if sleep else None,
        started=record.started,
        reason=record.reason,
        unread_mail=sum(isinstance(item, MailRecord) for item in agent.waiting) if queue_size else 0,
        running_tasks=tuple(agent.loops),
        progress_percent=loop.task.progress_percent if loop else None,
        progress_note=loop.task.progress_note if loop else "",
        tasks=agent.used.tasks,
        usage=agent.used.usage,
        name=record.definition.name or record.id,
        description=record.definition.description,
        wake_events=sleep.wake_events if sleep else (),
        waiting_for=tuple(_waited_for(agent)) if loop else (),
        paused_for=tuple(_paused_for(agent)) if loop else (),
        missing_tools=agent.equipment.missing_tools,
        paused_limit=record.paused_limit,
        running_since=loop.task.started_at if loop else None,
        last_step_at=_last_step_at(loop.running.steps) if loop else None,
    )


def _last_step_at(steps: Sequence[StepRecord]) -> float | None:
    return next((step.finished_at for step in reversed(steps) if step.finished_at is not None), None)


def _waited_for(agent: AgentSession) -> Iterator[str]:
    for task_id in agent.loops:
        for wait in agent.workspace.waits.of_task(task_id):
            if wait.kind is WaitKind.REPLY:
                yield wait.target_agent
            elif wait.kind is not WaitKind.RESOURCE:
                yield f"{wait.kind}:{wait.target}"


def _paused_for(agent: AgentSession) -> Iterable[str]:
    resources = agent.workspace.admission.resources
    return dict.fromkeys(name for task_id in agent.loops for name in resources.waited_for_by(task_id))
