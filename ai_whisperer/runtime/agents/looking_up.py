"""What the next step of a task needs of the store. It is looked up first: a decision reads memory only.

Nothing is journaled for that. A loop that ends meanwhile looks it up again when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ai_whisperer.core.next_step import CallTools, Complete, Next, RequestModel
from ai_whisperer.core.paging import can_be_id
from ai_whisperer.core.tasks import continuation_id
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.tasks import TaskRecord, TaskState
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.tools.desk import CoordinationTool, Wanted

_MOST_DIGITS = 9


class LookUp(Struct, frozen=True):
    """Look up what this needs, then decide what comes next."""

    action: Next


class Found(Struct, frozen=True):
    """Mails that are to be answered, by id, and the latest of the agent's mailbox, the latest first.

    `unseen` are messages of its room that others are shown with the answer of the task. `texts` are those of steps of
    the same conversation, by id, and whether strangers may have written them. `tasks` are those that it wants to know
    about, and those that continue them, by id.
    """

    mails: Mapping[str, MailRecord | None] = {}
    mailbox: Sequence[MailRecord] = ()
    unseen: Sequence[MessageRecord] = ()
    texts: Mapping[str, tuple[str, bool] | None] = {}
    tasks: Mapping[str, TaskRecord] = {}


def is_wanted(agent: Owner, task: TaskRecord, action: Next) -> bool:
    """Whether something has to be looked up before this can be decided."""
    if type(action) is RequestModel:
        return task.origin is not None and task.budget is not None and agent.parts.trees.unknown(task)
    if type(action) is CallTools:
        find, trees, mail = agent.registry.find, agent.parts.trees, agent.parts.mail
        for pending in action.calls:
            tool = find(pending.call.name)
            if not isinstance(tool, CoordinationTool):
                continue
            wanted = tool.wanted(pending.call.arguments)
            if trees.unknown(task, to_grow=True) or wanted.mailbox or wanted.task_id:
                return True
            if wanted.mail_id and mail.in_memory(wanted.mail_id) is None:
                return True
            if wanted.step:
                return True
    elif type(action) is Complete:
        return task.origin is not None and agent.parts.rooms.asks_others(task, action.response)
    return False


async def look_up_wanted(agent: Owner, task: TaskRecord, action: Next) -> Found:
    """Bring what is wanted into memory."""
    if isinstance(action, Complete):
        return Found(unseen=await agent.parts.rooms.unseen_by_others(task))
    mails: dict[str, MailRecord | None] = {}
    mailbox: Sequence[MailRecord] = ()
    texts: dict[str, tuple[str, bool] | None] = {}
    tasks: dict[str, TaskRecord] = {}
    await agent.parts.trees.look_up_unknown(task, to_grow=isinstance(action, CallTools))
    for wanted in _wanted(agent, action) if isinstance(action, CallTools) else ():
        if wanted.mailbox:
            unread = agent.work.size + wanted.mailbox  # what waits, and what this task may take now
            mailbox = await agent.parts.kernel.reads.mailbox(agent.agent_id, limit=wanted.mailbox + unread)
        if wanted.mail_id:
            mails[wanted.mail_id] = await agent.parts.mail.find(wanted.mail_id)
        if wanted.step:
            texts[wanted.step] = await _text_of(agent, task, wanted.step)
        if wanted.task_id:
            tasks |= {part.id: part for part in await _parts_after(agent, wanted.task_id)}
    return Found(mails, mailbox, texts=texts, tasks=tasks)


async def _text_of(agent: Owner, own: TaskRecord, wanted: str) -> tuple[str, bool] | None:
    """What a step of the same conversation brought, as the journal has it; the step 0 is the prompt of its task."""
    task_id, _, number = wanted.rpartition(".")
    if not number.isascii() or not number.isdigit() or len(number) > _MOST_DIGITS or not can_be_id(task_id):
        return None
    reads = agent.parts.kernel.reads
    task = await reads.task(task_id)
    if task is None or (task.agent_id, task.thread_id) != (own.agent_id, own.thread_id):
        return None
    if int(number) == 0:
        return task.prompt, False
    step = next(iter(await reads.steps(task_id, after=int(number) - 1)), None)
    if step is None or step.number != int(number):
        return None
    if step.result is not None:
        return step.result.content, step.result.untrusted
    return None if step.answer is None else (step.answer.text, False)


async def _parts_after(agent: Owner, task_id: str) -> list[TaskRecord]:
    """The task, and those that have continued it, as the store has them."""
    parts: list[TaskRecord] = []
    while can_be_id(task_id) and (found := await agent.parts.kernel.reads.task(task_id)) is not None:
        parts.append(found)
        if found.state is not TaskState.CONTINUED:
            break
        task_id = continuation_id(found)
    return parts


def _wanted(agent: Owner, action: CallTools) -> Iterator[Wanted]:
    """What each of the coordination tools that are called wants."""
    for pending in action.calls:
        tool = agent.registry.find(pending.call.name)
        if isinstance(tool, CoordinationTool):
            yield tool.wanted(pending.call.arguments)
