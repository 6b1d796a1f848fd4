"""The one place where tasks end, and the order of what follows. All of it joins the decision that ends the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import UNSET
from msgspec.structs import replace

from ai_whisperer.core.queueing import Work
from ai_whisperer.core.tasks import continuation_of
from ai_whisperer.domain.conversation import ChannelResponse
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notifications.tasks import (
    AnswerTold,
    TaskCancelled,
    TaskCompleted,
    TaskContinued,
    TaskFailed,
    TaskJoined,
)
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.tasks import Failure, StepRecord, TaskRecord, TaskState
from ai_whisperer.runtime.agents.journal import TaskJournal
from ai_whisperer.runtime.limits.failing import TaskFailures
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.counters import Counters
from ai_whisperer.runtime.session.decision import Decision

Consequence = Callable[[Decision, TaskRecord], None]
"""What follows from the end of a task."""
Completed = Callable[[Decision, TaskRecord, Sequence[MessageRecord]], None]
"""What follows first when a task has its result, with what was looked up of its room for that."""
Continued = Callable[[Decision, TaskRecord, TaskRecord], None]
"""What follows when another task, the second, continues a task."""
PutOff = Callable[[Decision, Work], None]
"""What follows for work that waits when its agent stops."""

_NO_DETAILS: Mapping[str, Any] = MappingProxyType({})


class EndingTask(Protocol):
    """A task that ends: one that runs and whose worker has nothing left to do, or one that waits."""

    @property
    def journal(self) -> TaskJournal: ...
    def accept_continuation(self, decision: Decision, following: TaskRecord) -> None: ...
    def left(self, decision: Decision, mails: Sequence[MailRecord]) -> None:
        """Nothing of it is left but the mails that no model was shown: the agent has them, and begins its next."""


class TaskEnd:
    """Ends the tasks of one session.

    A task that has `ended` is completed, failed, cancelled, dead, or has joined another. A task that is `continued` has
    not: another holds and owes what it did. What waits in the queues of an agent that has stopped is `put_off`.
    """

    def __init__(
        self,
        counters: Counters,
        mail: Mail,
        failures: TaskFailures,
        *,
        completed: Completed,
        ended: tuple[Consequence, ...],
        continued: tuple[Continued, ...],
        put_off: tuple[PutOff, ...],
    ) -> None:
        self._counters = counters
        self._mail = mail
        self._failures = failures
        self._completed = completed
        self._ended = ended
        self._continued = continued
        self._put_off = put_off

    def complete(
        self, decision: Decision, running: EndingTask, response: ChannelResponse, *, unseen: Sequence[MessageRecord]
    ) -> None:
        """The task has its result. `unseen` are messages that others in its room are to be shown with it."""
        task = self._record(decision, running, TaskState.COMPLETED, response=response)
        result = AnswerTold.of(response, typed=task.output_schema is not None)
        decision.tell(TaskCompleted(agent_id=task.agent_id, task_id=task.id, result=result))
        self._completed(decision, task, unseen)
        self._follow(decision, running)

    def continue_in_another(
        self, decision: Decision, running: EndingTask, response: ChannelResponse, *, locks: list[str], cut: bool
    ) -> None:
        """The task asked for more, or was cut: another continues it, with the locks that it holds."""
        task = self._record(decision, running, TaskState.CONTINUED, response=response)
        following = continuation_of(task, now=decision.at, cut=cut)
        decision.tell(
            TaskContinued(
                agent_id=task.agent_id,
                task_id=task.id,
                continuation_id=following.id,
                number=following.continuation,
                result=AnswerTold.of(response),
                locks=locks or UNSET,
                cut=cut or UNSET,
            )
        )
        for follow in self._continued:
            follow(decision, task, following)
        running.accept_continuation(decision, following)
        running.left(decision, self._mail.task_ended(decision, task, heir=following))

    def join(self, decision: Decision, running: EndingTask, step: StepRecord) -> None:
        """The prompt of a task that waited went into another, before this step of it: that one's answer is for both."""
        running.journal.task = replace(running.journal.task, joined_step=step.id)
        task = self._record(decision, running, TaskState.JOINED)
        decision.unit.update_joined(task)
        decision.tell(TaskJoined(agent_id=task.agent_id, task_id=task.id, step_id=step.id))
        self._follow(decision, running)

    def fail(
        self,
        decision: Decision,
        running: EndingTask,
        failure: Failure,
        state: TaskState = TaskState.FAILED,
        details: Mapping[str, Any] = _NO_DETAILS,
    ) -> None:
        """The task cannot be done; `details` are the numbers of the limit that it fails for, if the error has them."""
        running.journal.settle_open_steps(decision)
        running.journal.take_back_unheard(decision)
        task = self._record(decision, running, state, error=failure)
        decision.tell(TaskFailed(agent_id=task.agent_id, task_id=task.id, state=state, error=failure))
        self._failures.task_failed(decision, running.journal, failure, details)
        self._mail.task_given_up(decision, task)
        self._follow(decision, running)

    def cancel(self, decision: Decision, running: EndingTask, reason: str) -> None:
        """Somebody wants the task to end without a result."""
        running.journal.settle_open_steps(decision)
        running.journal.take_back_unheard(decision)
        task = self._record(decision, running, TaskState.CANCELLED, error=Failure(code="cancelled", message=reason))
        decision.tell(TaskCancelled(agent_id=task.agent_id, task_id=task.id, reason=reason))
        self._follow(decision, running)

    def agent_stopped(self, decision: Decision, waiting: Iterable[Work]) -> None:
        """What waits in the queues of the agent waits for a start: nobody else should wait for that."""
        for item in waiting:
            for put_off in self._put_off:
                put_off(decision, item)

    def _record(
        self,
        decision: Decision,
        running: EndingTask,
        state: TaskState,
        *,
        response: ChannelResponse | None = None,
        error: Failure | None = None,
    ) -> TaskRecord:
        running.journal.count_up()  # the last change of the task has all that it has used
        running.journal.update_task(
            decision,
            replace(
                running.journal.task, state=state, attempts=0, result=response, error=error, finished_at=decision.at
            ),
        )
        task = running.journal.task
        self._counters.task_ended(task)
        decision.task_ended(task)
        return task

    def _follow(self, decision: Decision, running: EndingTask) -> None:
        for follow in self._ended:
            follow(decision, running.journal.task)
        running.left(decision, self._mail.task_ended(decision, running.journal.task))
