"""How a conversation that has grown too long is shown shorter. Nothing is deleted: the journal keeps all of it."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class CompactionKind(StrEnum):
    """`trim`: old results are shown as one line, by the runtime. `summary`: a model wrote down what was said before."""

    TRIM = "trim"
    SUMMARY = "summary"


class CompactionReason(StrEnum):
    """`window`: the next request would be too long. `refused`: the provider said so. `asked`: a person wanted it."""

    WINDOW = "window"
    REFUSED = "refused"
    ASKED = "asked"


class Place(Record, frozen=True):
    """A place in a thread: after this step of this task. With the number 0 it is before the task."""

    task_id: str
    number: int = 0


class Compaction(Record, frozen=True, kw_only=True, omit_defaults=True):
    """From where on a thread is shown as it was, and what stands for the part before.

    Each one stands for all that those before it stood for, so that the last one of a thread is all that is needed.

    What is before `covered` is shown as its head: `first`, the first prompt of the thread, and `said`, what the person
    said, word for word; then the `summary` and the `card`, on which the runtime says how things stand, with `notes`,
    the agent's own as they were then: those that were told before are not shown. The task in which `covered` lies began
    at `covered_at`; `ties` are tasks that are covered and began at the same instant. Results before `trimmed` are shown
    as one line, and later ones up to `result_bytes` each; 0 stands for the usual.

    `steps` counts those that are covered, and `asked_tokens` is the size to come down to. While it is under way `kind`
    is None. `problem` says why there is no summary though one was wanted. What strangers may have written is in an
    `untrusted` summary.
    """

    reason: CompactionReason
    window: int
    asked_tokens: int
    tokens_before: int
    kind: CompactionKind | None = None
    tokens_after: int = 0
    steps: int = 0
    covered: Place | None = None
    covered_at: float = 0.0
    ties: tuple[str, ...] = ()
    trimmed: Place | None = None
    result_bytes: int = 0
    first: str = ""
    said: tuple[str, ...] = ()
    summary: str = ""
    card: str = ""
    notes: str = ""
    files: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    untrusted: bool = False
    problem: str = ""


class CompactedThread(Record, frozen=True, kw_only=True):
    """The latest compaction of a thread of an agent, and the step that it was made in.

    All tasks of the thread that are not covered have this `arrival` or a later one.
    """

    session_id: str
    agent_id: str
    thread_id: str
    task_id: str
    number: int
    arrival: int
    compaction: Compaction


class ContextReport(Record, frozen=True, kw_only=True):
    """What the model of an agent would be shown of a thread now, in tokens by an estimate.

    Beyond `limit_tokens` the conversation is made shorter before the next request. `window_known` says whether the
    window is stated or known of the model, rather than assumed. `cached_share` is how much of what the agent's model
    was sent so far came out of the provider's cache, from 0 to 1.
    """

    agent_id: str
    thread_id: str
    tokens: int
    window: int
    limit_tokens: int
    window_known: bool
    compacts: bool
    turns: int
    tasks: int
    cached_share: float
    compaction: Compaction | None = None
    compacted_in: str | None = None
