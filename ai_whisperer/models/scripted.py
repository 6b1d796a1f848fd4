"""Models without a provider, for tests and demonstrations.

`ScriptedModel` plays rules: the first rule whose conditions all hold says what is answered. `FunctionModel` asks a
Python function. Both are deterministic: the same requests in the same order bring the same events.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import lru_cache
from pathlib import Path

import yaml

from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.providers import Account
from ai_whisperer.errors import (
    DefinitionError,
    ModelError,
)
from ai_whisperer.models.base import (
    CallRequested,
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
)
from ai_whisperer.models.scripted_rules import PlayableRule, Rule, Situation, answer_with, checked_rule, situation_of

Sleep = Callable[[float], Awaitable[None]]
_STALL_SECONDS = 1e9
_EXCERPT_CHARACTERS = 200


class ScriptedModel:
    """A `Model` that plays rules. Where no rule fits it says so and repeats the start of the last turn.

    After a failed tool call that no rule is made for, it says what failed.

    Usage is estimated at four characters a token and costs nothing. Raises `DefinitionError` for a rule that cannot
    be played.
    """

    def __init__(self, rules: Sequence[Rule] = (), *, sleep: Sleep = asyncio.sleep) -> None:
        self._sleep = sleep
        playable = [PlayableRule(number, rule) for number, rule in enumerate(rules, start=1)]
        # Sorted by agent beforehand, so that a rule for each of a thousand agents costs no search.
        self._rules_for_all = [each for each in playable if each.rule.agent is None]
        self._rules_by_agent = {
            agent: [each for each in playable if each.rule.agent in (None, agent)]
            for agent in {each.rule.agent for each in playable} - {None}
        }

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, sleep: Sleep = asyncio.sleep) -> ScriptedModel:
        """Load `{rules: [...]}` from a file: JSON if its name ends in `.json`, else YAML.

        Raises `DefinitionError`, which names the file and, where there is one, the number of the rule and the field.
        """
        file = Path(path)
        try:
            return cls(_rules_of(file), sleep=sleep)
        except DefinitionError as error:
            raise DefinitionError(f"{file}: {error.message}") from error

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        situation = situation_of(request)
        rule, answer = self._choose(situation)
        if rule.latency_seconds:
            await self._sleep(rule.latency_seconds)
        if isinstance(answer, ModelError):
            raise answer
        if answer.reasoning:
            yield ReasoningDelta(text=answer.reasoning)
        size = rule.chunk_characters or len(answer.text) or 1
        for start in range(0, len(answer.text), size):
            if start and rule.chunk_seconds:
                await self._sleep(rule.chunk_seconds)
            yield TextDelta(text=answer.text[start : start + size])
        if rule.failure == "cut_off":
            return
        while rule.failure == "stall":
            await self._sleep(_STALL_SECONDS)
        for event in _ending(answer):
            yield event

    async def close(self) -> None:
        """There is nothing to close."""

    def _choose(self, situation: Situation) -> tuple[Rule, Answer | ModelError]:
        for playable in self._rules_by_agent.get(situation.request.agent_id, self._rules_for_all):
            found = playable.fit(situation)
            if found is not None:
                playable.uses += 1
                return playable.rule, playable.answer(situation, found)
        if situation.failed is not None:
            why = _excerpt(without_marks(situation.failed.content))
            text = f"[scripted model] I could not do all of it: {situation.failed.call.name} failed. {why}"
        else:
            text = f"[scripted model] No rule matches: {_excerpt(situation.last)}"
        return _NO_RULE, answer_with(situation.request, model="scripted", text=text)


class FunctionModel:
    """A `Model` that answers with what `function` returns for the request; it may raise a `ModelError`.

    An `Answer` is streamed as it is; a text gets an estimated usage. With an `account` its requests wait for their turn
    as those to a provider do.
    """

    def __init__(
        self,
        function: Callable[[ModelRequest], Answer | str],
        *,
        latency_seconds: float = 0.0,
        sleep: Sleep = asyncio.sleep,
        account: Account | None = None,
    ) -> None:
        self.account = account
        self._function = function
        self._latency_seconds = latency_seconds
        self._sleep = sleep

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self._latency_seconds:
            await self._sleep(self._latency_seconds)
        answer = self._function(request)
        if isinstance(answer, str):
            answer = answer_with(request, model="function", text=answer)
        if answer.reasoning:
            yield ReasoningDelta(text=answer.reasoning)
        if answer.text:
            yield TextDelta(text=answer.text)
        for event in _ending(answer):
            yield event

    async def close(self) -> None:
        """There is nothing to close."""


def _excerpt(text: str) -> str:
    """The start of the text, on one line, so that nothing in it can be taken for a channel's marker."""
    return " ".join(text[:_EXCERPT_CHARACTERS].split())


def _ending(answer: Answer) -> list[StreamEvent]:
    calls = [CallRequested(call=call) for call in answer.tool_calls]
    finished = Finished(usage=answer.usage, finish=answer.finish, model=answer.model, provider=answer.provider)
    return [*calls, finished]


def _rules_of(file: Path) -> tuple[Rule, ...]:
    """The rules in the file. Many agents may play one file: it is read again only when it has changed."""
    try:
        return _read_rules(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}") from error


@lru_cache(maxsize=64)
def _read_rules(file: Path, changed_at: int) -> tuple[Rule, ...]:
    del changed_at
    is_json = file.suffix.lower() == ".json"
    try:
        text = file.read_text(encoding="utf-8")
        content = json.loads(text) if is_json else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise DefinitionError(f"not valid {'JSON' if is_json else 'YAML'}: {error}") from error
    if not isinstance(content, dict) or content.keys() != {"rules"} or not isinstance(content["rules"], list):
        raise DefinitionError("expected one field, `rules`, with a list of rules")
    return tuple(checked_rule(number, rule) for number, rule in enumerate(content["rules"], start=1))


_NO_RULE = Rule()
