"""The methods `async.*` and `agent.*`: agents, their lifecycle, their states, events."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.tasks import Deliver, Priority, TaskRecord
from ai_whisperer.protocol.attachments import FilePart
from ai_whisperer.protocol.method import Effect, InSession, Method, OfAgent, Params
from ai_whisperer.protocol.wire import guide_type


class AgentStates(msgspec.Struct, frozen=True, kw_only=True):
    """All agents of a session by id, as they are after the notification `last_seq`. Keys as in the user guide."""

    agents: dict[str, AgentStatus]
    last_seq: int


class AgentDetails(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it is, and its definition."""

    agent_id: str
    status: AgentStatus
    definition: AgentDefinition
    own_tools: tuple[str, ...]
    created_at: float
    started_at: float | None


class CreateAgent(OfAgent, frozen=True, kw_only=True):
    config: dict[str, Any] | None = None
    template: str | None = None
    auto_start: bool = True


class StartAgent(OfAgent, frozen=True, kw_only=True):
    """Let an agent take work; one that is not there is created as `async.createAgent` does.

    With a config or a template it must be stopped or new: they replace its definition. `config` overrides the fields of
    `template`.
    """

    config: dict[str, Any] | None = None
    template: str | None = None


class PauseAgent(OfAgent, frozen=True, kw_only=True):
    reason: str = ""


class InterruptAgent(OfAgent, frozen=True, kw_only=True):
    """Pause at once: the model request in flight is cancelled, and repeated later."""

    reason: str = ""


class StopAgent(OfAgent, frozen=True, kw_only=True):
    """Cancel what runs and free everything. Mail and queue are kept."""

    reason: str = ""


class SleepAgent(OfAgent, frozen=True, kw_only=True):
    """Let the agent sleep for a time, until a time, or until an event, whichever comes first.

    An agent that is not there is created if a template is called like it.
    `until` is in seconds since the epoch, or ISO 8601 text with its zone.
    """

    duration_seconds: float | None = None
    until: float | str | None = None
    wake_events: tuple[str, ...] = ()
    reason: str = ""


class WakeAgent(OfAgent, frozen=True, kw_only=True):
    reason: str = "woken by the user"


class TaskBudget(Params, frozen=True, kw_only=True):
    """What a task may use together with everything that it causes."""

    max_tokens: int | None = None
    max_cost_usd: float | None = None


class SendTask(OfAgent, frozen=True, kw_only=True):
    """Give the agent a task. When this is answered the task is on disk. Tasks of one thread share their history.

    An agent that is not there is created if a template is called like it.
    `timeoutSeconds` and `budget` hold for the task and for everything that it causes. A caller that gives a `taskId`
    may call again with the same content: the task is given once. `outputSchema` is the JSON Schema that the answer has
    to fit: the model is told it, and asked once more if its answer does not; the value is in `result.output` then. With
    `deliver` `next_step` the prompt is a message to the task at work in the thread, or without a `threadId` to the one
    task at work, before its next step.
    """

    prompt: str
    priority: Priority = Priority.NORMAL
    thread_id: str | None = None
    task_id: str | None = None
    timeout_seconds: float | None = None
    budget: TaskBudget | None = None
    output_schema: dict[str, Any] | None = None
    parts: tuple[FilePart, ...] = ()
    deliver: Deliver = Deliver.IN_TURN


class GetAgentStates(InSession, frozen=True, kw_only=True):
    """What all agents of the session are doing. Times are in seconds since the epoch."""


class GetAgent(OfAgent, frozen=True, kw_only=True):
    """What one agent is doing, and its definition as a template would have it."""


class BroadcastEvent(InSession, frozen=True, kw_only=True):
    """Broadcast an event: it wakes agents that sleep until it and becomes a task for those that subscribe.

    Under the same `eventId` it happens once, however often it is called.
    """

    event: str
    data: Any = None
    event_id: str | None = None


class ListEvents(InSession, frozen=True, kw_only=True):
    limit: int = 100


class EventList(msgspec.Struct, frozen=True):
    """Events, the newest first."""

    events: list[EventRecord]


CREATE_AGENT = Method("async.createAgent", CreateAgent, AgentStatus, "create_agent")
START_AGENT = Method("async.startAgent", StartAgent, AgentStatus, "start_agent")
PAUSE_AGENT = Method("async.pauseAgent", PauseAgent, AgentStatus, "pause_agent")
INTERRUPT_AGENT = Method("async.interruptAgent", InterruptAgent, AgentStatus, "interrupt_agent")
RESUME_AGENT = Method("async.resumeAgent", OfAgent, AgentStatus, "resume_agent")
STOP_AGENT = Method("async.stopAgent", StopAgent, AgentStatus, "stop_agent")
SLEEP_AGENT = Method("async.sleepAgent", SleepAgent, AgentStatus, "sleep_agent")
WAKE_AGENT = Method("async.wakeAgent", WakeAgent, AgentStatus, "wake_agent")
SEND_TASK = Method("async.sendTask", SendTask, TaskRecord, "send_task", once="task_id")
GET_AGENT_STATES = Method(
    "async.getAgentStates", GetAgentStates, AgentStates, effect=Effect.READS, wire=guide_type(AgentStates)
)
BROADCAST_EVENT = Method("async.broadcastEvent", BroadcastEvent, EventRecord, "broadcast_event", once="event_id")
GET_AGENT = Method("agent.get", GetAgent, AgentDetails, effect=Effect.READS)
LIST_EVENTS = Method("async.listEvents", ListEvents, EventList, "list_events", Effect.READS)

IN_NEW_SESSIONS: frozenset[Method[Any, Any]] = frozenset(
    (CREATE_AGENT, START_AGENT, SLEEP_AGENT, SEND_TASK, BROADCAST_EVENT)
)
"""The methods that begin something: a session that is not there is made for them, never for one that looks or ends."""
