"""Tasks that are continued: the answer is spread over the task and those that go on with it."""

from __future__ import annotations

from msgspec import Struct

from ai_whisperer.core.tasks import whole_answer
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.reads import Reads


class Earlier(Struct, frozen=True):
    """What a task that continues others needs of them for its end: these parts, and the mail that they are about."""

    parts: tuple[TaskRecord, ...] = ()
    mail: MailRecord | None = None


class Continuations:
    """The earlier parts of the tasks that continue others and have not ended."""

    def __init__(self, mail: Mail) -> None:
        self._mail = mail
        self._earlier: dict[str, tuple[TaskRecord, ...]] = {}

    def parts_of(self, task: TaskRecord) -> tuple[TaskRecord, ...]:
        """The task that was given and those that went on with it, up to this one."""
        return (*self._earlier.get(task.id, ()), task)

    def answer_of(self, task: TaskRecord) -> str:
        """The whole final answer, in all its parts."""
        return whole_answer(self.parts_of(task))

    def take_up(self, task: TaskRecord, earlier: Earlier) -> None:
        """A task that continues others is taken up."""
        if earlier.parts:
            self._earlier[task.id] = earlier.parts
        if earlier.mail is not None:
            self._mail.take_up(self._mail.in_memory(earlier.mail.id) or earlier.mail, by=task.id)

    def task_continued(self, _: Decision, task: TaskRecord, following: TaskRecord) -> None:
        self._earlier[following.id] = self.parts_of(task)
        self._earlier.pop(task.id, None)

    def task_ended(self, _: Decision, task: TaskRecord) -> None:
        self._earlier.pop(task.id, None)


async def earlier_of(reads: Reads, task: TaskRecord) -> Earlier:
    """What came before the task, as the store has it."""
    if not task.continuation:
        return Earlier()
    earlier = tuple(await parts_of(reads, task))[:-1]
    mail_id = earlier[0].mail_id if earlier else None
    return Earlier(parts=earlier, mail=None if mail_id is None else await reads.mail(mail_id))


async def answer_of(reads: Reads, task: TaskRecord) -> str:
    """The whole final answer, in all its parts, as the store has them."""
    return whole_answer(await parts_of(reads, task))


async def parts_of(reads: Reads, task: TaskRecord) -> list[TaskRecord]:
    """The task with those that it goes on with before it, as the store has them.

    They are durable: the later had to wait for that before it asked its model.
    """
    parts = [task]
    while parts[0].continuation and parts[0].parent_id is not None:
        earlier = await reads.task(parts[0].parent_id)
        if earlier is None:
            break
        parts.insert(0, earlier)
    return parts
