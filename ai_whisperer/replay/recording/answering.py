"""Models and tools that answer from a recording, by the key of the step: they compare what they are asked first."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from ai_whisperer.core.causal_paths import through
from ai_whisperer.domain.conversation import Answer, ToolResult, ToolSpec
from ai_whisperer.domain.tasks import Failure
from ai_whisperer.errors import ModelError, ModelUnavailableError
from ai_whisperer.models.base import (
    CallRequested,
    Finished,
    Model,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from ai_whisperer.replay.recording.asking import digest_of
from ai_whisperer.replay.recording.format import Agent, Recording, Reply, Result
from ai_whisperer.replay.recording.format import Tool as RecordedTool
from ai_whisperer.tools.function import Tool, ToolContext

_S = TypeVar("_S", bound=msgspec.Struct)

_NO_WINDOW = 1_000_000_000
"""Of an agent whose conversations were never made shorter nobody knows how much its model takes; it was enough."""
_NO_WAIT = -2.0
"""Spreads a wait so far that it is nothing: then it is as long as was asked for."""


class Prompter(Protocol):
    """Who knows the recording and the run: see `run.Run`."""

    def causal(self, text: str) -> str: ...
    async def reply_to(self, request: ModelRequest) -> Reply: ...
    async def result_of(self, tool: Tool, arguments: str, context: ToolContext) -> ToolResult: ...


class RecordedModel:
    """A model that says what was recorded, when it was."""

    def __init__(self, prompter: Prompter, chance: Chance, *, window: int) -> None:
        self._prompter = prompter
        self._chance = chance
        self._window = window

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        reply = await self._prompter.reply_to(request)
        if reply.error is not None:
            raise error_of(reply, self._chance)
        for event in events_of(reply.answer or Answer()):
            yield event

    def context_window(self) -> int:
        """How many tokens it takes, as far as the recording tells."""
        return self._window

    async def close(self) -> None:
        """There is nothing to close."""


class LiveModel:
    """A model that is asked for real, while time passes as it does outside."""

    def __init__(self, model: Model, for_real: Callable[[], AbstractContextManager[None]]) -> None:
        self._model = model
        self._for_real = for_real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        with self._for_real():
            async for event in self._model.stream(request):
                yield event

    async def close(self) -> None:
        with self._for_real():
            await self._model.close()


def events_of(answer: Answer) -> Iterator[StreamEvent]:
    if answer.reasoning:
        yield ReasoningDelta(text=answer.reasoning)
    if answer.text:
        yield TextDelta(text=answer.text)
    for call in answer.tool_calls:
        yield CallRequested(call=call)
    yield Finished(usage=answer.usage, finish=answer.finish, model=answer.model, provider=answer.provider)


class PassingError(ModelUnavailableError):
    """A failure after which the request was made again: it asks for exactly the wait that followed."""


class LastError(ModelError):
    """A failure after which the request was given up."""


def error_of(reply: Reply, chance: Chance) -> ModelError:
    """The error that was recorded, with the code that it had, as one that leads to what followed from it."""
    failure = reply.error or Failure(code=ModelError.code, message="")
    if reply.wait_seconds is None:
        last = LastError(failure.message)
        last.code = failure.code
        return last
    chance.lets_wait_be_asked_for()
    passing = PassingError(failure.message, retry_after_seconds=reply.retry_after_seconds or reply.wait_seconds)
    passing.code = failure.code
    return passing


class Chance(random.Random):
    """Chance that brings the middle, but for waits that were recorded: these are as long as their error asks for."""

    _is_wait = False

    def lets_wait_be_asked_for(self) -> None:
        self._is_wait = True

    def random(self) -> float:
        if self._is_wait:
            self._is_wait = False
            return _NO_WAIT
        return 0.5


def window_of(agents: Iterable[Agent]) -> int:
    """How many tokens the models of a recording take: the smallest that is known, or more than any conversation has."""
    return min((agent.context_window for agent in agents if agent.context_window is not None), default=_NO_WINDOW)


WasAsked = Callable[[str], bool | None]
"""Tells by the id of a step whether a person was asked before its call; None if no such step was recorded."""


class StandIn(Tool):
    """A tool of the recording: it does nothing and brings what was recorded."""

    __slots__ = ("_approved", "_prompter", "_repeats", "_told", "_was_asked")

    def __init__(
        self,
        recorded: RecordedTool,
        prompter: Prompter,
        like: Tool | None = None,
        *,
        was_asked: WasAsked = lambda _: None,
    ) -> None:
        super().__init__(_nothing, name=recorded.name)
        self._prompter = prompter
        self._was_asked = was_asked
        self._repeats = recorded.repeats
        self._approved = frozenset(recorded.approved)
        spec = recorded.spec if like is None else like.spec
        self._told = spec or ToolSpec(name=recorded.name, description=recorded.name, parameters={"type": "object"})
        self.untrusted = self._told.untrusted
        self.needs_approval = bool(recorded.approved)

    @property
    def spec(self) -> ToolSpec:
        return self._told

    @property
    def takes_context(self) -> bool:
        return False

    def check(self) -> Tool:
        return self

    def may_repeat(self, arguments: str) -> bool:
        del arguments
        return self._repeats

    def wants_approval(self, arguments: str) -> bool:
        return digest_of(self._prompter.causal(arguments)) in self._approved

    def asks_before(self, step_id: str, arguments: str, *, is_listed: bool) -> bool:
        known = self._was_asked(step_id)
        return super().asks_before(step_id, arguments, is_listed=is_listed) if known is None else known

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        return await self._prompter.result_of(self, arguments, context)


class Watched(Tool):
    """A tool that is called for real, with what the recording has to say of it."""

    __slots__ = ("_prompter", "_tool", "_was_asked")

    def __init__(self, tool: Tool, recorded: RecordedTool, prompter: Prompter, *, was_asked: WasAsked) -> None:
        super().__init__(
            tool.function,
            name=tool.name,
            idempotent=tool.idempotent,
            touches=tool.touches,
            needs_approval=tool.needs_approval or bool(recorded.approved),
            untrusted=tool.untrusted,
            optional=tool.optional,
        )
        self._tool = tool
        self._prompter = prompter
        self._was_asked = was_asked

    def asks_before(self, step_id: str, arguments: str, *, is_listed: bool) -> bool:
        known = self._was_asked(step_id)
        return is_listed or self._tool.wants_approval(arguments) if known is None else known

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        return await self._prompter.result_of(self._tool, arguments, context)


async def _nothing() -> str:
    """Stands in for a tool."""
    return ""


def tools_for(recording: Recording, make: Callable[[RecordedTool], Tool]) -> tuple[list[Tool], dict[str, list[Tool]]]:
    """The tools of the session, and those of single agents by id, as they were provided."""
    free = [agent for agent in recording.agents if agent.definition.tools is None]
    known = {tool.name: make(tool) for tool in recording.tools}
    owned = {name for agent in recording.agents for name in agent.tools}
    shared = {name for name in known if name not in owned or all(name in agent.tools for agent in free)}
    of_agents = {
        agent.id: [known[name] for name in agent.tools if name in known and name not in shared]
        for agent in recording.agents
    }
    return [known[name] for name in sorted(shared)], {agent_id: own for agent_id, own in of_agents.items() if own}


def by_key(recording: Recording) -> tuple[Mapping[tuple[str, int], Reply], Mapping[str, list[Result]]]:
    """Replies by key and attempt, results by key: one that was repeated has several."""
    results: dict[str, list[Result]] = {}
    for result in recording.results:
        results.setdefault(result.key, []).append(result)
    return {(reply.key, reply.attempt): reply for reply in recording.replies}, results


def actual_reply(reply: Reply, actual: Callable[[str], str]) -> Reply:
    """The reply with the ids of this run."""
    if reply.answer is None:
        return reply
    return replace(reply, answer=_through(reply.answer, actual))


def actual_result(result: ToolResult, actual: Callable[[str], str]) -> ToolResult:
    return _through(result, actual)


def _through(value: _S, change: Callable[[str], str]) -> _S:
    return msgspec.convert(through(change, msgspec.to_builtins(value)), type(value))
