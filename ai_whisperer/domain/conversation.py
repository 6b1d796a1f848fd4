"""What is said between a model and its loop: turns, answers, tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.record import Record


class Usage(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was used. `cost_usd` is None when the price of the model is not known.

    A sum is the cost of what has a price; `unpriced_tokens` are those in it that have none.

    `wall_seconds` is how long model requests and tools took, `cpu_seconds` and `memory_bytes` what processes of tools
    took: their time together, the memory of the largest.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    model_calls: int = 0
    tool_calls: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    mails_sent: int = 0
    unpriced_tokens: int = 0

    @property
    def without_price(self) -> int:
        """How many tokens have no known price: all of them if there is no cost."""
        return self.input_tokens + self.output_tokens if self.cost_usd is None else self.unpriced_tokens

    @property
    def cached_share(self) -> float:
        """How much of what was sent came out of the provider's cache, from 0 to 1."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0

    def __add__(self, other: Usage) -> Usage:
        cost_usd, unpriced = self.cost_usd, self.unpriced_tokens
        if cost_usd is None:
            unpriced = self.input_tokens + self.output_tokens
        if other.cost_usd is None:
            unpriced += other.input_tokens + other.output_tokens
        else:
            unpriced += other.unpriced_tokens
            cost_usd = other.cost_usd if cost_usd is None else cost_usd + other.cost_usd
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=cost_usd,
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            wall_seconds=self.wall_seconds + other.wall_seconds,
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
            mails_sent=self.mails_sent + other.mails_sent,
            unpriced_tokens=unpriced,
        )


class ToolCall(Record, frozen=True, kw_only=True):
    """A tool call as the model asked for it; `arguments` is the JSON text that it wrote."""

    call_id: str
    name: str
    arguments: str


class Answer(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a finished model request brought. `provider` keeps what the provider wants to see again.

    `tool_calls` are those that the model wrote as such. `read_as` are the calls that were read of the answer, where
    that is something else: they were written as text, with another name, or with arguments that had to be repaired.

    `objection` is what the model is told of an answer that does not fit the output schema of its task. One that was
    `excused`, since the task was retried after it, no longer counts.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: str = "stop"
    model: str = ""
    provider: str | None = None
    read_as: tuple[ToolCall, ...] = ()
    objection: str = ""
    excused: bool = False

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls to make."""
        return self.read_as or self.tool_calls


class UserTurn(Record, frozen=True, kw_only=True):
    """What a model is told: a prompt, a mail, a message. In an `untrusted` one words of strangers may stand.

    `memory` are the agent's own notes, which are told before it; `note` is what the runtime says after it. `parts` are
    the images and files that came with it.
    """

    text: str
    untrusted: bool = False
    note: str = ""
    memory: str = ""
    parts: tuple[Attachment, ...] = ()


@final
class AnswerTurn(Record, frozen=True, kw_only=True):
    """What a model answered."""

    answer: Answer


@final
class ToolTurn(Record, frozen=True, kw_only=True):
    """The result of one tool call of the answer before it. `note` says how the call should have been written."""

    call: ToolCall
    content: str
    is_error: bool = False
    untrusted: bool = False
    note: str = ""


Turn = UserTurn | AnswerTurn | ToolTurn
"""One entry of the conversation that a model is shown."""


class ToolSpec(Record, frozen=True, kw_only=True):
    """A tool as the model is told about it; `parameters` is a JSON Schema of an object.

    What an `untrusted` one brings may be written by strangers.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    untrusted: bool = False


class ToolRun(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What the processes of a tool call took from the machine, and what held them: the name of the sandbox.

    `limit` is the limit that they reached and were ended for, if any. `memory_bytes` of a small program that ended at
    once is no more than the most that it can have had.
    """

    sandbox: str
    limit: str = ""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0


class ToolResult(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool call brought, as the model is shown it.

    `mails` are the mails that it shows, `mails_sent` counts those that it sent.

    An `untrusted` one holds what strangers may have written: pages, files, the output of programs. A call that was
    `not_run` had been made often enough with the same result; its content says so.
    """

    content: str
    is_error: bool = False
    mails: tuple[str, ...] = ()
    mails_sent: int = 0
    untrusted: bool = False
    run: ToolRun | None = None
    not_run: bool = False


class ChannelResponse(Record, frozen=True, kw_only=True):
    """An answer in its three channels. `output` is the value that it is, if its task has an output schema."""

    analysis: str = ""
    commentary: str = ""
    final: str = ""
    output: Any = None
