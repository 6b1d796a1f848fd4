"""The notifications that a session sends, and how one looks on the wire."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.notification import Notification
from ai_whisperer.protocol.jsonrpc import notification_frame

SESSION_CLOSED = "session.closed"

NOTIFICATIONS = {
    "agent.created": "An agent was created.",
    "agent.started": "An agent was started: it takes work.",
    "agent.paused": "An agent was paused.",
    "agent.resumed": "An agent was resumed.",
    "agent.stopped": "An agent was stopped.",
    "agent.state_changed": "An agent went `from` one state `to` another.",
    "agent.sleep_changed": "Until when and for what an agent sleeps was changed.",
    "agent.redefined": "An agent has a new definition.",
    "agent.tools_missing": "An agent waits for tools that were not provided.",
    "agent.failing": "Too many tasks of an agent failed: it is being stopped.",
    "async.task.queued": "A task was accepted.",
    "async.task.started": "A task began to run.",
    "async.task.progress": "An agent reported its progress on a task.",
    "async.task.completed": "A task was completed; `result` has the channels.",
    "async.task.continuation": "A task asked for more and continues in another.",
    "async.task.error": "A task failed.",
    "async.task.cancelled": "A task was cancelled.",
    "async.task.dismissed": "A person dismissed a dead letter.",
    "async.task.restarting": "The loop of a task crashed and begins again later.",
    "async.task.delta": "A piece of an answer as it is streamed; not numbered, not kept.",
    "step.output": "A piece of what a tool writes while it runs; not numbered, not kept.",
    "step.started": "A model request or a tool call began.",
    "step.retried": "A model request failed and is repeated.",
    "step.interrupted": "A model request was cut off; it is repeated when its agent continues, or the step ends.",
    "step.finished": "A model request or a tool call ended.",
    "mail.sent": "A mail was accepted.",
    "mail.state_changed": "A mail was delivered, read, replied to, archived or moved to the dead letters.",
    "event.broadcast": "An event was broadcast.",
    "event.not_taken": "A subscriber whose queue is full did not get an event.",
    "schedule.created": "A schedule was created.",
    "schedule.changed": "A schedule was paused or resumed.",
    "schedule.deleted": "A schedule was deleted.",
    "schedule.fired": "A schedule fired.",
    "schedule.missed": "Due times of a schedule do not fire.",
    "room.created": "A room was opened.",
    "room.member_added": "An agent joined a room.",
    "room.member_removed": "An agent left a room.",
    "room.message": "Something was said in a room.",
    "room.answering": "A member was asked and answers in a task.",
    "room.passed": "A member passed.",
    "room.unanswered": "A member did not answer.",
    "room.absent": "A member was not asked.",
    "room.hop_limit": "An answer asked nobody, because agents had reached the limit of asking each other.",
    "switch.began": "An agent asked another and waits for the answer.",
    "switch.ended": "An agent no longer waits for another's answer.",
    "lock.waiting": "Somebody waits for a lock.",
    "lock.wait_ended": "Somebody no longer waits for a lock.",
    "lock.acquired": "Somebody has a lock.",
    "lock.renewed": "Somebody has a lock for longer.",
    "lock.released": "A lock was released, or its holder ended.",
    "approval.requested": "A tool call waits for a person to allow it.",
    "approval.approved": "A person allowed a tool call.",
    "approval.refused": "A person refused a tool call: it does not run.",
    "approval.withdrawn": "The task of a tool call that waited for a person, or had just been allowed, ended before.",
    "lock.expired": "The lease of a lock ran out.",
    "lock.broken": "A person took a lock from whoever had it.",
    "limit.reached": "A limit was reached: `used` is what is used or wanted, `max` what there may be.",
    "limits.changed": "The limits of an agent, the session or the server were changed; null resets one.",
    "mcp.server_started": "An MCP server was started, or connected to.",
    "mcp.server_failed": "An MCP server could not be started, or died; it is started again when it is needed.",
    "mcp.server_stopped": "An MCP server was stopped with its session.",
    "mcp.tools_listed": "An MCP server listed which tools it has; `problems` says which were left out, and why.",
    "mcp.tools_missing": "An agent is granted tools that their MCP servers do not have.",
    "resource.waiting": "A tool call waits for its turn: others touch what it touches. Its agent continues by itself.",
    "resource.granted": "A tool call that waited for its turn has it, and begins.",
    "session.opened": "The session was opened again: tool calls no longer wait for their turn, nor people for locks.",
    "clock.changed": "The wall clock was set, or the session has taken its time over: durations are not affected, cron "
    "and sleeps until a time go by the new one.",
    SESSION_CLOSED: "The session was deleted or the server ends: nothing more comes. Not numbered, not kept.",
}
"""What each notification tells of. The params of all have `sessionId`, `seq`, `cause` and `at`."""


def frame_of(note: Notification) -> bytes:
    """The notification as clients get it: its params, and with them what every notification has."""
    head = {"sessionId": note.session_id, "seq": note.seq, "cause": note.cause, "at": note.at}
    return notification_frame(note.name, msgspec.json.encode({**note.params, **head}))
