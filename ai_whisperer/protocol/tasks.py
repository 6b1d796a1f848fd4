"""The methods `task.*`: what was given to agents, how far it is, what became of it."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.mail import DeadLetters
from ai_whisperer.domain.tasks import RetriedTasks, StepRecord, TaskRecord, ThreadSummary
from ai_whisperer.protocol.method import Effect, InSession, Method, OfAgent


class TaskList(msgspec.Struct, frozen=True):
    """Tasks."""

    tasks: list[TaskRecord]


class StepList(msgspec.Struct, frozen=True):
    """The steps of a task, in order."""

    steps: list[StepRecord]


class ThreadList(msgspec.Struct, frozen=True):
    """The conversations of an agent."""

    threads: list[ThreadSummary]


# Params of a method that acts on a task.
class OfTask(InSession, frozen=True, kw_only=True):
    task_id: str


class GetTask(OfTask, frozen=True, kw_only=True):
    """The task as it is now."""


class ListTasks(InSession, frozen=True, kw_only=True):
    agent_id: str | None = None
    limit: int = 100


class WaitTask(OfTask, frozen=True, kw_only=True):
    """Wait until the task has ended. If it has not after `timeoutSeconds`, it is answered as it is then.

    A task that was continued has ended when its last continuation has; that one is the result then, with the answer of
    all of them.
    """

    timeout_seconds: float = 60.0


class CancelTask(OfTask, frozen=True, kw_only=True):
    """End a task. When this is answered, what it ran has ended."""

    reason: str = "cancelled by the user"


class CancelTree(OfTask, frozen=True, kw_only=True):
    """End a task and everything that it caused. The answer has the tasks that were cancelled."""

    reason: str = "cancelled by the user"


class RetryFailed(InSession, frozen=True, kw_only=True):
    """Retry all failed tasks of an agent, or of all agents, that nobody has dismissed; the oldest first.

    Tasks at which the process died and cancelled ones are left alone. Those that cannot be retried, since their time is
    over, their budget is spent or the queue is full, are in `reasons`.
    """

    agent_id: str | None = None


class DismissTask(OfTask, frozen=True, kw_only=True):
    """Take a failed or dead task off the dead letters; the mail that it was for is archived.

    Everything about it is kept, and it can still be retried.
    """


class GetTree(OfTask, frozen=True, kw_only=True):
    """All tasks of the tree that the task belongs to, the oldest first; `parentId` says what caused what."""


class ListSteps(OfTask, frozen=True, kw_only=True):
    """The journal of a task: its model requests and tool calls, or what follows the step of the number `after`."""

    after: int = 0


GET_TASK = Method("task.get", GetTask, TaskRecord, "get_task", Effect.READS)
LIST_TASKS = Method("task.list", ListTasks, TaskList, "list_tasks", Effect.READS)
WAIT_TASK = Method("task.wait", WaitTask, TaskRecord, effect=Effect.READS)
CANCEL_TASK = Method("task.cancel", CancelTask, TaskRecord, "cancel_task")
CANCEL_TREE = Method("task.cancelTree", CancelTree, TaskList, "cancel_tree")
RETRY_TASK = Method("task.retry", OfTask, TaskRecord, "retry_task")
RETRY_FAILED = Method("task.retryFailed", RetryFailed, RetriedTasks, "retry_failed_tasks")
DISMISS_TASK = Method("task.dismiss", DismissTask, TaskRecord, "dismiss_task")
GET_TREE = Method("task.tree", GetTree, TaskList, "get_task_tree", Effect.READS)
LIST_STEPS = Method("task.steps", ListSteps, StepList, "list_steps", Effect.READS)
LIST_THREADS = Method("task.threads", OfAgent, ThreadList, "list_threads", Effect.READS)
LIST_DEAD_LETTERS = Method("task.deadLetters", InSession, DeadLetters, "dead_letters", Effect.READS)
