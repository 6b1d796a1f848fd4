"""What an agent is doing, at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ai_whisperer.coordination import WaitKind
from ai_whisperer.records import AgentState, MailRecord, StepRecord, Usage

if TYPE_CHECKING:
    from ai_whisperer.runtime.agent_session import AgentSession


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is doing. `current_task` is the kind of the task that has run longest.

    It runs since `running_since`, and a step of it ended last at `last_step_at`: one that hangs shows itself there.
    `waiting_for` names the agents, and the locks as `lock:name`, that its loops wait for. While there are
    `missing_tools` the agent waits for them: hand them in with `give_tools`.
    """

    agent_id: str
    state: AgentState
    current_task: str | None
    queue_size: int
    sleeping_until: float | None
    started: bool
    reason: str
    unread_mail: int
    running_tasks: tuple[str, ...]
    progress_percent: float | None
    progress_note: str
    tasks: int
    usage: Usage
    name: str
    description: str
    wake_events: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    missing_tools: tuple[str, ...] = ()
    running_since: float | None = None
    last_step_at: float | None = None


def status_of(agent: AgentSession) -> AgentStatus:
    loop = next(iter(agent.loops.values()), None)
    record = agent.record
    sleep = record.sleep
    return AgentStatus(
        agent_id=record.id,
        state=record.state,
        current_task=loop.task.kind.value if loop else None,
        queue_size=agent.queue_size,
        sleeping_until=sleep.until if sleep else None,
        started=record.started,
        reason=record.reason,
        unread_mail=sum(isinstance(item, MailRecord) for item in agent.waiting),
        running_tasks=tuple(agent.loops),
        progress_percent=loop.task.progress_percent if loop else None,
        progress_note=loop.task.progress_note if loop else "",
        tasks=agent.used.tasks,
        usage=agent.used.usage,
        name=record.definition.name or record.id,
        description=record.definition.description,
        wake_events=sleep.wake_events if sleep else (),
        waiting_for=tuple(_waited_for(agent)),
        missing_tools=agent.equipment.missing_tools,
        running_since=loop.task.started_at if loop else None,
        last_step_at=_last_step_at(loop.running.steps) if loop else None,
    )


def _last_step_at(steps: Sequence[StepRecord]) -> float | None:
    return next((step.finished_at for step in reversed(steps) if step.finished_at is not None), None)


def _waited_for(agent: AgentSession) -> Iterator[str]:
    for task_id in agent.loops:
        for wait in agent.workspace.waits.of_task(task_id):
            yield wait.target_agent if wait.kind is WaitKind.REPLY else f"lock:{wait.target}"
