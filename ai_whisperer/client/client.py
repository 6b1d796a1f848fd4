"""The client: what a program holds in its hand to work with a session on a server."""

from __future__ import annotations

import asyncio
import random as chance
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ai_whisperer.client.address import read_address
from ai_whisperer.client.base import AgentRef, ClientBase, agent_name
from ai_whisperer.client.calls import complete
from ai_whisperer.client.events import EventStream
from ai_whisperer.client.hub import Hub
from ai_whisperer.client.tasks import ClientTasks
from ai_whisperer.core import locking
from ai_whisperer.core.agent_log import checked_level
from ai_whisperer.core.changes import checked_changes, checked_effects
from ai_whisperer.core.limits import Stated, changes_by_name
from ai_whisperer.core.mailbox import check_each, check_mail_text, checked_drafts, priority_of
from ai_whisperer.core.paging import checked_limit, checked_position
from ai_whisperer.core.tags import checked_needs
from ai_whisperer.core.text import check_text
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.clock import IdSource, SystemClock, TimedIds
from ai_whisperer.domain.cluster import ClusterStatus, PlacedSession
from ai_whisperer.domain.forks import Comparison, Effects, ForkReport
from ai_whisperer.domain.limits import Limits, LimitScope, LimitsReport, SessionLimits
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.domain.mail import MailDraft, MailRecord
from ai_whisperer.domain.notification import LogEntries, Notification
from ai_whisperer.domain.notifications.agents import AgentStateChanged
from ai_whisperer.domain.sessions import SessionSummary
from ai_whisperer.domain.tools import ToolEntry
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.protocol import agents, cluster, locks, mail, sessions, subscriptions, tools
from ai_whisperer.protocol import limits as protocol
from ai_whisperer.protocol.agents import AgentDetails, AgentStates
from ai_whisperer.protocol.sessions import ImportedSession, ServerInfo, TemplateDetails

_ANY_SIZE = sys.maxsize
"""How long a mail may be is for the server to say."""
_LOOK_AGAIN_SECONDS = 5.0
"""Notifications say when to look whether all are at rest. They are hints, and this is the net under them."""


@complete
class Client(ClientTasks):
    """Works with a session on a server. Use it as `async with Client("http://127.0.0.1:8642/?token=…") as client:`.

    The methods are those of `AsyncAgentSessionManager`, but all are to be awaited, and return and raise the same, with
    these exceptions. `create_agent` returns the status of the agent, takes templates by name, and no tools: those are
    code, and the server has its own. In place of `subscribe` there is `events`.

    `url` is the address that the server printed, of its page or its WebSocket; `token` is needed if the address does
    not have it. A server that is not there when the client is opened is an error at once; later the client connects
    again by itself for up to `reconnect_seconds`, and requests wait for that. `certificate` is the file of a
    certificate to trust, for a server whose own signs itself.

    A request whose answer was lost is repeated if that cannot do harm: one that only reads, and one that carries the id
    of what it makes (`send_task`, `run_task`, `send_mail`, `send_mails`, `reply_mail`, `broadcast_event`,
    `create_room`, `post_message`, `create_schedule`), which the server takes once under that id. The client gives these
    an id if the caller did not. `renew_lock` may happen twice. All others, such as `pause_agent` or `mark_mail`, raise
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

    async def __aexit__(self, *_: object) -> None:
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
        `deltas` the pieces of answers come along as they are streamed, unnumbered. Where the log was pruned a
        `log.skipped` says so: take a `snapshot` to know what the session is like.
        """
        position = None if after is None else checked_position(after)
        return self._hub.stream(self._session_id, after=position, deltas=deltas)

    async def notifications(self, *, after: int = 0, limit: int = 1000) -> list[Notification]:
        params = subscriptions.ListNotifications(
            session_id=self._session_id, after=checked_position(after), limit=checked_limit(limit)
        )
        return (await self._call(subscriptions.LIST_NOTIFICATIONS, params)).notifications

    async def at_rest(self) -> None:
        while True:
            states = await self.get_agent_states()
            busy = {status.agent_id for status in states.agents.values() if _is_busy(status)}
            if not busy:
                return
            async with self.events(after=states.last_seq) as events:
                await _calm(busy, events)

    async def get_agent(self, agent_id: AgentRef) -> AgentDetails:
        """What one agent is doing, and its definition."""
        params = agents.GetAgent(session_id=self._session_id, agent_id=agent_name(agent_id))
        return await self._call(agents.GET_AGENT, params)

    async def send_mails(self, mails: Sequence[MailDraft]) -> list[MailRecord]:
        drafts = checked_drafts(mails)
        check_each(drafts, lambda draft: check_mail_text(draft.subject, draft.body, _ANY_SIZE))
        sent = [_sent_mail(draft, draft.mail_id or self._new_id()) for draft in drafts]
        params = mail.SendMails(session_id=self._session_id, mails=sent)
        return (await self._call(mail.SEND_MAILS, params)).mails

    async def get_agent_status(self, agent_id: AgentRef) -> AgentStatus:
        return (await self.get_agent(agent_id)).status

    async def get_agent_states(self) -> AgentStates:
        """What all agents are doing, by id, as they are after the notification `last_seq`."""
        return await self._call(agents.GET_AGENT_STATES, agents.GetAgentStates(session_id=self._session_id))

    async def agent_threads(self) -> dict[str, Sequence[str]]:
        return {status.agent_id: status.running_tasks for status in await self.list_agents() if status.started}

    async def list_agents(self) -> list[AgentStatus]:
        return list((await self.get_agent_states()).agents.values())

    async def acquire_lock(
        self, name: str, *, ttl_seconds: float = 60.0, wait_seconds: float = 0.0, holder: str | None = None
    ) -> LockRecord:
        locking.check_lock(name, ttl_seconds)
        params = locks.AcquireLock(
            session_id=self._session_id,
            name=name,
            ttl_seconds=ttl_seconds,
            wait_seconds=locking.checked_wait(wait_seconds),
            holder=None if holder is None else locking.checked_holder(holder),
        )
        if not wait_seconds:
            return await self._call(locks.ACQUIRE_LOCK, params)
        return await self._hub.do_apart(locks.ACQUIRE_LOCK, params)

    async def set_limits(self, limits: Stated, *, agent_id: AgentRef | None = None) -> LimitsReport:
        name = None if agent_id is None else agent_name(agent_id)
        changes = changes_by_name(limits, SessionLimits if agent_id is None else Limits)
        params = protocol.SetLimits(session_id=self._session_id, limits=changes, agent_id=name)
        return await self._call(protocol.SET_LIMITS, params)

    async def set_server_limits(self, limits: Stated) -> LimitsReport:
        """Change the limits of the server, which hold for all its sessions; only the principal `local` may.

        Returns those of this session as they are now. They override the setting `limits` and survive a restart.
        """
        changes = changes_by_name(limits, SessionLimits)
        params = protocol.SetLimits(session_id=self._session_id, limits=changes, scope=LimitScope.SERVER)
        return await self._call(protocol.SET_LIMITS, params)

    async def list_tools(self) -> list[ToolEntry]:
        """The tools that agents can be granted, and the tool files that cannot be used, each with its error."""
        return (await self._call(tools.LIST_TOOLS, tools.ListTools())).tools

    async def get_template(self, name: str) -> TemplateDetails:
        """One template with its definition; raises `UnknownTemplateError`."""
        if not isinstance(name, str):
            raise InvalidInputError(f"Name a template by text, not by {type(name).__name__}.")
        return await self._call(sessions.GET_TEMPLATE, sessions.GetTemplate(name=name))

    async def read_log(
        self, agent_id: AgentRef, *, after: int | None = None, limit: int = 200, level: str | None = None
    ) -> LogEntries:
        """The debug log of an agent: its last entries, or those after the `next` of an earlier answer.

        `level` is the least that is in it (`debug`, `info`, `warning`, `error`), by default what the server is set to.
        """
        params = sessions.ReadLog(
            session_id=self._session_id,
            agent_id=agent_name(agent_id),
            after=after,
            limit=checked_limit(limit),
            level=None if level is None else checked_level(level),
        )
        return await self._call(sessions.READ_LOG, params)

    async def create_session(
        self, session_id: str | None = None, *, title: str = "", limits: Stated = None, needs: Iterable[str] = ()
    ) -> SessionSummary:
        """Make a session: a workspace with its own agents. Its id is chosen unless given.

        `limits` are what the session states: the limits of its agents, and of the session as a whole. `needs` are tags
        of nodes: it is only at those that have them all.
        """
        stated = None if limits is None else changes_by_name(limits, SessionLimits)
        params = sessions.CreateSession(session_id=session_id, title=title, limits=stated, needs=checked_needs(needs))
        return await self._call(sessions.CREATE_SESSION, params)

    async def set_needs(self, needs: Iterable[str], *, session_id: str | None = None) -> SessionSummary:
        """Let a session, this one unless another is named, need these tags, and go to a node that has them.

        Raises `StateError` if no node of the cluster has them that takes sessions.
        """
        there = self._session_id if session_id is None else session_id
        return await self._call(sessions.SET_NEEDS, sessions.SetNeeds(session_id=there, needs=checked_needs(needs)))

    async def list_sessions(self, *, limit: int = 10_000) -> list[SessionSummary]:
        """The sessions of the caller, the newest first."""
        params = sessions.ListSessions(limit=checked_limit(limit))
        return (await self._call(sessions.LIST_SESSIONS, params)).sessions

    async def get_session(self, session_id: str | None = None) -> SessionSummary:
        """One session of the caller: this one unless another is named."""
        params = sessions.GetSession(session_id=self._session_id if session_id is None else session_id)
        return await self._call(sessions.GET_SESSION, params)

    async def import_session(self, file: str, *, session_id: str | None = None) -> ImportedSession:
        """Bring in a session that `whisperer export` wrote to a file, a path on the server's machine.

        It gets its own id, or this one, which must be free. Only the principal `local` may.
        """
        params = sessions.ImportSession(file=str(file), session_id=session_id)
        return await self._call(sessions.IMPORT_SESSION, params)

    async def fork_session(
        self,
        at: int,
        *,
        session_id: str | None = None,
        changes: Mapping[str, Any] | None = None,
        effects: Effects | str = Effects.ASK,
        new_session_id: str | None = None,
        runs: int = 1,
    ) -> ForkReport:
        """Make a session that is as this one was after entry `at` of its log, and continues from there.

        `session_id` names another session than this one. `changes` are fields of agents that are to be otherwise:
        `{"writer.prompt": "Be brief."}`. `effects` is what becomes of calls with effects outside: `ask` (a person is
        asked), `recorded` (what the session did too is not done again, a person is asked about the rest) or `live`.
        Raises `RecordingError` with the nearest numbers that work, see `fork_points`.
        """
        params = sessions.ForkSession(
            session_id=self._session_id if session_id is None else session_id,
            at=at,
            set=None if changes is None else checked_changes(changes),
            effects=checked_effects(effects),
            new_session_id=new_session_id,
            runs=runs,
        )
        return await self._call(sessions.FORK_SESSION, params)

    async def compare_sessions(self, other_session_id: str, *, session_id: str | None = None) -> Comparison:
        """Lay this session, or the one of that id, and another one side by side: where agents first differ."""
        params = sessions.CompareSessions(
            session_id=self._session_id if session_id is None else session_id, other_session_id=other_session_id
        )
        return await self._call(sessions.COMPARE_SESSIONS, params)

    async def delete_session(self, session_id: str) -> SessionSummary:
        """Stop all agents of the session and delete everything in it, for good."""
        return await self._call(sessions.DELETE_SESSION, sessions.DeleteSession(session_id=session_id))

    async def server_info(self) -> ServerInfo:
        """Version, model and limits of the server, and who the caller is."""
        return await self._call(sessions.GET_SERVER_INFO, sessions.GetServerInfo())

    async def cluster_status(self) -> ClusterStatus:
        """The nodes that share the database of the server; raises `NoClusterError` if it is in a data folder."""
        return await self._call(cluster.GET_CLUSTER_STATUS, cluster.GetClusterStatus())

    async def drain_node(self, node: str, *, force: bool = False) -> ClusterStatus:
        """Let a node give all its sessions to others. Only the principal `local` may.

        Raises `StateError` if no other takes sessions, unless it is to be done by `force`.
        """
        return await self._call(cluster.DRAIN_NODE, cluster.DrainNode(node=node, force=force))

    async def move_session(self, session_id: str, node: str) -> PlacedSession:
        """Let a session go to that node; returns where it is then. Only the principal `local` may."""
        return await self._call(cluster.MOVE_SESSION, cluster.MoveSession(session_id=session_id, node=node))

    async def discover(self) -> dict[str, Any]:
        """All methods of the server as an OpenRPC document."""
        return await self._call(sessions.DISCOVER, sessions.Discover())


class _SessionView(Client):
    """Another session over the connections of a client that somebody else opens and closes."""

    def __init__(self, hub: Hub, session_id: str) -> None:
        check_text("session id", session_id, max_bytes=200)
        ClientBase.__init__(self, hub, session_id)

    async def open(self) -> None:
        """Nothing to do: the client that it came from has the connection."""

    async def close(self) -> None:
        """Nothing to do: the client that it came from has the connection."""


def _sent_mail(draft: MailDraft, mail_id: str) -> mail.NewMail:
    return mail.NewMail(
        to=agent_name(draft.to),
        subject=draft.subject,
        body=draft.body,
        mail_id=mail_id,
        priority=priority_of(draft.priority),
        thread_id=draft.thread_id,
    )


def _is_busy(status: AgentStatus) -> bool:
    """Whether the agent works, or is about to without anybody's help.

    One that sleeps and is asked by an agent that waits for it is about to work too, but then that one is busy.
    """
    if status.missing_tools:
        return False
    if status.state is AgentState.ACTIVE:
        return True
    return status.state is AgentState.IDLE and status.started and status.queue_size > 0


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
