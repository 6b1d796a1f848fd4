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


class Limits(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent may use."""

    max_concurrent_tasks: int = 1
    max_queue_length: int = 10_000
    max_steps_per_task: int = 100
    max_continuations: int = 10
    max_prompt_bytes: int = 1 << 20
    max_mail_bytes: int = 256 << 10
    max_result_bytes: int = 1 << 20
    max_switch_depth: int = 8
    switch_timeout_seconds: float = 300.0


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """How failed model requests are repeated."""

    max_attempts: int = 5
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 60.0
    stall_seconds: float = 120.0


class Supervision(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What happens to a loop that crashes, and when its agent is stopped.

    A crashed loop begins again up to `max_restarts` times, each time after a longer delay; then its task is set aside.
    After `max_failures` failed tasks within `window_seconds` the agent is stopped, with the reason kept.
    """

    max_restarts: int = 3
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 60.0
    max_failures: int = 5
    window_seconds: float = 600.0


class ScheduleDefinition(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """When something fires, by `cron` or `interval_seconds`, and what: a `prompt` for the agent, or an `event`."""

    cron: str | None = None
    interval_seconds: float | None = None
    zone: str = "UTC"
    prompt: str | None = None
    event: str | None = None
    data: Any = None
    missed: MissedRuns = MissedRuns.ONCE


class AgentDefinition(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """What an agent is, apart from what it is doing. `tools=None` grants every tool that the agent can be given.

    `subscribes` names the events that become a task of the agent; `"*"` stands for all.
    """

    name: str = ""
    description: str = ""
    prompt: str = DEFAULT_PROMPT
    model: str = INHERIT
    settings: dict[str, Any] = {}
    tools: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    supervision: Supervision = Supervision()
    subscribes: tuple[str, ...] = ()
    schedule: tuple[ScheduleDefinition, ...] = ()
