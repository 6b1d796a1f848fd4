"""Limits: those that are stated, those that hold, and how far they are used."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from ai_whisperer.domain.record import Record


class Limits(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent may use, as far as it is stated; `EffectiveLimits` says what holds where nothing is."""

    max_concurrent_tasks: int | None = None
    max_queue_length: int | None = None
    max_steps_per_task: int | None = None
    max_same_calls: int | None = None
    max_continuations: int | None = None
    max_task_seconds: float | None = None
    max_prompt_bytes: int | None = None
    max_mail_bytes: int | None = None
    max_result_bytes: int | None = None
    max_switch_depth: int | None = None
    switch_timeout_seconds: float | None = None
    max_tasks_per_tree: int | None = None
    max_tokens_per_tree: int | None = None
    max_cost_usd_per_tree: float | None = None
    max_tokens_per_agent: int | None = None
    max_cost_usd_per_agent: float | None = None
    max_context_bytes: int | None = None
    max_answer_bytes: int | None = None
    max_answer_seconds: float | None = None
    max_retry_after_seconds: float | None = None
    max_outage_seconds: float | None = None
    max_tool_seconds: float | None = None
    max_tool_cpu_seconds: float | None = None
    max_tool_memory_bytes: int | None = None
    max_tool_processes: int | None = None
    max_file_bytes: int | None = None
    max_memory_index_bytes: int | None = None
    max_attachment_bytes: int | None = None


class EffectiveLimits(Limits, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """What an agent may use, with the defaults. Where 0 is the default, 0 means that there is no limit.

    A task tree is a task and all that it causes, over all agents. The `tool` limits hold for each process that a tool
    starts, with all its children; `max_context_bytes` for the conversations that an agent has in memory. The
    `answer` limits hold for one answer of a model, with its reasoning and its tool calls. No model request waits longer
    than `max_retry_after_seconds` because its provider asks for that, and while its provider is down or cannot be
    reached it is repeated for `max_outage_seconds`.
    """

    max_concurrent_tasks: int = 1
    max_queue_length: int = 10_000
    max_steps_per_task: int = 100
    max_same_calls: int = 5
    max_continuations: int = 10
    max_task_seconds: float = 7 * 86_400.0
    max_prompt_bytes: int = 1 << 20
    max_mail_bytes: int = 256 << 10
    max_result_bytes: int = 1 << 20
    max_switch_depth: int = 8
    switch_timeout_seconds: float = 300.0
    max_tasks_per_tree: int = 1_000
    max_tokens_per_tree: int = 0
    max_cost_usd_per_tree: float = 0.0
    max_tokens_per_agent: int = 0
    max_cost_usd_per_agent: float = 0.0
    max_context_bytes: int = 64 << 20
    max_answer_bytes: int = 1 << 20
    max_answer_seconds: float = 7_200.0
    max_retry_after_seconds: float = 3_600.0
    max_outage_seconds: float = 1_800.0
    max_tool_seconds: float = 600.0
    max_tool_cpu_seconds: float = 300.0
    max_tool_memory_bytes: int = 512 << 20
    max_tool_processes: int = 64
    max_file_bytes: int = 16 << 20
    max_memory_index_bytes: int = 8 << 10
    max_attachment_bytes: int = 5 << 20


class SessionLimits(Limits, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What a session or a server states: defaults for the limits of its agents, and what a session may use in all.

    `EffectiveSessionLimits` says what holds for a session where nothing is stated.
    """

    max_started_agents: int | None = None
    max_created_agents: int | None = None
    max_concurrent_loops: int | None = None
    max_requests_per_account: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


class EffectiveSessionLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a session may use in all, with the defaults. Where 0 is the default, 0 means that there is no limit.

    A loop takes a place while it works: one that only waits for a reply, a lock, a resource or a person has none, and
    the answer to an agent that waits needs none. Agents may create others while the session has fewer than
    `max_created_agents` agents, whoever created them; 0 means that they may not. How many requests a provider takes at
    once is found out for each of its accounts, for all sessions of the process; `max_requests_per_account` is how many
    there are at most.
    """

    max_started_agents: int = 100_000
    max_created_agents: int = 100
    max_concurrent_loops: int = 10_000
    max_requests_per_account: int = 0
    max_tokens: int = 0
    max_cost_usd: float = 0.0


MAY_BE_ZERO = ("max_continuations", "max_started_agents", "max_created_agents")
"""Limits of which 0 means none at all, where it means no limit of others."""

_PAUSED = "The agent that wants more is paused until you raise it."
_FAILS = "The task fails."
_ENDED = "The processes of the tool are ended."

LIMIT_WORDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "The session as a whole": {
        "max_started_agents": ("Started agents", "The start of another is refused."),
        "max_created_agents": ("Created agents", "An agent that wants to create another is refused."),
        "max_concurrent_loops": ("Loops at once", "Work waits in its queue."),
        "max_requests_per_account": ("Requests to one account at once", "The request waits for its turn."),
        "max_tokens": ("Tokens in all", _PAUSED),
        "max_cost_usd": ("Cost in all", _PAUSED),
    },
    "Work": {
        "max_concurrent_tasks": ("Tasks at once", "Work waits in the queue of the agent."),
        "max_queue_length": ("Queue", "Work, mail and messages are refused for a while."),
        "max_steps_per_task": ("Steps of a task", _FAILS),
        "max_same_calls": ("Equal calls in a row", "The call is not made; then the task fails."),
        "max_continuations": ("Continuations", _FAILS),
        "max_task_seconds": ("Time of a task", _FAILS),
        "max_answer_seconds": ("Time of an answer", _FAILS),
        "max_retry_after_seconds": ("Wait that a provider asks for", "It is asked again after this time."),
        "max_outage_seconds": ("Outage of a provider", "The request is no longer repeated, and the task fails."),
        "max_switch_depth": ("Depth of switches", "The question to the next agent is refused."),
        "switch_timeout_seconds": ("Wait for an answer", "The agent no longer waits."),
        "max_tasks_per_tree": ("Tasks of a task tree", "Its agents can give each other no more work."),
    },
    "Tokens and money": {
        "max_tokens_per_tree": ("Tokens of a task tree", _FAILS),
        "max_cost_usd_per_tree": ("Cost of a task tree", _FAILS),
        "max_tokens_per_agent": ("Tokens of an agent", _PAUSED),
        "max_cost_usd_per_agent": ("Cost of an agent", _PAUSED),
    },
    "Size": {
        "max_prompt_bytes": ("Prompt", "The prompt is refused."),
        "max_mail_bytes": ("Mail", "The mail is refused."),
        "max_result_bytes": ("Result of a tool", "The result is cut."),
        "max_answer_bytes": ("Answer of a model", _FAILS),
        "max_context_bytes": ("Conversations in memory", _FAILS),
        "max_file_bytes": ("File", "The file is not read or written as a whole."),
        "max_attachment_bytes": ("Attachment", "The task or the message is refused."),
        "max_memory_index_bytes": ("Notes in the prompt", "The model is told the beginning, and that there is more."),
    },
    "Tools": {
        "max_tool_seconds": ("Time of a tool", _ENDED),
        "max_tool_cpu_seconds": ("CPU time of a tool", _ENDED),
        "max_tool_memory_bytes": ("Memory of a tool", "Its process gets no more memory."),
        "max_tool_processes": ("Processes of a tool", "It can start no more of them."),
    },
}
"""What each limit is called and what happens when it is reached, in groups, in the order in which they are shown."""


class LimitScope(StrEnum):
    """Whom a limit holds for: an agent, a task and all that it causes, a session, or all sessions of a server."""

    AGENT = "agent"
    TREE = "tree"
    SESSION = "session"
    SERVER = "server"


class LimitAction(StrEnum):
    """What happens at a limit: a call is refused, a task fails, its agent is paused for a person, or work waits.

    A result that is too long is cut.
    """

    REFUSED = "refused"
    FAILED = "failed"
    PAUSED = "paused"
    WAITING = "waiting"
    CUT = "cut"


class LimitSource(StrEnum):
    """Where a limit that holds was stated; `setting` is what the server, or the session manager, was started with."""

    AGENT = "agent"
    SESSION = "session"
    SERVER = "server"
    SETTING = "setting"
    DEFAULT = "default"


class LimitState(Record, frozen=True, kw_only=True):
    """A limit that holds. `used` is what is used of it now, where that can be told; 0 as a value means no limit.

    `reached` counts how often it was reached since the session was opened.
    """

    name: str
    value: float
    source: LimitSource
    used: float | None = None
    reached: int = 0


class LimitsReport(Record, frozen=True, kw_only=True):
    """The limits of an agent, or of a session: what it may use in all, and the defaults of its agents."""

    scope: LimitScope
    agent_id: str | None = None
    limits: tuple[LimitState, ...] = ()
