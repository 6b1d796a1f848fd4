"""The methods on sessions as a whole, on what agents are made of and have used, and on the server itself."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.forks import Comparison, Effects, ForkReport
from ai_whisperer.domain.levels import Level
from ai_whisperer.domain.notification import LogEntries
from ai_whisperer.domain.sessions import IdKind, SessionSummary
from ai_whisperer.domain.snapshot import Snapshot
from ai_whisperer.domain.usage import UsageReport
from ai_whisperer.protocol.limits import Numbers
from ai_whisperer.protocol.method import Effect, InSession, Method, OfAgent, Params
from ai_whisperer.templates.library import TemplateEntry


class CreateSession(Params, frozen=True, kw_only=True):
    """Make a session: a workspace with its own agents. Its id is chosen unless given; it belongs to the caller.

    One that `needs` tags is at nodes of the cluster that have them all; without such a node it is refused.
    """

    session_id: str | None = None
    title: str = ""
    limits: Numbers | None = None
    needs: tuple[str, ...] = ()


class SetNeeds(InSession, frozen=True, kw_only=True):
    """Let a session need these tags, instead of those that it needed, of the nodes of the cluster that may have it.

    It goes to one that has them all, if it is elsewhere; the steps under way may finish before. Refused if no node has
    them that takes sessions.
    """

    needs: tuple[str, ...]


class ListSessions(Params, frozen=True, kw_only=True):
    """The sessions of the caller, the newest first."""

    limit: int = 10_000


class GetSession(InSession, frozen=True, kw_only=True):
    """One session of the caller."""


class DeleteSession(InSession, frozen=True, kw_only=True):
    """Stop all agents of the session and delete everything in it, for good."""


class ImportSession(Params, frozen=True, kw_only=True):
    """Bring in a session that `whisperer export` wrote to a file on the server's machine; the caller owns it.

    Only the principal `local` may. It gets its own id, or `sessionId`, which must be free.
    """

    file: str
    session_id: str | None = None


class ImportedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was imported: how many rows of each kind there are, and how many files."""

    session_id: str
    file: str
    rows: dict[str, int]
    files: int


class GetSnapshot(InSession, frozen=True, kw_only=True):
    """All that can be seen of the session at one moment; subscribe after its `lastSeq` to follow from there."""


class SessionList(msgspec.Struct, frozen=True):
    """Sessions, the newest first."""

    sessions: list[SessionSummary]


class ListTemplates(Params, frozen=True, kw_only=True):
    """The templates that agents can be made of, and the files that cannot be used, each with its error."""


class GetTemplate(Params, frozen=True, kw_only=True):
    """One template with its definition."""

    name: str


class TemplateList(msgspec.Struct, frozen=True):
    """Templates by name, and the files that cannot be used."""

    templates: list[TemplateEntry]


class TemplateDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A template, where it was read from, and the definition that it gives an agent.

    `ignored` is what its file says that means nothing here: fields, and tools that are not there.
    """

    name: str
    source: str
    definition: AgentDefinition
    ignored: tuple[str, ...] = ()


class FindIds(InSession, frozen=True, kw_only=True):
    """The ids of what is of that kind which begin so; one that is just this comes first."""

    kind: IdKind
    beginning: str
    limit: int = 10


class IdList(msgspec.Struct, frozen=True):
    """Ids, in order."""

    ids: list[str]


class FindForkPoints(InSession, frozen=True, kw_only=True):
    near: int
    limit: int = 2


class ForkPointList(msgspec.Struct, frozen=True):
    """Numbers of entries of the log, in order."""

    points: list[int]


class ForkSession(InSession, frozen=True, kw_only=True):
    """Make a session that is as this one was after entry `at` of its log, and continues from there; the caller owns it.

    Up to there it is played as it was recorded: nothing is asked or done again. `set` are fields of agents that are to
    be otherwise, by `AGENT.FIELD`. `newSessionId` is chosen unless given; with several `runs` it is how their ids
    begin. An `at` that does not work is refused with the nearest that do, in `data.points`.
    """

    at: int
    set: dict[str, Any] | None = None
    effects: Effects = Effects.ASK
    new_session_id: str | None = None
    runs: int = 1


class CompareSessions(InSession, frozen=True, kw_only=True):
    """Lay two sessions of the caller side by side: this one is A, the other one B.

    Steps are aligned by what caused them, so ids, times and orders do not matter.
    """

    other_session_id: str


class GetUsage(InSession, frozen=True, kw_only=True):
    task_id: str | None = None


class ReadLog(OfAgent, frozen=True, kw_only=True):
    """The debug log of an agent: its last entries, or those after the `next` of an earlier answer.

    `level` is the least that is in it, by default the setting `log_level`.
    """

    after: int | None = None
    limit: int = 200
    level: Level | None = None


class GetServerInfo(Params, frozen=True, kw_only=True):
    """Version, model and limits of the server, and who the caller is."""


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The server, and who the caller is to it.

    `sandbox` is what holds the programs of agents, `untried` until that was found out, `none` if nothing does.
    """

    version: str
    principal: str
    model: str
    sandbox: str = "untried"
    max_frame_bytes: int
    started_at: float


class Discover(Params, frozen=True, kw_only=True):
    """This document: all methods with their params and results, as OpenRPC."""


CREATE_SESSION = Method("session.create", CreateSession, SessionSummary)
SET_NEEDS = Method("session.setNeeds", SetNeeds, SessionSummary, effect=Effect.REPEATS)
LIST_SESSIONS = Method("session.list", ListSessions, SessionList, effect=Effect.READS)
GET_SESSION = Method("session.get", GetSession, SessionSummary, effect=Effect.READS)
GET_SNAPSHOT = Method("session.snapshot", GetSnapshot, Snapshot, "snapshot", Effect.READS)
IMPORT_SESSION = Method("session.import", ImportSession, ImportedSession)
DELETE_SESSION = Method("session.delete", DeleteSession, SessionSummary)
LIST_TEMPLATES = Method("template.list", ListTemplates, TemplateList, "list_templates", Effect.READS)
GET_TEMPLATE = Method("template.get", GetTemplate, TemplateDetails, effect=Effect.READS)
FIND_IDS = Method("session.findIds", FindIds, IdList, "find_ids", Effect.READS)
FORK_POINTS = Method("session.forkPoints", FindForkPoints, ForkPointList, "fork_points", Effect.READS)
FORK_SESSION = Method("session.fork", ForkSession, ForkReport)
COMPARE_SESSIONS = Method("session.compare", CompareSessions, Comparison, effect=Effect.READS)
GET_USAGE = Method("usage.get", GetUsage, UsageReport, "usage", Effect.READS)
READ_LOG = Method("log.read", ReadLog, LogEntries, effect=Effect.READS)
GET_SERVER_INFO = Method("server.info", GetServerInfo, ServerInfo, effect=Effect.READS)
DISCOVER = Method("rpc.discover", Discover, dict[str, Any], effect=Effect.READS)
