"""Answers to `task.*`, `mail.*` and `room.*`."""

from __future__ import annotations

import asyncio

from ai_whisperer.coordination import MessageRecord, RoomRecord
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import mail, tasks
from ai_whisperer.records import MailRecord, TaskRecord
from ai_whisperer.runtime.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads
from ai_whisperer.status import DeadLetters

_LONGEST_WAIT_SECONDS = 24 * 3600.0


@reads(tasks.GET_TASK)
def get_task(session: AsyncAgentSessionManager, params: tasks.GetTask) -> TaskRecord:
    return session.get_task(params.task_id)


@reads(tasks.LIST_TASKS)
def list_tasks(session: AsyncAgentSessionManager, params: tasks.ListTasks) -> tasks.TaskList:
    return tasks.TaskList(session.list_tasks(params.agent_id, limit=params.limit))


@answers(tasks.WAIT_TASK)
async def wait_task(caller: Caller, params: tasks.WaitTask) -> TaskRecord:
    session = await caller.reading(params.session_id)
    if not 0 <= params.timeout_seconds <= _LONGEST_WAIT_SECONDS:
        raise InvalidInputError(f"timeoutSeconds must be 0 to {_LONGEST_WAIT_SECONDS:g}.")
    try:
        async with asyncio.timeout(params.timeout_seconds):
            return await session.wait_task(params.task_id)
    except TimeoutError:
        await session.flushed()
        return session.get_task(params.task_id)


@answers(tasks.CANCEL_TASK)
async def cancel_task(caller: Caller, params: tasks.CancelTask) -> TaskRecord:
    return await (await caller.session(params.session_id)).cancel_task(params.task_id, reason=params.reason)


@answers(tasks.CANCEL_TREE)
async def cancel_tree(caller: Caller, params: tasks.CancelTree) -> tasks.TaskList:
    session = await caller.session(params.session_id)
    return tasks.TaskList(await session.cancel_tree(params.task_id, reason=params.reason))


@answers(tasks.RETRY_TASK)
async def retry_task(caller: Caller, params: tasks.RetryTask) -> TaskRecord:
    return await (await caller.session(params.session_id)).retry_task(params.task_id)


@reads(tasks.GET_TREE)
def get_tree(session: AsyncAgentSessionManager, params: tasks.GetTree) -> tasks.TaskList:
    return tasks.TaskList(session.get_task_tree(params.task_id))


@reads(tasks.LIST_STEPS)
def list_steps(session: AsyncAgentSessionManager, params: tasks.ListSteps) -> tasks.StepList:
    return tasks.StepList(session.list_steps(params.task_id))


@reads(tasks.LIST_THREADS)
def list_threads(session: AsyncAgentSessionManager, params: tasks.ListThreads) -> tasks.ThreadList:
    return tasks.ThreadList(session.list_threads(params.agent_id))


@reads(tasks.LIST_DEAD_LETTERS)
def list_dead_letters(session: AsyncAgentSessionManager, _: tasks.ListDeadLetters) -> DeadLetters:
    return session.dead_letters()


@answers(mail.SEND_MAIL)
async def send_mail(caller: Caller, params: mail.SendMail) -> MailRecord:
    session = await caller.session(params.session_id)
    return await session.send_mail(
        params.to,
        params.subject,
        params.body,
        priority=params.priority,
        thread_id=params.thread_id,
        mail_id=params.mail_id,
    )


@answers(mail.REPLY_MAIL)
async def reply_mail(caller: Caller, params: mail.ReplyMail) -> MailRecord:
    session = await caller.session(params.session_id)
    return await session.reply_mail(params.mail_id, params.body, priority=params.priority)


@reads(mail.LIST_MAIL)
def list_mail(session: AsyncAgentSessionManager, params: mail.ListMail) -> mail.MailList:
    return mail.MailList(session.mailbox(params.owner, limit=params.limit))


@answers(mail.MARK_MAIL)
async def mark_mail(caller: Caller, params: mail.MarkMail) -> MailRecord:
    return await (await caller.session(params.session_id)).mark_mail(params.mail_id, params.state)


@answers(mail.CREATE_ROOM)
async def create_room(caller: Caller, params: mail.CreateRoom) -> RoomRecord:
    session = await caller.session(params.session_id)
    return await session.create_room(
        params.members, title=params.title, hop_limit=params.hop_limit, room_id=params.room_id
    )


@answers(mail.OPEN_CHAT)
async def open_chat(caller: Caller, params: mail.OpenChat) -> RoomRecord:
    return await (await caller.session(params.session_id)).open_chat(params.agent_id)


@reads(mail.LIST_ROOMS)
def list_rooms(session: AsyncAgentSessionManager, _: mail.ListRooms) -> mail.RoomList:
    return mail.RoomList(session.list_rooms())


@reads(mail.GET_ROOM)
def get_room(session: AsyncAgentSessionManager, params: mail.GetRoom) -> RoomRecord:
    return session.get_room(params.room_id)


@answers(mail.ADD_MEMBER)
async def add_member(caller: Caller, params: mail.AddMember) -> RoomRecord:
    return await (await caller.session(params.session_id)).add_member(params.room_id, params.agent_id)


@answers(mail.REMOVE_MEMBER)
async def remove_member(caller: Caller, params: mail.RemoveMember) -> RoomRecord:
    return await (await caller.session(params.session_id)).remove_member(params.room_id, params.agent_id)


@answers(mail.POST_MESSAGE)
async def post_message(caller: Caller, params: mail.PostMessage) -> MessageRecord:
    session = await caller.session(params.session_id)
    return await session.post_message(params.room_id, params.text, message_id=params.message_id)


@reads(mail.LIST_MESSAGES)
def list_messages(session: AsyncAgentSessionManager, params: mail.ListMessages) -> mail.MessageList:
    return mail.MessageList(session.room_messages(params.room_id, after=params.after, limit=params.limit))
