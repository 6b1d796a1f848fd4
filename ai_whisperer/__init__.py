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
    "SessionLimits": "definition",
    "LockRecord": "coordination",
    "LockSummary": "coordination",
    "MailRecord": "records",
    "MessageRecord": "coordination",
    "MissedRuns": "definition",
    "Notification": "records",
    "Priority": "records",
    "RetryPolicy": "definition",
    "RoomRecord": "coordination",
    "ScheduleDefinition": "definition",
    "ScheduleRecord": "coordination",
    "Supervision": "definition",
    "TaskRecord": "records",
    "TaskState": "records",
    "Template": "templates.parsing",
    "TemplateLibrary": "templates.library",
    "ToolContext": "tools.function",
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
    "SessionLimits",
    "LockRecord",
    "LockSummary",
    "MailRecord",
    "MessageRecord",
    "MissedRuns",
    "Notification",
    "Priority",
    "RetryPolicy",
    "RoomRecord",
    "ScheduleDefinition",
    "ScheduleRecord",
    "Supervision",
    "TaskRecord",
    "TaskState",
    "Template",
    "TemplateLibrary",
    "ToolContext",
    "WhispererError",
    "accept_loss",
    "load_template",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ai_whisperer' has no attribute '{name}'")
    return getattr(import_module(f"ai_whisperer.{_HOMES[name]}"), name)
