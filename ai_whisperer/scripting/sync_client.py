"""The client for scripts: the methods of `Client`, without `await`."""

from __future__ import annotations

import asyncio
import atexit
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from ai_whisperer.client import Client, EventStream
from ai_whisperer.core.budgets import deadline_after
from ai_whisperer.core.definitions import Config, overridden
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.task_events import TaskEvent
from ai_whisperer.errors import DuplicateIdError, UnknownAgentError
from ai_whisperer.scripting.background import BackgroundLoop
from ai_whisperer.scripting.finding import open_client
from ai_whisperer.session_api import TaskRef

P = ParamSpec("P")
R = TypeVar("R")


def _sync(method: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[SyncClient, P], R]:
    """The method for those who wait for its result."""

    @functools.wraps(method)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(method(self.client, *args, **kwargs))

    return call


class SyncClient:
    """Works with a session on a server, as `Client` does, from a program that does not use asyncio.

    Without an address it finds the server that runs, or starts one in this process, which then ends with it. It is
    closed by `close`, at the end of a `with` block, or at the end of the program.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, session_id: str | None = None) -> None:
        self._background = BackgroundLoop()
        self._stack = AsyncExitStack()
        try:
            self.client = self.run(open_client(self._stack, url, token, session_id))
        except BaseException:
            self.close()
            raise
        atexit.register(self.close)

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        return self._background.is_open

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Wait for a coroutine that uses `client`, the asynchronous client behind this one."""
        return self._background.run(work)

    def close(self) -> None:
        """Let go of the server.

        One that was started for this client ends; what is not done resumes when it is started again.
        """
        if self.is_open:
            atexit.unregister(self.close)
            try:
                self.run(self._stack.aclose())
            finally:
                self._background.close()

    def create_agent(
        self, agent_id: str, config: Config = None, *, template: str | None = None, auto_start: bool = True
    ) -> AgentStatus:
        """Create an agent as `Client.create_agent` does. One that is there already is returned as it is.

        If the config states something else than that agent has, `DuplicateIdError` is raised.
        """
        return self.run(_created(self.client, agent_id, config, template=template, auto_start=auto_start))

    def agent_states(self) -> dict[str, AgentStatus]:
        """What all agents are doing, by id."""
        return self.run(self.client.get_agent_states()).agents

    def wait_until_done(self, *, timeout_seconds: float | None = None) -> dict[str, AgentStatus]:
        """Wait until no agent works or is about to; returns what they are doing then, or when the time is over."""
        return self.run(_rested(self.client, timeout_seconds))

    def events(self, *, after: int | None = None, deltas: bool = False) -> Iterator[Notification]:
        """The notifications of the session from there on, as `Client.events` has them; endless."""
        return self._each(self.run(_begun(self.client, after=after, deltas=deltas)))

    def stream(self, task: TaskRef) -> Iterator[TaskEvent]:
        """What happens to a task, from its beginning to its end, as `Client.stream` has it."""
        stream = self.client.stream(task)
        try:
            while (event := self.run(_next(stream))) is not None:
                yield event
        finally:
            if self.is_open:
                self.run(stream.close())

    agent_threads = _sync(Client.agent_threads)
    acquire_lock = _sync(Client.acquire_lock)
    add_member = _sync(Client.add_member)
    answer_of = _sync(Client.answer_of)
    answer_question = _sync(Client.answer_question)
    approve = _sync(Client.approve)
    at_rest = _sync(Client.at_rest)
    break_lock = _sync(Client.break_lock)
    broadcast_event = _sync(Client.broadcast_event)
    cancel_task = _sync(Client.cancel_task)
    cancel_tree = _sync(Client.cancel_tree)
    check_lock = _sync(Client.check_lock)
    cluster_status = _sync(Client.cluster_status)
    compact_context = _sync(Client.compact_context)
    create_room = _sync(Client.create_room)
    create_schedule = _sync(Client.create_schedule)
    create_session = _sync(Client.create_session)
    dead_letters = _sync(Client.dead_letters)
    delete_agent = _sync(Client.delete_agent)
    delete_room = _sync(Client.delete_room)
    delete_schedule = _sync(Client.delete_schedule)
    delete_session = _sync(Client.delete_session)
    delete_thread = _sync(Client.delete_thread)
    discover = _sync(Client.discover)
    drain_node = _sync(Client.drain_node)
    find_ids = _sync(Client.find_ids)
    get_agent = _sync(Client.get_agent)
    get_agent_states = _sync(Client.get_agent_states)
    get_agent_status = _sync(Client.get_agent_status)
    get_attachment = _sync(Client.get_attachment)
    get_approval = _sync(Client.get_approval)
    get_context = _sync(Client.get_context)
    get_limits = _sync(Client.get_limits)
    get_question = _sync(Client.get_question)
    get_room = _sync(Client.get_room)
    get_schedule = _sync(Client.get_schedule)
    get_session = _sync(Client.get_session)
    move_session = _sync(Client.move_session)
    set_needs = _sync(Client.set_needs)
    snapshot = _sync(Client.snapshot)
    get_task = _sync(Client.get_task)
    get_task_tree = _sync(Client.get_task_tree)
    get_template = _sync(Client.get_template)
    import_session = _sync(Client.import_session)
    fork_session = _sync(Client.fork_session)
    fork_points = _sync(Client.fork_points)
    compare_sessions = _sync(Client.compare_sessions)
    interrupt_agent = _sync(Client.interrupt_agent)
    list_agents = _sync(Client.list_agents)
    list_approvals = _sync(Client.list_approvals)
    list_events = _sync(Client.list_events)
    list_locks = _sync(Client.list_locks)
    list_attachments = _sync(Client.list_attachments)
    list_memory = _sync(Client.list_memory)
    list_resources = _sync(Client.list_resources)
    list_mcp_servers = _sync(Client.list_mcp_servers)
    list_provider_accounts = _sync(Client.list_provider_accounts)
    list_questions = _sync(Client.list_questions)
    list_rooms = _sync(Client.list_rooms)
    list_schedules = _sync(Client.list_schedules)
    list_sessions = _sync(Client.list_sessions)
    list_steps = _sync(Client.list_steps)
    list_tasks = _sync(Client.list_tasks)
    list_templates = _sync(Client.list_templates)
    list_threads = _sync(Client.list_threads)
    list_tools = _sync(Client.list_tools)
    mailbox = _sync(Client.mailbox)
    mark_mail = _sync(Client.mark_mail)
    notifications = _sync(Client.notifications)
    open_chat = _sync(Client.open_chat)
    pause_agent = _sync(Client.pause_agent)
    pause_schedule = _sync(Client.pause_schedule)
    post_message = _sync(Client.post_message)
    prune = _sync(Client.prune)
    read_memory = _sync(Client.read_memory)
    read_log = _sync(Client.read_log)
    release_lock = _sync(Client.release_lock)
    refuse = _sync(Client.refuse)
    refuse_question = _sync(Client.refuse_question)
    remove_member = _sync(Client.remove_member)
    renew_lock = _sync(Client.renew_lock)
    reply_mail = _sync(Client.reply_mail)
    resume_agent = _sync(Client.resume_agent)
    resume_schedule = _sync(Client.resume_schedule)
    retry_failed_tasks = _sync(Client.retry_failed_tasks)
    retry_task = _sync(Client.retry_task)
    dismiss_task = _sync(Client.dismiss_task)
    room_messages = _sync(Client.room_messages)
    run_task = _sync(Client.run_task)
    send_mail = _sync(Client.send_mail)
    send_mails = _sync(Client.send_mails)
    server_info = _sync(Client.server_info)
    set_limits = _sync(Client.set_limits)
    set_server_limits = _sync(Client.set_server_limits)
    send_task = _sync(Client.send_task)
    sent_mail = _sync(Client.sent_mail)
    sleep_agent = _sync(Client.sleep_agent)
    start_agent = _sync(Client.start_agent)
    start_mcp_server = _sync(Client.start_mcp_server)
    stop_agent = _sync(Client.stop_agent)
    storage = _sync(Client.storage)
    usage = _sync(Client.usage)
    wait_task = _sync(Client.wait_task)
    wake_agent = _sync(Client.wake_agent)

    def _each(self, stream: EventStream) -> Iterator[Notification]:
        """The stream lets go of its connection when nobody holds it any more, as with the end of this generator."""
        while (note := self.run(_next(stream))) is not None:
            yield note


async def _created(
    client: Client, agent_id: str, config: Config, *, template: str | None, auto_start: bool
) -> AgentStatus:
    try:
        return await client.create_agent(agent_id, config, template=template, auto_start=auto_start)
    except DuplicateIdError as taken:
        with suppress(UnknownAgentError):
            known = await client.get_agent(agent_id)
            _check_same(known.status.agent_id, known.definition, config)
            return known.status
        raise taken from None  # not the id is taken, but another name that the agent was to have


def _check_same(agent_id: str, definition: AgentDefinition, config: Config) -> None:
    """Raise `DuplicateIdError` if the config states something that the agent does not have."""
    wanted = overridden(definition, config)
    fields = AgentDefinition.__struct_fields__
    others = [name for name in fields if getattr(wanted, name) != getattr(definition, name)]
    if others:
        raise DuplicateIdError(
            f"There is an agent '{agent_id}' already, with another definition ({', '.join(others)}); nothing was "
            f"changed. Choose another id, or give it the new one: stop_agent({agent_id!r}), then "
            f"start_agent({agent_id!r}, config)."
        )


async def _rested(client: Client, timeout_seconds: float | None) -> dict[str, AgentStatus]:
    deadline_after(timeout_seconds, now=0.0)
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_seconds):
            await client.at_rest()
    return (await client.get_agent_states()).agents


async def _begun(client: Client, *, after: int | None, deltas: bool) -> EventStream:
    return await client.events(after=after, deltas=deltas).__aenter__()


async def _next(stream: AsyncIterator[R]) -> R | None:
    """What the stream has next; None when it has ended."""
    return await anext(stream, None)
