"""What a recording is made of: the lines of its file, each a record.

The first line says what the file is and in which format, the last one closes it with a digest over all lines before.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.conversation import Answer, ToolResult, ToolSpec
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.tasks import Failure

FORMAT = 1
"""The format that is written. Every one up to this can be read."""


class Line(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line", tag=str.lower, rename="camel"
):
    """A line of the file. `line` says which."""


class Header(Line, frozen=True, kw_only=True, tag="recording"):
    """What was recorded: the log up to entry `last` of a session, by which version.

    `began_at` is the time of the first entry; all other times of the file are seconds since then. `limits` are those
    that the session and its server stated. `notes` tell a person what the recording cannot say.
    """

    format: int
    version: str
    session: str
    last: int
    began_at: float
    compared_from: int = 1
    limits: dict[str, Any] = {}
    notes: tuple[str, ...] = ()


class Agent(Line, frozen=True, kw_only=True):
    """An agent as it was defined. `tools` names the functions that were provided for it.

    `digest` is that of the definition, `context_window` how many tokens its models take, if that is known.
    """

    id: str
    definition: AgentDefinition
    digest: str
    tools: tuple[str, ...] = ()
    created_by: str = ""
    context_window: int | None = None


class Tool(Line, frozen=True, kw_only=True):
    """A tool with effects outside. Without a `spec` nobody could say what models were told of it.

    `repeats` is whether a call was repeated after a crash; `approved` has the digests of calls that a person was asked
    about.
    """

    name: str
    digest: str = ""
    spec: ToolSpec | None = None
    repeats: bool = False
    approved: tuple[str, ...] = ()


class Input(Line, frozen=True, kw_only=True):
    """Something that came from outside: a call of the session's API, or a new process (`open`).

    `number` counts them. `seq` is the first entry of the log that it caused, `at` when.
    """

    number: int
    seq: int
    at: float
    call: str
    arguments: dict[str, Any] = {}
    cause: str = "user:user"


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a model was asked, as digests: of its instructions, its tools, its settings, its name, and of each turn.

    `turns` are those that came after the ones of the request `after`, if there is one. The text of each digest is in
    the bodies of the recording.
    """

    system: str
    tools: str
    settings: str
    turns: tuple[str, ...]
    after: str = ""
    before: int = 0
    model: str = ""


class Reply(Line, frozen=True, kw_only=True, tag="answer"):
    """What a model answered to one attempt of a request, or how it failed.

    `key` is the causal path of the step, `seq` and `at` the entry that told of it. `interrupted`: nobody waited for the
    answer any more.
    """

    key: str
    seq: int
    at: float
    attempt: int = 1
    answer: Answer | None = None
    error: Failure | None = None
    wait_seconds: float | None = None
    retry_after_seconds: float | None = None
    interrupted: bool = False
    model: str = ""
    asked: Asked | None = None


class Result(Line, frozen=True, kw_only=True):
    """What a tool call with effects outside brought. `arguments` is the digest of what it was called with.

    Without a `result` nobody knows what came of it: the process died, or the call was cancelled.
    """

    key: str
    seq: int
    at: float
    tool: str
    arguments: str
    result: ToolResult | None = None


class Entry(Line, frozen=True, kw_only=True):
    """One entry of the log. Ids in it are causal: see `paths`."""

    seq: int
    at: float
    name: str
    cause: str
    params: dict[str, Any]


class Body(Line, frozen=True, kw_only=True):
    """A text that others name by its digest."""

    digest: str
    text: str


class End(Line, frozen=True, kw_only=True):
    """Closes the file: how many lines came before, and the digest over them."""

    lines: int
    digest: str


AnyLine = Header | Agent | Tool | Input | Reply | Result | Entry | Body | End


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded session. Made by `record` or `read_recording`; `rerun` plays it.

    `inputs`, `replies`, `results` and `entries` are in the order of the log. `bodies` leads from digests to texts. One
    that is `unredacted` has the session's secrets: a fork is made of it, and it is never written to a file.
    """

    header: Header
    agents: tuple[Agent, ...] = ()
    tools: tuple[Tool, ...] = ()
    inputs: tuple[Input, ...] = ()
    replies: tuple[Reply, ...] = ()
    results: tuple[Result, ...] = ()
    entries: tuple[Entry, ...] = ()
    bodies: dict[str, str] = {}
    unredacted: bool = False

    @property
    def steps(self) -> int:
        """How many model requests and outside tool calls it has."""
        return len(self.replies) + len(self.results)
