"""The client: what a program holds in its hand to work with a session on a server."""

from __future__ import annotations

import asyncio
import random as chance
from types import TracebackType
from typing import Any

from ai_whisperer.client.address import read_address
from ai_whisperer.client.agents import ClientAgents, is_busy
from ai_whisperer.client.approvals import ClientApprovals
from ai_whisperer.client.base import AgentRef, TaskRef, agent_name
from ai_whisperer.client.events import EventStream
from ai_whisperer.client.hub import Hub
from ai_whisperer.client.limits import ClientLimits
from ai_whisperer.client.locks import ClientLocks
from ai_whisperer.client.mail import ClientMail
from ai_whisperer.client.mcp import ClientMcp
from ai_whisperer.client.rooms import ClientRooms
from ai_whisperer.client.schedules import ClientSchedules
from ai_whisperer.client.tasks import ClientTasks
from ai_whisperer.core.limits import Stated, changes_by_name
from ai_whisperer.core.paging import checked_kind, checked_limit, checked_position
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.clock import IdSource, SystemClock, TimedIds
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.agents import AgentStateChanged
from ai_whisperer.domain.sessions import IdKind, SessionSummary
from ai_whisperer.domain.snapshot import Snapshot
from ai_whisperer.domain.tools import ToolEntry
from ai_whisperer.domain.usage import UsageReport
from ai_whisperer.domain.waits import ResourceStatus
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import resources, sessions, subscriptions, tools
from ai_whisperer.protocol.sessions import LogEntries, ServerInfo, TemplateDetails
from ai_whisperer.templates.library import TemplateEntry

_LOOK_AGAIN_SECONDS = 5.0
"""Notifications say when to look whether all are at rest. They are hints, and this is the net under them."""


class Client(
    ClientAgents,
    ClientTasks,
    ClientMail,
    ClientRooms,
    ClientSchedules,
    ClientLocks,
    ClientMcp,
    ClientApprovals,
    ClientLimits,
):
    """Works with a session on a server. Use it as `async with Client("http://127.0.0.1:8642/?token=…") as client:`.

    The methods are those of `AsyncAgentSessionManager`, but all are to be awaited, and return and raise the same, with
    these exceptions. `create_agent` returns the status of the agent, takes templates by name, and no tools: those are
    code, and the server has its own. In place of `subscribe` there is `events`.

    `url` is the address that the server printed, of its page or its WebSocket; `token` is needed if the address does
    not have it. A server that is not there when the client is opened is an error at once; later the client connects
    again by itself for up to `reconnect_seconds`, and requests wait for that. `certificate` is the file of a
    certificate to trust, for a server whose own signs itself.

    A request whose answer was lost is repeated if that cannot do harm: one that only reads, and one that carries the id
    of what it makes (`send_task`, `run_task`, `send_mail`, `reply_mail`, `broadcast_event`, `create_room`,
    `post_message`, `create_schedule`), which the server takes once under that id. The client gives these an id if the
    caller did not. `renew_lock` may happen twice. All others, such as `pause_agent` or `mark_mail`, raise
    `ConnectionLostError`, whose `was_sent` says whether they may have taken effect. `random` and `ids` are where chance
    and these ids come from.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        session_id: str = "default",
        reconnect_seconds: float = 60.0,
        certificate: str | None = None,
        random: chance.Random | None = None,
        ids: IdSource | None = None,
    ) -> None:
        check_text("session id", session_id, max_bytes=200)
        if not isinstance(reconnect_seconds, int | float) or not 0 <= reconnect_seconds <= 86_400:
            raise InvalidInputError("reconnect_seconds must be 0 to 86400.")
        address = read_address(url, token, certificate=certificate)
        random = random or chance.SystemRandom()
        ids = ids or TimedIds(SystemClock(), random)
        super().__init__(Hub(address, reconnect_seconds=reconnect_seconds, ids=ids, chance=random), session_id)

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect; raises `UnauthorizedError`, or `ConnectionLostError` if nobody answers."""
        await self._hub.open()

    async def close(self) -> None:
        """Let go of the server. Streams of events end, requests that were not answered raise `ClosedError`."""
        await self._hub.close()

    def session(self, session_id: str) -> Client:
        """Another session over the same connection. It need not be opened or closed; it ends with this client."""
        return _SessionView(self._hub, session_id)

    def events(self, *, after: int | None = None, deltas: bool = False) -> EventStream:
        """An iterator over the notifications after this number (0: from the start; None: from now on).

        It continues across lost connections and restarts of the server without a gap and without a repetition. With
        `deltas` the pieces of answers come along as they are streamed, unnumbered.
        """
        position = None if after is None else checked_position(after)
        return self._hub.stream(self._session_id, after=position, deltas=deltas)

    async def notifications(self, *, after: int = 0, limit: int = 1000) -> list[Notification]:
        """A page of the numbered log."""
        params = subscriptions.ListNotifications(
            session_id=self._session_id, after=checked_position(after), limit=checked_limit(limit)
        )
        return (await self._ask(subscriptions.LIST_NOTIFICATIONS, params)).notifications

    async def at_rest(self) -> None:
        """Wait until no agent works or is about to.

        Agents that sleep, are paused, stopped or wait for tools do not count, whatever waits for them.
        """
        while True:
            states = await self.get_agent_states()
            busy = {status.agent_id for status in states.agents.values() if is_busy(status)}
            if not busy:
                return
            async with self.events(after=states.last_seq) as events:
                await _calm(busy, events)

    async def list_tools(self) -> list[ToolEntry]:
        """The tools that agents can be granted, and the tool files that cannot be used, each with its error."""
        return (await self._ask(tools.LIST_TOOLS, tools.ListTools())).tools

    async def list_templates(self) -> list[TemplateEntry]:
        """The templates that agents can be made of, and the files that cannot be used, each with its error."""
        return (await self._ask(sessions.LIST_TEMPLATES, sessions.ListTemplates())).templates

    async def get_template(self, name: str) -> TemplateDetails:
        """One template with its definition; raises `UnknownTemplateError`."""
        if not isinstance(name, str):
            raise InvalidInputError(f"Name a template by text, not by {type(name).__name__}.")
        return await self._ask(sessions.GET_TEMPLATE, sessions.GetTemplate(name=name))

    async def list_resources(self) -> list[ResourceStatus]:
        """The resources that tools touch now: who holds them, and who waits for them."""
        params = resources.ListResources(session_id=self._session_id)
        return (await self._ask(resources.LIST_RESOURCES, params)).resources

    async def find_ids(self, kind: IdKind | str, beginning: str, *, limit: int = 10) -> list[str]:
        """The ids of what is of that kind (`task`, `mail` …) which begin so; one that is just this comes first."""
        params = sessions.FindIds(
            session_id=self._session_id, kind=checked_kind(kind), beginning=beginning, limit=checked_limit(limit)
        )
        return (await self._ask(sessions.FIND_IDS, params)).ids

    async def usage(self, task: TaskRef | None = None) -> UsageReport:
        """What the agents of the session have used, each and together; of a task, what all its tree has used."""
        task_id = None if task is None else self._task_id(task)
        return await self._ask(sessions.GET_USAGE, sessions.GetUsage(session_id=self._session_id, task_id=task_id))

    async def read_log(self, agent_id: AgentRef, *, after: int | None = None, limit: int = 200) -> LogEntries:
        """The debug log of an agent: its last entries, or those after the `next` of an earlier answer."""
        params = sessions.ReadLog(
            session_id=self._session_id, agent_id=agent_name(agent_id), after=after, limit=checked_limit(limit)
        )
        return await self._ask(sessions.READ_LOG, params)

    async def create_session(
        self, session_id: str | None = None, *, title: str = "", limits: Stated = None
    ) -> SessionSummary:
        """Make a session: a workspace with its own agents. Its id is chosen unless given.

        `limits` are what the session states: the limits of its agents, and of the session as a whole.
        """
        stated = None if limits is None else changes_by_name(limits, SessionLimits)
        params = sessions.CreateSession(session_id=session_id, title=title, limits=stated)
        return await self._do(sessions.CREATE_SESSION, params)

    async def list_sessions(self, *, limit: int = 10_000) -> list[SessionSummary]:
        """The sessions of the caller, the newest first."""
        params = sessions.ListSessions(limit=checked_limit(limit))
        return (await self._ask(sessions.LIST_SESSIONS, params)).sessions

    async def snapshot(self) -> Snapshot:
        """Everything that is to be seen of the session at one moment: subscribe after it to resume from there."""
        return await self._ask(sessions.GET_SNAPSHOT, sessions.GetSnapshot(session_id=self._session_id))

    async def get_session(self, session_id: str | None = None) -> SessionSummary:
        """One session of the caller: this one unless another is named."""
        params = sessions.GetSession(session_id=self._session_id if session_id is None else session_id)
        return await self._ask(sessions.GET_SESSION, params)

    async def delete_session(self, session_id: str) -> SessionSummary:
        """Stop all agents of the session and delete everything in it, for good."""
        return await self._do(sessions.DELETE_SESSION, sessions.DeleteSession(session_id=session_id))

    async def server_info(self) -> ServerInfo:
        """Version, model and limits of the server, and who the caller is."""
        return await self._ask(sessions.GET_SERVER_INFO, sessions.GetServerInfo())

    async def discover(self) -> dict[str, Any]:
        """All methods of the server as an OpenRPC document."""
        return await self._ask(sessions.DISCOVER, sessions.Discover())


class _SessionView(Client):
    """Another session over the connections of a client that somebody else opens and closes."""

    def __init__(self, hub: Hub, session_id: str) -> None:
        check_text("session id", session_id, max_bytes=200)
        ClientAgents.__init__(self, hub, session_id)

    async def open(self) -> None:
        """Nothing to do: the client that it came from has the connection."""

    async def close(self) -> None:
        """Nothing to do: the client that it came from has the connection."""


async def _calm(busy: set[str], events: EventStream) -> None:
    """Wait until none of these agents seems busy any more, or for a while."""
    try:
        async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
            async for note in events:
                if note.name == AgentStateChanged.wire_name:
                    change = busy.add if note.params["to"] == AgentState.ACTIVE else busy.discard
                    change(note.params["agentId"])
                if not busy:
                    return
    except TimeoutError:
        return
