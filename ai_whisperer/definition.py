"""What an agent is, as a person writes it down: prompt, model, tools, limits, schedule, supervision."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

DEFAULT_PROMPT = """\
You are a helpful agent in a team. Do the task you are given and answer with the result.

If you need something that another agent knows or can do better, look who is there and ask by mail; what others have
asked of you, answer by mail. Say plainly what you could not do or are not sure of."""

INHERIT = "inherit"
"""The model name that stands for the session's own default."""


class MissedRuns(StrEnum):
    """What becomes of due times that passed while nothing could fire: none fires, the last one does, or all do."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Access(StrEnum):
    """What an agent may do in a folder that it is granted."""

    READ = "read"
    WRITE = "write"


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


class SessionLimits(Limits, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What a session or a server states: defaults for the limits of its agents, and what a session may use in all.

    `EffectiveSessionLimits` says what holds for a session where nothing is stated.
    """

    max_started_agents: int | None = None
    max_created_agents: int | None = None
    max_concurrent_loops: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


class EffectiveSessionLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a session may use in all, with the defaults. Where 0 is the default, 0 means that there is no limit.

    A loop takes a place while it works: one that only waits for a reply, a lock, a resource or a person has none, and
    the answer to an agent that waits needs none. Agents may create others while the session has fewer than
    `max_created_agents` agents, whoever created them; 0 means that they may not.
    """

    max_started_agents: int = 100_000
    max_created_agents: int = 100
    max_concurrent_loops: int = 10_000
    max_tokens: int = 0
    max_cost_usd: float = 0.0


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """How failed model requests are repeated.

    While the provider is down or cannot be reached, `max_outage_seconds` of the limits takes the place of
    `max_attempts`.
    """

    max_attempts: int = 5
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 60.0
    stall_seconds: float = 120.0


class Supervision(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What happens to a loop that crashes, and when its agent is stopped.

    A crashed loop begins again up to `max_restarts` times, each time after a longer delay; then its task becomes a
    dead letter. After `max_failures` failed tasks within `window_seconds` the agent is stopped, with the reason kept.
    """

    max_restarts: int = 3
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 60.0
    max_failures: int = 5
    window_seconds: float = 600.0


class ScheduleDefinition(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """When something fires, by `cron` or `interval_seconds`, and what: a `prompt` for the agent, or an `event`.

    With `wake` the prompt wakes the agent if it sleeps; without, it waits until the agent is awake. An event wakes
    those that sleep until it.
    """

    cron: str | None = None
    interval_seconds: float | None = None
    zone: str = "UTC"
    prompt: str | None = None
    event: str | None = None
    data: Any = None
    missed: MissedRuns = MissedRuns.ONCE
    wake: bool = False

    @property
    def by_wall_clock(self) -> bool:
        """Whether it names what the wall clock shows; an interval is counted, however that clock is set."""
        return self.cron is not None


class AgentDefinition(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """What an agent is, apart from what it is doing.

    `tools=None` grants the coordination tools and all that were provided; tools that reach the machine or the network
    (`read_file`, `run_command`, …) have to be named. `folders` are the folders that it may use beside its own, by the
    names that the session has for them; `network` the hosts that its tools may talk to, `"*"` for all public ones.
    `approve` names tools of which a person has to allow each call, whatever the tools say themselves; a name that ends
    in `*` stands for all that begin so, `"*"` for all tools but those that touch only the session. `subscribes` names
    the events that become a task of the agent; `"*"` stands for all.
    """

    name: str = ""
    description: str = ""
    prompt: str = DEFAULT_PROMPT
    model: str = INHERIT
    settings: dict[str, Any] = {}
    tools: tuple[str, ...] | None = None
    folders: dict[str, Access] = {}
    network: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    supervision: Supervision = Supervision()
    subscribes: tuple[str, ...] = ()
    schedule: tuple[ScheduleDefinition, ...] = ()
