"""What an agent is doing now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ai_whisperer.core.sleeping import shown_until
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import StepKind, StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.runtime.agents.parts import Owner, Parts
from ai_whisperer.runtime.session.roles import Loop

_NO_RETRY = (None, "")


def statuses_of(parts: Parts) -> Iterator[AgentStatus]:
    """What all agents are doing. Those that take up tasks again are looked for once, not for each agent."""
    returning = Counter(task.agent_id for task in parts.roster.returning.values())
    for agent in parts.roster.agents.values():
        yield _status_of(agent, returning=returning[agent.agent_id] if returning else 0)


def status_of(agent: Owner) -> AgentStatus:
    returning = agent.parts.roster.returning.values()
    return _status_of(agent, returning=sum(task.agent_id == agent.agent_id for task in returning))


def _status_of(agent: Owner, *, returning: int) -> AgentStatus:
    loops = _oldest_first(agent.work.loops.values()) if agent.work.loops else ()
    loop = loops[0] if loops else None
    record = agent.record
    sleep = record.sleep
    queue_size = agent.work.size
    unread_mail = sum([isinstance(item, MailRecord) for item in agent.work.waiting]) if queue_size else 0
    used = agent.work.used
    steps = loop.running.journal.steps if loop else ()
    retry_at, retry_reason = retry_of(agent.parts, steps[-1]) if steps else _NO_RETRY
    return AgentStatus(
        agent_id=record.id,
        state=record.state,
        current_task=loop.task.kind.value if loop else None,
        queue_size=queue_size + returning,
        sleeping_until=shown_until(sleep, offset=agent.parts.kernel.clock.offset) if sleep else None,
        sleeping_by_wall_clock=sleep is not None and sleep.by_wall_clock,
        started=record.started,
        reason=record.reason,
        unread_mail=unread_mail,
        running_tasks=tuple(each.task.id for each in loops),
        progress_percent=loop.task.progress_percent if loop else None,
        progress_note=loop.task.progress_note if loop else "",
        tasks=used.tasks,
        usage=used.usage,
        name=record.definition.name or record.id,
        description=record.definition.description,
        wake_events=sleep.wake_events if sleep else (),
        waiting_for=tuple(_waited_for(agent, loops)) if loops else (),
        paused_for=tuple(_paused_for(agent, loops)) if loops else (),
        missing_tools=agent.missing_tools,
        paused_limit=record.paused_limit,
        running_since=loop.task.started_at if loop else None,
        last_step_at=last_step_at(loop.task, steps) if loop else None,
        last_activity_at=_last_activity_at(agent, loops) if loops else agent.work.active_at,
        dead_tasks=agent.parts.counters.dead_tasks[record.id],
        retry_at=retry_at,
        retry_reason=retry_reason,
    )


def as_it_is_now(parts: Parts, stored: TaskRecord) -> TaskRecord:
    """The task that was just read, as memory has it, but for an end that is not durable yet."""
    loop = parts.roster.running.get(stored.id)
    if loop is not None:
        return loop.task
    agent = parts.roster.agents.get(stored.agent_id)  # it may have been deleted
    waiting = None if agent is None else agent.work.find_waiting(stored.id)
    return waiting or parts.kernel.ended_lately.get(stored.id) or stored


def retry_of(parts: Parts, step: StepRecord) -> tuple[float | None, str]:
    """What the wall clock shows when a model request that failed is repeated, and why; None and "" if none waits."""
    if step.retry_at is None:
        return _NO_RETRY
    return parts.kernel.clock.shown(step.retry_at), "" if step.error is None else step.error.message


def last_step_at(task: TaskRecord, steps: Sequence[StepRecord]) -> float | None:
    """When a step of a running task ended last since the task was begun."""
    since, last = task.started_at or 0.0, None
    for step in reversed(steps):
        at = step.finished_at
        if at is not None and at >= since:
            last = at if last is None else max(last, at)
        if at is not None and step.kind is StepKind.MODEL:
            break  # all before it had ended when it began
    return last


async def shown_steps(parts: Parts, task_id: str, *, after: int = 0) -> list[StepRecord]:
    """The journal of a task as the store has it; what is to come is told by what the wall clock shows then."""
    clock, steps = parts.kernel.clock, await parts.kernel.reads.steps(task_id, after=after)
    if clock.offset and steps and steps[-1].retry_at is not None:  # a request that waits is the last step
        steps[-1] = replace(steps[-1], retry_at=clock.shown(steps[-1].retry_at))
    return steps


def _last_activity_at(agent: Owner, loops: Iterable[Loop]) -> float:
    steps = (last_step_at(loop.task, loop.running.journal.steps) for loop in loops)
    return max(agent.work.active_at, *(at or 0.0 for at in steps))


def _oldest_first(loops: Iterable[Loop]) -> Sequence[Loop]:
    return sorted(loops, key=lambda loop: (loop.task.started_at, loop.task.id))


def _waited_for(agent: Owner, loops: Iterable[Loop]) -> Iterator[str]:
    for loop in loops:
        for wait in agent.parts.waits.of_task(loop.task.id):
            if wait.kind is WaitKind.REPLY:
                yield wait.target_agent
            elif wait.kind is not WaitKind.RESOURCE:
                yield f"{wait.kind}:{wait.target}"


def _paused_for(agent: Owner, loops: Iterable[Loop]) -> Iterable[str]:
    turns = agent.parts.turns
    return dict.fromkeys(name for loop in loops for name in turns.waited_for_by(loop.task.id))
