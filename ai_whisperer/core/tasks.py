"""What becomes a task: a mail, a wake-up, an answer that asks for more."""

from __future__ import annotations

from msgspec.structs import replace

from ai_whisperer.core.mailbox import as_prompt
from ai_whisperer.records import AgentRecord, MailRecord, Origin, TaskKind, TaskRecord, TaskState


def base_id(task: TaskRecord) -> str:
    """The id of the task that this one continues in the end: its own, unless it is a continuation."""
    return task.id.rpartition("~")[0] if task.continuation else task.id


def continuation_id(task: TaskRecord) -> str:
    """The id of the task that continues this one, so that it can be found from it."""
    return f"{base_id(task)}~{task.continuation + 1}"


def inherited(task: TaskRecord) -> Origin:
    """Where that which the task causes comes from: it belongs to the same tree and keeps its terms."""
    return Origin(root_id=task.root_id, deadline_at=task.deadline_at, budget=task.budget)


def continuation_of(task: TaskRecord, *, now: float) -> TaskRecord:
    """The task that goes on with this one: in its thread, in its place in the order, on its terms."""
    return TaskRecord(
        session_id=task.session_id,
        id=continuation_id(task),
        agent_id=task.agent_id,
        thread_id=task.thread_id,
        kind=TaskKind.CONTINUATION,
        prompt="Go on where you stopped.",
        arrival=task.arrival,
        cause=f"task:{task.id}",
        priority=task.priority,
        parent_id=task.id,
        continuation=task.continuation + 1,
        created_at=now,
        origin=replace(task.origin or Origin(), root_id=task.root_id),
    )


def task_for_mail(mail: MailRecord, *, task_id: str, now: float) -> TaskRecord:
    """The task that a mail becomes when its turn comes; it runs from the start."""
    return TaskRecord(
        session_id=mail.session_id,
        id=task_id,
        agent_id=mail.recipient,
        thread_id=mail.thread_id,
        kind=TaskKind.MAIL,
        prompt=as_prompt(mail),
        arrival=mail.arrival,
        cause=f"mail:{mail.id}",
        priority=mail.priority,
        state=TaskState.RUNNING,
        mail_id=mail.id,
        attempts=1,
        created_at=now,
        started_at=now,
    )


def wake_up(agent: AgentRecord, reason: str, *, task_id: str, arrival: int, cause: str, now: float) -> TaskRecord:
    """The task that tells an agent why it was woken."""
    return TaskRecord(
        session_id=agent.session_id,
        id=task_id,
        agent_id=agent.id,
        thread_id=task_id,
        kind=TaskKind.WAKE,
        prompt=f"You were asleep and have been woken. Reason: {reason}",
        arrival=arrival,
        cause=cause,
        created_at=now,
    )
