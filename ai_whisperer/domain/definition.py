"""What an agent is: its definition, and the policies in it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from ai_whisperer.domain.limits import Limits
from ai_whisperer.domain.schedules import ScheduleDefinition

DEFAULT_PROMPT = """\
You are a helpful agent in a team. Do your task and answer with the result.
If another agent knows or does something better, ask it by mail; answer the mail you get.
Say plainly what you could not do or are not sure of."""


INHERIT = "inherit"
"""The model name that stands for the session's own default."""


CLIENT = "client"
"""The setting that says what asks the provider. It is not passed on."""
OWN_CLIENT = "own"
"""The client of this package, taken where there is one for the provider."""
LIBRARY_CLIENT = "pydantic-ai"
TAKES_IMAGES = "images"
"""The setting that says whether the model takes images and documents; False if not. It is not passed on."""


class Access(StrEnum):
    """What an agent may do in a folder that it is granted."""

    READ = "read"
    WRITE = "write"


class CutAnswers(StrEnum):
    """What becomes of an answer that its length has cut: another task continues it, or it is the answer as it is."""

    CONTINUE = "continue"
    FINAL = "final"


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """How failed model requests are repeated, and when one that is under way has failed.

    A request has failed when nothing has come for `stall_seconds`, or for `first_token_seconds` while nothing of the
    answer has come yet: a model may have much to read before it begins, and may have to be loaded for it.

    While the provider is down or cannot be reached, `max_outage_seconds` of the limits takes the place of
    `max_attempts`.
    """

    max_attempts: int = 5
    first_delay_seconds: float = 1.0
    max_delay_seconds: float = 60.0
    first_token_seconds: float = 600.0
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


class Compact(StrEnum):
    """Whether conversations that grow too long are made shorter: by themselves, or never."""

    AUTO = "auto"
    OFF = "off"


NEVER_COMPACT: Final = Compact.OFF
"""What each task asks for: a member of an enum takes long to look up."""


class ContextPolicy(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """What a model is shown of a conversation that has grown too long for it.

    `window` is how many tokens the model can take with its answer; without it, what is known of the model. `model`
    writes the summaries, without it the agent's own. Of the last answers, so many as `keep` says are kept with all
    their results.
    """

    compact: Compact = Compact.AUTO
    window: int | None = None
    model: str = INHERIT
    keep: int = 2


class AgentDefinition(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True
):
    """What an agent is, apart from what it is doing.

    `cut_answers` says what becomes of an answer that reached the length which the model or `max_tokens` allows.
    `model` may name several, the one that is wanted first: the others are asked while it cannot answer.
    `tools=None` grants the coordination tools and all that were provided; tools that reach the machine or the network
    (`read_file`, `run_command`, …) have to be named. `folders` are the folders that it may use beside its own, by the
    names that the session has for them; `working_folder` names the one of them that its paths are relative to and that
    its programs run in, in place of its own. `network` are the hosts that its tools may talk to, `"*"` for all public
    ones.
    `approve` names tools of which a person has to allow each call, whatever the tools say themselves; a name that ends
    in `*` stands for all that begin so, `"*"` for all tools but those that touch only the session. `subscribes` names
    the events that become a task of the agent; `"*"` stands for all. `output_schema` is the JSON Schema that the
    answers to its tasks have to fit, unless a task has one of its own; it does not hold where the agent talks, in mail
    and in chats.
    """

    name: str = ""
    description: str = ""
    prompt: str = DEFAULT_PROMPT
    model: str | tuple[str, ...] = INHERIT
    settings: dict[str, Any] = {}
    cut_answers: CutAnswers = CutAnswers.CONTINUE
    tools: tuple[str, ...] | None = None
    folders: dict[str, Access] = {}
    working_folder: str = ""
    network: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    context: ContextPolicy = ContextPolicy()
    supervision: Supervision = Supervision()
    subscribes: tuple[str, ...] = ()
    schedule: tuple[ScheduleDefinition, ...] = ()
    output_schema: dict[str, Any] | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order in which they are asked."""
        return (self.model,) if isinstance(self.model, str) else self.model
