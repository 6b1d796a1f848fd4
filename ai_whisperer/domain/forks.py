"""Forks of sessions, and two sessions side by side: what is asked for, and what comes of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from ai_whisperer.domain.conversation import ToolResult, ToolSpec
from ai_whisperer.domain.record import Record


class Effects(StrEnum):
    """What becomes of calls with effects outside that a fork makes.

    `ask`: a person is asked before each. `recorded`: one that the session has made too brings what it brought there,
    all others wait for a person. `live`: they are made.
    """

    ASK = "ask"
    RECORDED = "recorded"
    LIVE = "live"


class RecordedCall(Record, frozen=True, kw_only=True):
    """What a call brought in the session that was forked. `key` is what caused its step, and the number of it.

    `digest` names the tool and the arguments. Ids in it and in the result are causal.
    """

    key: str
    digest: str
    result: ToolResult


class Fork(Record, frozen=True, kw_only=True):
    """That a session was forked from `source` after the entry `at` of its log, and what `effects` it may have.

    Its log was played up to `since`. With `recorded`, `paths` and `made` are the causal paths of what that tells of,
    and `calls` are those that the source made later. Of a fork whose effects are `live` nothing is kept.
    """

    session_id: str
    source: str
    at: int
    since: int
    effects: Effects
    paths: dict[str, str]
    made: dict[str, int]
    calls: list[RecordedCall]


class ForkReport(Record, frozen=True, kw_only=True):
    """Sessions that were forked from `session_id` after the entry `at` of its log.

    `recorded_calls` is how many results of later calls each of them has at hand, with the effects `recorded`.
    """

    session_id: str
    at: int
    session_ids: list[str]
    effects: Effects
    recorded_calls: int = 0


class PartingKind(StrEnum):
    """How two sessions differ in a step: its answer or its result, or only one of them has it."""

    ANSWER = "answer"
    RESULT = "result"
    ONLY_IN_A = "only_in_a"
    ONLY_IN_B = "only_in_b"


class Parting(Record, frozen=True, kw_only=True):
    """The first step in which an agent differs. `key` is what caused the step, and its number.

    `seq_a` and `seq_b` are the entries of the logs that tell of its end, `text_a` and `text_b` what it brought,
    shortened, and `diff` the lines that differ; None and empty where the step is not.
    """

    agent_id: str
    key: str
    kind: PartingKind
    seq_a: int | None = None
    seq_b: int | None = None
    text_a: str = ""
    text_b: str = ""
    diff: str = ""


class Unmatched(Record, frozen=True, kw_only=True):
    """A call or a mail that only one of two sessions has, and the entry of its log that tells of it."""

    agent_id: str
    text: str
    seq: int


class Spent(Record, frozen=True, kw_only=True):
    """What a session, or an agent of it, has used. `cost_usd` is of what has a price, None if nothing has."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0


class SpentByBoth(Record, frozen=True, kw_only=True):
    """What each of two sessions has used; with an `agent_id`, that agent in each."""

    agent_id: str | None = None
    a: Spent
    b: Spent


class Comparison(Record, frozen=True, kw_only=True):
    """What two sessions have in common and what not. A is the first one, B the second.

    `partings` has the first difference of each agent that differs, `first` the first one of all. `is_same`: agents
    answered, called and wrote the same. Of calls and mails that one has alone, `calls_only_in_a` and the like have the
    first; `more` says how many are left out.
    """

    is_same: bool
    first: Parting | None
    partings: list[Parting]
    same_answers: int
    other_answers: int
    calls_only_in_a: list[Unmatched]
    calls_only_in_b: list[Unmatched]
    mails_only_in_a: list[Unmatched]
    mails_only_in_b: list[Unmatched]
    more: int = 0
    spent: SpentByBoth
    spent_by_agent: list[SpentByBoth]


class Job(Record, frozen=True, kw_only=True, tag_field="job", tag=str.lower):
    """What a process of its own is to do with sessions. `folder` has their files, `store` is the database's address.

    Without a `store` the folder has the database too. `tools` are those that the sessions were given. `place` is a
    folder for what is needed meanwhile; `secrets` are what the server redacts wherever it finds it.
    """

    folder: str
    store: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    place: str | None = None
    secrets: tuple[str, ...] = ()


class ForkJob(Job, frozen=True, kw_only=True):
    """Write a session as it was after entry `at` to `file`, as an export. `changes` are values by `AGENT.FIELD`.

    `lacking` names tools that there are not any more, by the agent that has them: such an agent cannot go on.
    """

    session_id: str
    at: int
    file: str
    changes: dict[str, Any]
    lacking: dict[str, list[str]]
    effects: Effects = Effects.ASK
    title: str = ""


class CompareJob(Job, frozen=True, kw_only=True):
    """Lay two sessions side by side."""

    first: str
    second: str


AnyJob = ForkJob | CompareJob


class JobDone(Record, frozen=True, kw_only=True, tag_field="outcome", tag="done"):
    """What came of a job."""

    comparison: Comparison | None = None
    recorded_calls: int = 0


class JobFailed(Record, frozen=True, kw_only=True, tag_field="outcome", tag="failed"):
    """Why nothing came of a job: the code of an error, its message, and what goes with it."""

    code: str
    message: str
    data: dict[str, Any]


JobOutcome = JobDone | JobFailed
