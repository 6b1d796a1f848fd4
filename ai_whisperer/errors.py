"""The one error tree.

Every error that AI Whisperer raises on purpose is a `WhispererError`. Its message says what is wrong and what to
do; `code` is stable and meant for programs; the docstring of the class is the message when none is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class WhispererError(Exception):
    """Something went wrong in AI Whisperer."""

    code = "error"

    data: Mapping[str, Any] = MappingProxyType({})
    """What a server said beside the message: `requestId` leads to its log, `retryAfterSeconds` is how long to wait."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)) or "")

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidInputError(WhispererError):
    """The input is not valid. Correct it and call again; nothing was changed."""

    code = "invalid_input"


class TooLargeError(InvalidInputError):
    """The input is larger than the limit. Shorten it and call again; nothing was changed."""

    code = "too_large"


class DefinitionError(InvalidInputError):
    """The agent definition is not valid. Correct the named field; nothing was changed."""

    code = "invalid_definition"


class TemplateError(DefinitionError):
    """The template file is malformed. Correct the named line; nothing was changed."""

    code = "invalid_template"


class ScriptError(InvalidInputError):
    """The conversation script cannot be played. Correct the named line; nothing was done."""

    code = "invalid_script"


class StormError(InvalidInputError):
    """The storm cannot be run. Correct what is named; nothing was done."""

    code = "invalid_storm"


class RecordingError(InvalidInputError):
    """The session cannot be recorded, or the recording cannot be read. Record it again."""

    code = "invalid_recording"


class RecordingDiffersError(WhispererError, AssertionError):
    """The session went another way than it was recorded."""

    code = "recording_differs"


class AnswerError(InvalidInputError):
    """The answer does not fit the form of the question. Correct the named fields; the question stays open."""

    code = "answer_misfit"


class ScheduleError(InvalidInputError):
    """The schedule is not valid. Correct the named field; nothing was changed."""

    code = "invalid_schedule"


class SettingsError(InvalidInputError):
    """A setting is not valid. Correct it where it was written, and start again."""

    code = "invalid_settings"


class McpConfigError(InvalidInputError):
    """The description of an MCP server is not valid. Correct the named field; nothing was changed."""

    code = "invalid_mcp_server"

    def __init__(self, message: str | None = None, *, server: str = "", field: str = "") -> None:
        """`server` and `field` lead whoever has the file to the line."""
        super().__init__(message)
        self.server = server
        self.field = field


class NotFoundError(WhispererError):
    """There is no such thing in this session."""

    code = "not_found"


class UnknownSessionError(NotFoundError):
    """There is no session with that id."""

    code = "unknown_session"


class UnknownAgentError(NotFoundError):
    """There is no agent with that name in this session."""

    code = "unknown_agent"


class UnknownRecipientError(UnknownAgentError):
    """The mail has no such recipient; nothing was sent."""

    code = "unknown_recipient"


class UnknownTaskError(NotFoundError):
    """There is no task with that id in this session."""

    code = "unknown_task"


class UnknownThreadError(NotFoundError):
    """The agent has no thread with that id."""

    code = "unknown_thread"


class UnknownMailError(NotFoundError):
    """There is no mail with that id in this mailbox."""

    code = "unknown_mail"


class UnknownTemplateError(NotFoundError):
    """There is no template with that name."""

    code = "unknown_template"


class UnknownScheduleError(NotFoundError):
    """There is no schedule with that id in this session."""

    code = "unknown_schedule"


class UnknownApprovalError(NotFoundError):
    """Nobody was asked for an approval of that id in this session."""

    code = "unknown_approval"


class UnknownQuestionError(NotFoundError):
    """No agent has asked a person a question of that id in this session."""

    code = "unknown_question"


class UnknownRoomError(NotFoundError):
    """There is no room with that id in this session."""

    code = "unknown_room"


class UnknownMcpServerError(NotFoundError):
    """The session has no MCP server with that name."""

    code = "unknown_mcp_server"


class UnknownNodeError(NotFoundError):
    """The cluster has no node with that name."""

    code = "unknown_node"


class UnknownFileError(NotFoundError):
    """There is no such file."""

    code = "unknown_file"


class UnknownMemberError(NotFoundError):
    """The room has no such member; nothing was changed."""

    code = "unknown_member"


class ConflictError(WhispererError):
    """The call does not fit what is already there; nothing was changed."""

    code = "conflict"


class DuplicateIdError(ConflictError):
    """That id or name is already taken. Choose another; nothing was changed."""

    code = "duplicate_id"


class StateError(ConflictError):
    """The call does not fit the present state; nothing was changed."""

    code = "wrong_state"


class NoClusterError(ConflictError):
    """There is one node: the sessions are in a data folder. Keep them in PostgreSQL (--store) to have more."""

    code = "no_cluster"


class LogPrunedError(ConflictError):
    """The log no longer has what was asked for: it was pruned. Take a snapshot, and follow the log after it."""

    code = "log_pruned"


class QueueFullError(ConflictError):
    """The agent's queue is full. Try again later; nothing was accepted."""

    code = "queue_full"


class LimitError(ConflictError):
    """A limit of the session is reached; nothing was changed. Raise it, or free what it counts."""

    code = "limit"


class TooManyRequestsError(WhispererError):
    """There are more requests than the server takes. Wait a moment and try again; nothing was changed."""

    code = "too_many_requests"


class PortError(WhispererError):
    """The port cannot be used. Choose another."""

    code = "port"


class ServerFailedError(WhispererError):
    """The server takes no more requests. Start it again; everything accepted is on disk."""

    code = "server_failed"


class UnauthorizedError(WhispererError):
    """The token is missing or wrong. Use the address with the token that `whisperer serve` printed."""

    code = "unauthorized"


class ForbiddenError(WhispererError):
    """The caller may not do that; nothing was changed."""

    code = "forbidden"


class ConnectionLostError(WhispererError):
    """The server cannot be reached, or the connection to it broke. Start it with `whisperer serve`."""

    code = "connection_lost"

    was_sent: bool
    """Whether the request left this machine, and so may have taken effect. One that did not had none."""

    def __init__(self, message: str | None = None, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class WaitCycleError(ConflictError):
    """The wait would close a cycle of agents that wait for each other; nothing was sent."""

    code = "wait_cycle"


class WaitDepthError(ConflictError):
    """Too many agents wait for each other in a row already; nothing was sent."""

    code = "wait_depth"


class TreeSizeError(ConflictError):
    """The work that the task belongs to has caused as many tasks as it may; nothing was sent."""

    code = "tree_size"


class LockNotHeldError(ConflictError):
    """The lock is not held by the caller, or not with that token; nothing was changed."""

    code = "lock_not_held"


class LockHeldError(ConflictError):
    """Somebody else holds the lock. Wait for it, or try again later; nothing was changed."""

    code = "lock_held"


class ClosedError(ConflictError):
    """The session manager is not open. Enter it with `async with` first."""

    code = "closed"


class StoreError(WhispererError):
    """The database cannot be used."""

    code = "store"


class RayError(WhispererError):
    """Ray, which is to run the nodes, cannot be used."""

    code = "ray"


class StoreVersionError(StoreError):
    """The database was written by a newer version. Upgrade AI Whisperer; the file was left untouched."""

    code = "store_version"


class StoreCorruptError(StoreError):
    """The file is not an intact AI Whisperer database. Restore a backup; the file was left untouched."""

    code = "store_corrupt"


class StoreLostError(StoreError):
    """Something that was acknowledged is no longer in the data folder. Restore a backup, or accept the loss."""

    code = "store_lost"


class StoreMovedError(StoreError):
    """The sessions of the data folder were copied to PostgreSQL. Give its address with --store."""

    code = "store_moved"


class ArchiveError(StoreError):
    """The file of a backup or of an exported session cannot be used. Nothing was changed."""

    code = "archive"


class StoreReadOnlyError(StoreError):
    """The data folder cannot be written. Choose another or change its permissions."""

    code = "store_read_only"


class StoreFullError(StoreError):
    """The disk is full. Free some space and start again; everything accepted before is safe."""

    code = "store_full"


class StoreInUseError(StoreError):
    """Another live process has this database open. Stop it or choose another data folder."""

    code = "store_in_use"


class SessionElsewhereError(StoreInUseError):
    """Another node has the session. Ask that one."""

    code = "session_elsewhere"

    def __init__(self, message: str | None = None, *, node: str = "", address: str = "") -> None:
        """`node` is the name of the one that has it, `address` where it is reached, if it can be."""
        super().__init__(message)
        self.data = {"node": node, "address": address}


class StoreFailedError(StoreError):
    """A commit failed, so the runtime stopped. Fix the cause and start again; nothing accepted is lost."""

    code = "store_failed"


class NodeFencedError(StoreFailedError):
    """The other nodes took this one for dead, so it stopped. Nothing accepted is lost: ask another node."""

    code = "node_fenced"


class StoreRefusedError(StoreError):
    """The store refused a change. Nothing of it was written, and nothing else was touched."""

    code = "store_refused"


class ModelError(WhispererError):
    """The model request failed."""

    code = "model"
    retryable = False

    def __init__(self, message: str | None = None, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ModelNameError(ModelError):
    """The model's name is not known. Use `provider:name`, for instance `openai-chat:NAME`, or `scripted`."""

    code = "model_name"


class ModelRefusedError(ModelError):
    """The provider refused the request. Check the key, the model's name and the request."""

    code = "model_refused"


class ModelTooLongError(ModelRefusedError):
    """The conversation does not fit into the model's context. Shorten it or split the task."""

    code = "model_too_long"


class ModelRateLimitError(ModelError):
    """The provider asks for fewer requests."""

    code = "model_rate_limit"
    retryable = True


class ModelServerError(ModelError):
    """The provider had an error of its own or could not be reached."""

    code = "model_server"
    retryable = True


class ModelUnavailableError(ModelServerError):
    """The provider is down or cannot be reached. Such an outage is waited out for up to `max_outage_seconds`."""

    code = "model_unavailable"

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after_seconds: float | None = None,
        longest_outage_seconds: float | None = None,
    ) -> None:
        """`longest_outage_seconds`: no longer wait is worth it, whatever the limit says."""
        super().__init__(message, retry_after_seconds=retry_after_seconds)
        self.longest_outage_seconds = longest_outage_seconds


class ModelTimeoutError(ModelError):
    """The provider did not answer in time."""

    code = "model_timeout"
    retryable = True


class ModelCutOffError(ModelError):
    """The stream ended before the answer was complete."""

    code = "model_cut_off"
    retryable = True


class ModelEmptyError(ModelError):
    """The model returned neither text nor a tool call."""

    code = "model_empty"
    retryable = True


class AnswerSizeError(ModelError):
    """The answer is longer than `max_answer_bytes`. Ask for less at a time, or raise the limit."""

    code = "answer_size"


class AnswerTimeError(ModelError):
    """The answer took longer than `max_answer_seconds`. Ask for less at a time, or raise the limit."""

    code = "answer_time"


class ToolError(WhispererError):
    """The tool failed. A tool raises this with a text that helps the model to do better."""

    code = "tool"


class ToolFileError(WhispererError):
    """A file with tools cannot be loaded."""

    code = "tool_file"


class UnknownToolError(ToolError):
    """The agent has no tool with that name."""

    code = "unknown_tool"


class ToolArgumentsError(ToolError):
    """The arguments do not fit the tool's parameters."""

    code = "tool_arguments"


class McpError(ToolError):
    """The MCP server cannot be used now."""

    code = "mcp_failed"


class SandboxError(ToolError):
    """There is no sandbox that could hold the tool. Run `whisperer doctor` to see what is missing."""

    code = "sandbox"


class NoSandboxError(SandboxError):
    """No sandbox on this machine can hold that at all. Run `whisperer doctor` to see what is missing."""

    code = "no_sandbox"


class StepLimitError(WhispererError):
    """The task used up its steps without a final answer. Raise `max_steps_per_task` or split the task."""

    code = "step_limit"


class ContinuationLimitError(WhispererError):
    """The task asked to be continued too often. Raise `max_continuations` or split the task."""

    code = "continuation_limit"


class CrashLimitError(WhispererError):
    """The process died each time this task ran, so it became a dead letter. Fix the cause, then retry it."""

    code = "crash_limit"


class DeadlineError(WhispererError):
    """The time that the task was given is over. Give it more time or split it."""

    code = "deadline"


class TaskTimeError(DeadlineError):
    """The task ran longer than `max_task_seconds`. Raise the limit or split the task."""

    code = "task_time"


class ContextLimitError(WhispererError):
    """A conversation is too large for its model, or for the memory that the agent has. Begin a new thread."""

    code = "context_limit"


class LoopError(WhispererError):
    """The task made the same call with the same result again and again. Tell it what to do instead."""

    code = "loop"


class BudgetError(WhispererError):
    """The budget of the task and of all that it caused is spent or too small. Give a larger one to a new task."""

    code = "budget"


class OutputError(WhispererError):
    """The answer does not fit the output schema, also after the model was told what is wrong with it."""

    code = "output"


class TaskEndedError(WhispererError):
    """The task ended without a result."""

    code = "task_ended"
