"""The faults of a universe: each says what goes wrong and at which moment, in words that a file can have.

A moment is counted, not timed: the second request of an agent, the first call of a tool, the fortieth commit. Counts
are those of the universe, from 1, and go on over deaths of the process.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e6)]


class FaultKind(StrEnum):
    """What `--faults` names."""

    MODELS = "models"
    TOOLS = "tools"
    DISK = "disk"
    PEOPLE = "people"
    KILLS = "kills"


class ModelFailure(StrEnum):
    """How a model request fails: refused with 429, down with 503, failed with 500, or cut in the middle."""

    RATE_LIMIT = "rate_limit"
    UNAVAILABLE = "unavailable"
    SERVER_ERROR = "server_error"
    CUT_OFF = "cut_off"


class KillMoment(StrEnum):
    """When the process dies: counted by requests of an agent, calls of a tool, or commits."""

    MODEL_ASKED = "model_asked"
    MODEL_ANSWERED = "model_answered"
    TOOL_BEGAN = "tool_began"
    TOOL_ENDED = "tool_ended"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"


class Fault(Struct, frozen=True, kw_only=True, tag_field="fault", forbid_unknown_fields=True):
    """One thing that goes wrong, once."""

    kind: ClassVar[FaultKind]

    def told(self) -> str:
        """In words for people."""
        raise NotImplementedError


class SlowModel(Fault, frozen=True, kw_only=True, tag="slow_model"):
    """A model takes so much longer, and what it asks for, such as a mail, comes as much later."""

    kind = FaultKind.MODELS
    agent: str
    request: Count
    seconds: Seconds

    def told(self) -> str:
        return f"the model of {self.agent} takes {self.seconds:g} s longer for {_nth(self.request, 'request')}"


class FailedModel(Fault, frozen=True, kw_only=True, tag="failed_model"):
    """A model request fails; the runtime asks again."""

    kind = FaultKind.MODELS
    agent: str
    request: Count
    failure: ModelFailure

    def told(self) -> str:
        return f"{_nth(self.request, 'request')} of {self.agent} to its model fails: {_FAILURES[self.failure]}"


class SlowTool(Fault, frozen=True, kw_only=True, tag="slow_tool"):
    """So long passes before a tool begins its work, or after it, before anybody is told."""

    kind = FaultKind.TOOLS
    tool: str
    call: Count
    before_seconds: Seconds = 0.0
    after_seconds: Seconds = 0.0

    def told(self) -> str:
        parts = [f"waits {self.before_seconds:g} s before it acts"] if self.before_seconds else []
        parts += [f"tells of its end {self.after_seconds:g} s late"] if self.after_seconds else []
        return f"{_nth(self.call, 'call')} of {self.tool} {' and '.join(parts) or 'is not slow'}"


class SlowCommit(Fault, frozen=True, kw_only=True, tag="slow_commit"):
    """The disk takes so long for a commit, and all that follows from it waits: mail is late for everybody."""

    kind = FaultKind.DISK
    commit: Count
    seconds: Seconds

    def told(self) -> str:
        return f"{_nth(self.commit, 'commit')} takes {self.seconds:g} s"


class LatePerson(Fault, frozen=True, kw_only=True, tag="late_person"):
    """People do what they do so much later: say something, approve a call, answer a question."""

    kind = FaultKind.PEOPLE
    act: Count
    seconds: Seconds

    def told(self) -> str:
        return f"people are {self.seconds:g} s late with what they do {_ordinal(self.act)}"


class Kill(Fault, frozen=True, kw_only=True, tag="kill"):
    """The process dies at once, as with kill -9, and is started again after so long.

    `of` is the agent or the tool whose requests or calls are counted; commits are of nobody.
    """

    kind = FaultKind.KILLS
    moment: KillMoment
    number: Count
    of: str = ""
    down_seconds: Seconds = 0.0

    def told(self) -> str:
        again = f", and starts again {self.down_seconds:g} s later" if self.down_seconds else ""
        match self.moment:
            case KillMoment.MODEL_ASKED:
                when = f"when {_nth(self.number, 'request')} of {self.of} to its model has begun"
            case KillMoment.MODEL_ANSWERED:
                when = f"when {_nth(self.number, 'request')} of {self.of} is answered, before that is kept"
            case KillMoment.TOOL_BEGAN:
                when = f"when {_nth(self.number, 'call')} of {self.of} has begun, before it acts"
            case KillMoment.TOOL_ENDED:
                when = f"when {_nth(self.number, 'call')} of {self.of} has acted, before that is kept"
            case KillMoment.BEFORE_COMMIT:
                when = f"before {_nth(self.number, 'commit')}"
            case KillMoment.AFTER_COMMIT:
                when = f"after {_nth(self.number, 'commit')}, before anybody is told of it"
        return f"the process is killed {when}{again}"


AnyFault = SlowModel | FailedModel | SlowTool | SlowCommit | LatePerson | Kill


class Interleaving(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In which order what is ready runs, and how fast the disk is: a seed decides it, at so many of the first choices.

    There is a choice when several things are ready at the same time, and at each commit. Without a seed, and after
    those choices, everything runs in the order in which it got ready, on a disk that takes no time.
    """

    seed: Annotated[int, Meta(ge=0)] | None = None
    choices: Annotated[int, Meta(ge=0)] | None = None

    @property
    def is_plain(self) -> bool:
        return self.seed is None or self.choices == 0

    def told(self) -> str:
        if self.is_plain:
            return "everything in the order in which it got ready"
        limit = "" if self.choices is None else f", at the first {self.choices} choices"
        return f"what is ready at the same time runs in the order of seed {self.seed}{limit}"


class Schedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that makes one universe different from the plain one."""

    interleaving: Interleaving = Interleaving()
    faults: tuple[AnyFault, ...] = ()


_FAILURES = {
    ModelFailure.RATE_LIMIT: "429, too many requests",
    ModelFailure.UNAVAILABLE: "503, it is down",
    ModelFailure.SERVER_ERROR: "500, it failed",
    ModelFailure.CUT_OFF: "the answer is cut off in the middle",
}


def _nth(number: int, what: str) -> str:
    return f"the {_ordinal(number)} {what}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
