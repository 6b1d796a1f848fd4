"""The methods on sessions as a whole: what is in them beside agents, their log, and the server itself."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.coordination import LockRecord, ScheduleRecord, SessionSummary
from ai_whisperer.definition import AgentDefinition, MissedRuns
from ai_whisperer.protocol.method import InSession, Method, OfAgent, Params
from ai_whisperer.records import Notification, Usage
from ai_whisperer.templates.library import TemplateEntry


class CreateSession(Params, frozen=True, kw_only=True):
    """Make a session: a workspace with its own agents. Its id is chosen unless given; it belongs to the caller."""

    session_id: str | None = None
    title: str = ""


class ListSessions(Params, frozen=True, kw_only=True):
    """The sessions of the caller, the newest first."""

    limit: int = 10_000


class GetSession(InSession, frozen=True, kw_only=True):
    """One session of the caller."""


class DeleteSession(InSession, frozen=True, kw_only=True):
    """Stop all agents of the session and delete everything in it, for good."""


class SessionList(msgspec.Struct, frozen=True):
    """Sessions, the newest first."""

    sessions: list[SessionSummary]


class ScheduleList(msgspec.Struct, frozen=True):
    """Schedules, the oldest first."""

    schedules: list[ScheduleRecord]


class CreateSchedule(InSession, frozen=True, kw_only=True):
    """Give the agent a prompt, or broadcast an event, at every time that `cron` or `intervalSeconds` names.

    `cron` has five fields and is read in the time zone `zone`. `missed` says what becomes of due times that passed
    while nothing could fire: `skip`, `once` or `all`.
    """

    agent_id: str | None = None
    cron: str | None = None
    interval_seconds: float | None = None
    zone: str = "UTC"
    prompt: str | None = None
    event: str | None = None
    data: Any = None
    missed: MissedRuns = MissedRuns.ONCE
    schedule_id: str | None = None


class ListSchedules(InSession, frozen=True, kw_only=True):
    """The schedules of an agent, or of the whole session, the oldest first."""

    agent_id: str | None = None


class OfSchedule(InSession, frozen=True, kw_only=True):
    """Params of a method that acts on a schedule."""

    schedule_id: str


class GetSchedule(OfSchedule, frozen=True, kw_only=True):
    """The schedule as it is now."""


class PauseSchedule(OfSchedule, frozen=True, kw_only=True):
    """Let the schedule fire no more until it is resumed."""


class ResumeSchedule(OfSchedule, frozen=True, kw_only=True):
    """Let a paused schedule go on from now: what passed while it was paused does not fire."""


class DeleteSchedule(OfSchedule, frozen=True, kw_only=True):
    """Remove the schedule. Tasks that it has fired already stay."""


class ListTemplates(Params, frozen=True, kw_only=True):
    """The templates that agents can be made of, and the files that cannot be used, each with its error."""


class GetTemplate(Params, frozen=True, kw_only=True):
    """One template with its definition."""

    name: str


class TemplateList(msgspec.Struct, frozen=True):
    """Templates by name, and the files that cannot be used."""

    templates: list[TemplateEntry]


class TemplateDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A template, where it was read from, and the definition that it gives."""

    name: str
    source: str
    definition: AgentDefinition


class ListLocks(InSession, frozen=True, kw_only=True):
    """The locks that are held, and by whom."""


class LockList(msgspec.Struct, frozen=True):
    """The locks that are held."""

    locks: list[LockRecord]


class GetUsage(InSession, frozen=True, kw_only=True):
    """What the agents of the session have used, each and together."""


class AgentTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks an agent has begun, and what they used."""

    tasks: int
    usage: Usage


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was used, by agent and in total. `costUsd` is null where the price of a model is not known."""

    agents: dict[str, AgentTotals]
    total: AgentTotals


class ReadLog(OfAgent, frozen=True, kw_only=True):
    """The debug log of an agent: its last entries, or those after the `next` of an earlier answer."""

    after: int | None = None
    limit: int = 200


class LogEntries(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a log; `next` is where the ones after them begin."""

    entries: list[dict[str, Any]]
    next: int


class Subscribe(InSession, frozen=True, kw_only=True):
    """Send the session's notifications to this connection, from the one after `after` on.

    0 is from the start; without it, from now on. With `deltas` the pieces of answers come along as they are streamed:
    these are not numbered (`seq` 0) and not kept. A connection has one subscription for a session; another replaces it.
    """

    after: int | None = None
    deltas: bool = False


class Unsubscribe(InSession, frozen=True, kw_only=True):
    """Send no more notifications of the session. The answer has the number of the last that was sent."""


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    """`after` is where the subscription begins or ended, `last_seq` the newest notification that there is.

    A session that was deleted and made again under the same id has another `created_at`, and another log.
    """

    session_id: str
    after: int
    last_seq: int
    created_at: float = 0.0


class ListNotifications(InSession, frozen=True, kw_only=True):
    """A page of the numbered log."""

    after: int = 0
    limit: int = 1000


class NotificationList(msgspec.Struct, frozen=True, kw_only=True):
    """Notifications, in order; `last_seq` is the number of the newest that there is."""

    notifications: list[Notification]
    last_seq: int


class GetServerInfo(Params, frozen=True, kw_only=True):
    """Version, model and limits of the server, and who the caller is."""


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The server, and who the caller is to it."""

    version: str
    principal: str
    model: str
    max_frame_bytes: int
    started_at: float


class Discover(Params, frozen=True, kw_only=True):
    """This document: all methods with their params and results, as OpenRPC."""


CREATE_SESSION = Method("session.create", CreateSession, SessionSummary)
LIST_SESSIONS = Method("session.list", ListSessions, SessionList)
GET_SESSION = Method("session.get", GetSession, SessionSummary)
DELETE_SESSION = Method("session.delete", DeleteSession, SessionSummary)
CREATE_SCHEDULE = Method("schedule.create", CreateSchedule, ScheduleRecord)
LIST_SCHEDULES = Method("schedule.list", ListSchedules, ScheduleList)
GET_SCHEDULE = Method("schedule.get", GetSchedule, ScheduleRecord)
PAUSE_SCHEDULE = Method("schedule.pause", PauseSchedule, ScheduleRecord)
RESUME_SCHEDULE = Method("schedule.resume", ResumeSchedule, ScheduleRecord)
DELETE_SCHEDULE = Method("schedule.delete", DeleteSchedule, ScheduleRecord)
LIST_TEMPLATES = Method("template.list", ListTemplates, TemplateList)
GET_TEMPLATE = Method("template.get", GetTemplate, TemplateDetails)
LIST_LOCKS = Method("lock.list", ListLocks, LockList)
GET_USAGE = Method("usage.get", GetUsage, UsageReport)
READ_LOG = Method("log.read", ReadLog, LogEntries)
SUBSCRIBE = Method("events.subscribe", Subscribe, Subscribed)
UNSUBSCRIBE = Method("events.unsubscribe", Unsubscribe, Subscribed)
LIST_NOTIFICATIONS = Method("events.list", ListNotifications, NotificationList)
GET_SERVER_INFO = Method("server.info", GetServerInfo, ServerInfo)
DISCOVER = Method("rpc.discover", Discover, dict[str, Any])

METHODS: tuple[Method[Any, Any], ...] = (
    CREATE_SESSION,
    LIST_SESSIONS,
    GET_SESSION,
    DELETE_SESSION,
    CREATE_SCHEDULE,
    LIST_SCHEDULES,
    GET_SCHEDULE,
    PAUSE_SCHEDULE,
    RESUME_SCHEDULE,
    DELETE_SCHEDULE,
    LIST_TEMPLATES,
    GET_TEMPLATE,
    LIST_LOCKS,
    GET_USAGE,
    READ_LOG,
    SUBSCRIBE,
    UNSUBSCRIBE,
    LIST_NOTIFICATIONS,
    GET_SERVER_INFO,
    DISCOVER,
)
