"""AI Whisperer: a durable runtime for many AI agents that work at the same time and coordinate by mail.

The names below are loaded when they are first used, so that `import ai_whisperer` costs next to nothing. The functions
are those of `ai_whisperer.scripting`: agents from a script, without asyncio.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING

from ai_whisperer.version import __version__ as __version__

if TYPE_CHECKING:
    from ai_whisperer.client.client import Client as Client
    from ai_whisperer.domain.agents import AgentState as AgentState
    from ai_whisperer.domain.agents import AgentStatus as AgentStatus
    from ai_whisperer.domain.approvals import ApprovalRecord as ApprovalRecord
    from ai_whisperer.domain.approvals import ApprovalState as ApprovalState
    from ai_whisperer.domain.attachments import Attachment as Attachment
    from ai_whisperer.domain.attachments import AttachmentContent as AttachmentContent
    from ai_whisperer.domain.attachments import AttachmentRecord as AttachmentRecord
    from ai_whisperer.domain.attachments import InputFile as InputFile
    from ai_whisperer.domain.conversation import ChannelResponse as ChannelResponse
    from ai_whisperer.domain.definition import AgentDefinition as AgentDefinition
    from ai_whisperer.domain.definition import RetryPolicy as RetryPolicy
    from ai_whisperer.domain.definition import Supervision as Supervision
    from ai_whisperer.domain.events import EventRecord as EventRecord
    from ai_whisperer.domain.limits import Limits as Limits
    from ai_whisperer.domain.limits import SessionLimits as SessionLimits
    from ai_whisperer.domain.locks import LockCheck as LockCheck
    from ai_whisperer.domain.locks import LockRecord as LockRecord
    from ai_whisperer.domain.locks import LockSummary as LockSummary
    from ai_whisperer.domain.mail import MailDraft as MailDraft
    from ai_whisperer.domain.mail import MailRecord as MailRecord
    from ai_whisperer.domain.memory import MemoryFile as MemoryFile
    from ai_whisperer.domain.memory import MemoryText as MemoryText
    from ai_whisperer.domain.notification import Notification as Notification
    from ai_whisperer.domain.questions import QuestionRecord as QuestionRecord
    from ai_whisperer.domain.questions import QuestionState as QuestionState
    from ai_whisperer.domain.rooms import MessageRecord as MessageRecord
    from ai_whisperer.domain.rooms import RoomRecord as RoomRecord
    from ai_whisperer.domain.schedules import MissedRuns as MissedRuns
    from ai_whisperer.domain.schedules import ScheduleDefinition as ScheduleDefinition
    from ai_whisperer.domain.schedules import ScheduleRecord as ScheduleRecord
    from ai_whisperer.domain.task_events import AnswerDelta as AnswerDelta
    from ai_whisperer.domain.task_events import ModelStepEnded as ModelStepEnded
    from ai_whisperer.domain.task_events import ModelStepRetried as ModelStepRetried
    from ai_whisperer.domain.task_events import ModelStepStarted as ModelStepStarted
    from ai_whisperer.domain.task_events import ProgressReported as ProgressReported
    from ai_whisperer.domain.task_events import StepEvent as StepEvent
    from ai_whisperer.domain.task_events import TaskEnded as TaskEnded
    from ai_whisperer.domain.task_events import TaskEvent as TaskEvent
    from ai_whisperer.domain.task_events import TaskStateChanged as TaskStateChanged
    from ai_whisperer.domain.task_events import ToolCallEnded as ToolCallEnded
    from ai_whisperer.domain.task_events import ToolCallStarted as ToolCallStarted
    from ai_whisperer.domain.task_events import ToolOutput as ToolOutput
    from ai_whisperer.domain.tasks import Budget as Budget
    from ai_whisperer.domain.tasks import Priority as Priority
    from ai_whisperer.domain.tasks import TaskRecord as TaskRecord
    from ai_whisperer.domain.tasks import TaskState as TaskState
    from ai_whisperer.errors import WhispererError as WhispererError
    from ai_whisperer.runtime.api.handle import AgentSession as AgentSession
    from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager as AsyncAgentSessionManager
    from ai_whisperer.scripting import agent_states as agent_states
    from ai_whisperer.scripting import agent_threads as agent_threads
    from ai_whisperer.scripting import broadcast_event as broadcast_event
    from ai_whisperer.scripting import cancel_task as cancel_task
    from ai_whisperer.scripting import connect as connect
    from ai_whisperer.scripting import create_agent as create_agent
    from ai_whisperer.scripting import create_schedule as create_schedule
    from ai_whisperer.scripting import delete_schedule as delete_schedule
    from ai_whisperer.scripting import disconnect as disconnect
    from ai_whisperer.scripting import events as events
    from ai_whisperer.scripting import get_agent_status as get_agent_status
    from ai_whisperer.scripting import get_task as get_task
    from ai_whisperer.scripting import interrupt_agent as interrupt_agent
    from ai_whisperer.scripting import list_agents as list_agents
    from ai_whisperer.scripting import list_events as list_events
    from ai_whisperer.scripting import list_schedules as list_schedules
    from ai_whisperer.scripting import list_tasks as list_tasks
    from ai_whisperer.scripting import mailbox as mailbox
    from ai_whisperer.scripting import pause_agent as pause_agent
    from ai_whisperer.scripting import pause_schedule as pause_schedule
    from ai_whisperer.scripting import reply_mail as reply_mail
    from ai_whisperer.scripting import resume_agent as resume_agent
    from ai_whisperer.scripting import resume_schedule as resume_schedule
    from ai_whisperer.scripting import run_task as run_task
    from ai_whisperer.scripting import send_mail as send_mail
    from ai_whisperer.scripting import send_mails as send_mails
    from ai_whisperer.scripting import send_task as send_task
    from ai_whisperer.scripting import sent_mail as sent_mail
    from ai_whisperer.scripting import sleep_agent as sleep_agent
    from ai_whisperer.scripting import start_agent as start_agent
    from ai_whisperer.scripting import stop_agent as stop_agent
    from ai_whisperer.scripting import wait_task as wait_task
    from ai_whisperer.scripting import wait_until_done as wait_until_done
    from ai_whisperer.scripting import wake_agent as wake_agent
    from ai_whisperer.store.sqlite.backup import backup as backup
    from ai_whisperer.store.sqlite.backup import restore as restore
    from ai_whisperer.store.sqlite.custody import accept_loss as accept_loss
    from ai_whisperer.store.sqlite.custody import use_folder as use_folder
    from ai_whisperer.store.sqlite.transfer import import_into_folder as import_into_folder
    from ai_whisperer.store.transfer import export_session as export_session
    from ai_whisperer.task_stream import TaskStream as TaskStream
    from ai_whisperer.templates.library import TemplateLibrary as TemplateLibrary
    from ai_whisperer.templates.library import load_template as load_template
    from ai_whisperer.templates.parsing import Template as Template
    from ai_whisperer.tools.function import ToolContext as ToolContext
    from ai_whisperer.tools.function import tool as tool

_HOMES = {
    "client.client": "Client",
    "domain.agents": "AgentState AgentStatus",
    "domain.approvals": "ApprovalRecord ApprovalState",
    "domain.attachments": "Attachment AttachmentContent AttachmentRecord InputFile",
    "domain.conversation": "ChannelResponse",
    "domain.definition": "AgentDefinition RetryPolicy Supervision",
    "domain.events": "EventRecord",
    "domain.limits": "Limits SessionLimits",
    "domain.locks": "LockCheck LockRecord LockSummary",
    "domain.mail": "MailDraft MailRecord",
    "domain.memory": "MemoryFile MemoryText",
    "domain.notification": "Notification",
    "domain.questions": "QuestionRecord QuestionState",
    "domain.rooms": "MessageRecord RoomRecord",
    "domain.schedules": "MissedRuns ScheduleDefinition ScheduleRecord",
    "domain.task_events": (
        "AnswerDelta ModelStepEnded ModelStepRetried ModelStepStarted ProgressReported StepEvent TaskEnded TaskEvent "
        "TaskStateChanged ToolCallEnded ToolCallStarted ToolOutput"
    ),
    "domain.tasks": "Budget Priority TaskRecord TaskState",
    "errors": "WhispererError",
    "runtime.api.handle": "AgentSession",
    "runtime.api.manager": "AsyncAgentSessionManager",
    "scripting": (
        "agent_states agent_threads broadcast_event cancel_task connect create_agent create_schedule delete_schedule "
        "disconnect events get_agent_status get_task interrupt_agent list_agents list_events list_schedules list_tasks "
        "mailbox pause_agent pause_schedule reply_mail resume_agent resume_schedule run_task send_mail "
        "send_mails send_task sent_mail sleep_agent start_agent stop_agent wait_task wait_until_done wake_agent"
    ),
    "store.sqlite.backup": "backup restore",
    "store.sqlite.custody": "accept_loss use_folder",
    "store.sqlite.transfer": "import_into_folder",
    "store.transfer": "export_session",
    "task_stream": "TaskStream",
    "templates.library": "TemplateLibrary load_template",
    "templates.parsing": "Template",
    "tools.function": "ToolContext tool",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - the names above, once


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ai_whisperer' has no attribute '{name}'")
    collects = gc.isenabled()
    gc.disable()  # what modules are made of is no garbage, and to look for some among it takes a twentieth of the time
    try:
        home = import_module(f"ai_whisperer.{_HOME_OF[name]}")
    finally:
        if collects:
            gc.enable()
    return getattr(home, name)
