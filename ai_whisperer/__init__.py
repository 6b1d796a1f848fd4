"""AI Whisperer: a durable runtime for many AI agents that work at the same time and coordinate by mail.

The names below are loaded when they are first used, so that `import ai_whisperer` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ai_whisperer.client.client import Client
    from ai_whisperer.conversation import ChannelResponse
    from ai_whisperer.coordination import (
        ApprovalRecord,
        ApprovalState,
        EventRecord,
        LockCheck,
        LockRecord,
        LockSummary,
        MessageRecord,
        RoomRecord,
        ScheduleRecord,
    )
    from ai_whisperer.definition import (
        AgentDefinition,
        Limits,
        MissedRuns,
        RetryPolicy,
        ScheduleDefinition,
        SessionLimits,
        Supervision,
    )
    from ai_whisperer.errors import WhispererError
    from ai_whisperer.records import AgentState, Budget, MailRecord, Notification, Priority, TaskRecord, TaskState
    from ai_whisperer.runtime.agent_session import AgentSession
    from ai_whisperer.runtime.manager import AsyncAgentSessionManager
    from ai_whisperer.status import AgentStatus
    from ai_whisperer.store.custody import accept_loss
    from ai_whisperer.task_events import (
        ModelStepEnded,
        ModelStepRetried,
        ModelStepStarted,
        ProgressReported,
        StepEvent,
        TaskEnded,
        TaskEvent,
        TaskStateChanged,
        TextDelta,
        ToolCallEnded,
        ToolCallStarted,
        ToolOutput,
    )
    from ai_whisperer.task_stream import TaskStream
    from ai_whisperer.templates.library import TemplateLibrary, load_template
    from ai_whisperer.templates.parsing import Template
    from ai_whisperer.tools.function import ToolContext, tool

__version__ = "0.1.0"

_HOMES = {
    "AgentDefinition": "definition",
    "AgentSession": "runtime.agent_session",
    "AgentState": "records",
    "AgentStatus": "status",
    "ApprovalRecord": "coordination",
    "ApprovalState": "coordination",
    "AsyncAgentSessionManager": "runtime.manager",
    "Budget": "records",
    "ChannelResponse": "conversation",
    "Client": "client.client",
    "EventRecord": "coordination",
    "Limits": "definition",
    "LockCheck": "coordination",
    "LockRecord": "coordination",
    "LockSummary": "coordination",
    "MailRecord": "records",
    "MessageRecord": "coordination",
    "MissedRuns": "definition",
    "ModelStepEnded": "task_events",
    "ModelStepRetried": "task_events",
    "ModelStepStarted": "task_events",
    "Notification": "records",
    "Priority": "records",
    "ProgressReported": "task_events",
    "RetryPolicy": "definition",
    "RoomRecord": "coordination",
    "ScheduleDefinition": "definition",
    "ScheduleRecord": "coordination",
    "SessionLimits": "definition",
    "StepEvent": "task_events",
    "Supervision": "definition",
    "TaskEnded": "task_events",
    "TaskEvent": "task_events",
    "TaskRecord": "records",
    "TaskState": "records",
    "TaskStateChanged": "task_events",
    "TaskStream": "task_stream",
    "Template": "templates.parsing",
    "TemplateLibrary": "templates.library",
    "TextDelta": "task_events",
    "ToolCallEnded": "task_events",
    "ToolCallStarted": "task_events",
    "ToolContext": "tools.function",
    "ToolOutput": "task_events",
    "WhispererError": "errors",
    "accept_loss": "store.custody",
    "load_template": "templates.library",
    "tool": "tools.function",
}

__all__ = [
    "AgentDefinition",
    "AgentSession",
    "AgentState",
    "AgentStatus",
    "ApprovalRecord",
    "ApprovalState",
    "AsyncAgentSessionManager",
    "Budget",
    "ChannelResponse",
    "Client",
    "EventRecord",
    "Limits",
    "LockCheck",
    "LockRecord",
    "LockSummary",
    "MailRecord",
    "MessageRecord",
    "MissedRuns",
    "ModelStepEnded",
    "ModelStepRetried",
    "ModelStepStarted",
    "Notification",
    "Priority",
    "ProgressReported",
    "RetryPolicy",
    "RoomRecord",
    "ScheduleDefinition",
    "ScheduleRecord",
    "SessionLimits",
    "StepEvent",
    "Supervision",
    "TaskEnded",
    "TaskEvent",
    "TaskRecord",
    "TaskState",
    "TaskStateChanged",
    "TaskStream",
    "Template",
    "TemplateLibrary",
    "TextDelta",
    "ToolCallEnded",
    "ToolCallStarted",
    "ToolContext",
    "ToolOutput",
    "WhispererError",
    "accept_loss",
    "load_template",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ai_whisperer' has no attribute '{name}'")
    return getattr(import_module(f"ai_whisperer.{_HOMES[name]}"), name)
