"""What models say in a test: answers one after another, a function, or rules."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from ai_whisperer.choices import nearest
from ai_whisperer.core.marks import without_marks
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolSpec, Usage, UserTurn
from ai_whisperer.errors import InvalidInputError, ModelError, ModelRefusedError
from ai_whisperer.models.base import Model, ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel, ScriptedModel
from ai_whisperer.models.scripted_rules import answer_with
from ai_whisperer.testing.said import Said, Word, place_of_caller
from ai_whisperer.testing.watched_tools import arguments_of

if TYPE_CHECKING:
    from ai_whisperer.testing.playback import Playback

_SHOWN_CHARACTERS = 100

Say = Callable[[ModelRequest], Word]
"""Decides what is said from what the model is asked."""

Speaker = Say | Model | str | os.PathLike[str]
"""Who speaks where nothing else was said: a function, a model, or the path of a file with rules."""


class UnsaidError(AssertionError):
    """An agent asked its model, and the test does not say what that answers."""


class MisspeltCallError(AssertionError):
    """The test lets a model call a tool in a way that cannot be meant."""


def call(name: str, /, **arguments: Any) -> Answer:
    """An answer that asks for one tool call: `call("pay", invoice="7")`."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "") -> Answer:
    """An answer that asks for several tool calls at once: `calls(("pay", {"invoice": "7"}), ("log", {}))`."""
    if not wanted:
        raise InvalidInputError("Name at least one call: calls(('pay', {'invoice': '7'})).")
    made = tuple(
        ToolCall(call_id=f"c{index}", name=name, arguments=msgspec.json.encode(arguments).decode())
        for index, (name, arguments) in enumerate(wanted)
    )
    return Answer(text=text, tool_calls=made, finish="tool_call")


class Words:
    """Makes the models of all agents of a team.

    They outlive the deaths of the process, as a provider does. A request that is repeated after one gets the answer
    that it got before.
    """

    def __init__(
        self,
        speaker: Speaker | None = None,
        *,
        latency_seconds: float = 1.0,
        may_fail: Callable[[str], bool] = lambda _: False,
        playback: Playback | None = None,
    ) -> None:
        """`may_fail` says of a tool whether its calls may be wrong. `playback` speaks where nothing was said."""
        self._may_fail = may_fail
        self._playback = playback
        self.requests: list[ModelRequest] = []
        """All that models were asked, in this order."""
        self.faults: list[Exception] = []
        """What was asked and nobody had an answer to, and what functions that answer raised."""
        self._latency_seconds = latency_seconds
        self._next: dict[str, deque[Said]] = {}
        self._given: dict[str, Word] = {}
        self._places: dict[str, str] = {}
        self._of_agent: dict[str, Model] = {}
        self._queued = FunctionModel(self._say_next, latency_seconds=latency_seconds)
        self._nobody: Model = FunctionModel(self._say_nothing)
        self._speaker: Model = self._nobody
        if speaker is not None:
            self.speak(speaker)

    def say(self, agent: str, *words: Word | Say, optional: bool = False) -> None:
        """Let the model of an agent say this next, one after another; or a function, from now on.

        What is `optional` need not be asked for.
        """
        if not words:
            raise InvalidInputError(f"Say what {agent} answers: team.says({agent!r}, 'Done.').")
        if len(words) == 1 and callable(words[0]):
            self._of_agent[agent] = self._model_of(words[0])
            return
        place = place_of_caller()
        for word in words:
            if callable(word):
                raise InvalidInputError(f"A function for {agent} decides all that it says: give it alone.")
            if not isinstance(word, str | Answer | ModelError):
                raise InvalidInputError(
                    f"{word!r:.100} is nothing that a model says. Give a text, call('tool', …), a ModelError, or a "
                    "function of the request."
                )
            said = Said(agent=agent, word=word, place=place, optional=optional)
            self._next.setdefault(agent, deque()).append(said)

    def speak(self, speaker: Speaker) -> None:
        """Let this one speak where nothing else was said; raises `DefinitionError` for rules that cannot be played."""
        self._speaker = self._model_of(speaker)

    @property
    def left(self) -> list[Said]:
        """The answers that were not asked for yet."""
        return [said for words in self._next.values() for said in words]

    def place_of(self, step_id: str) -> str | None:
        """Where the test has said what this request was answered; None if it was not said one after another."""
        return self._places.get(step_id)

    def model(self, name: str) -> Model:
        """The model of that name."""
        return _NamedModel(self, name)

    async def events(self, request: ModelRequest, model: str) -> AsyncIterator[StreamEvent]:
        """What the model of that name says."""
        self.requests.append(request)
        agent = request.agent_id
        speaker = self._of_agent.get(agent)
        if request.step_id in self._given or self._next.get(agent):
            speaker = self._queued
        if speaker is None and self._playback is not None:
            await asyncio.sleep(self._latency_seconds)
            answer = await self._playback.answer_to(request)
            if answer is None and self._speaker is self._nobody:
                answer = self._playback.real_answer(request, model)
            if answer is not None:
                speaker = FunctionModel(lambda _: answer)
        async for event in (speaker or self._speaker).stream(request):
            yield event

    def context_window(self) -> int | None:
        return None if self._playback is None else self._playback.context_window()

    def _model_of(self, speaker: Speaker) -> Model:
        if isinstance(speaker, str | os.PathLike):
            return ScriptedModel.from_file(speaker)
        if hasattr(speaker, "stream"):
            return cast("Model", speaker)
        if not callable(speaker):
            raise InvalidInputError(
                f"{speaker!r:.100} cannot speak for models. Give a function of the request, the path of a file with "
                "rules, or a model."
            )

        def say(request: ModelRequest) -> Answer | str:
            try:
                return _answered(speaker(request), request)
            except ModelError:
                raise
            except Exception as error:
                self.faults.append(error)
                raise ModelRefusedError(
                    f"What was to say the answer failed: {type(error).__name__}: {error}"
                ) from error

        return FunctionModel(say, latency_seconds=self._latency_seconds)

    def _say_next(self, request: ModelRequest) -> Answer | str:
        """The next word for the agent; the same one if this request got it before and its answer was lost."""
        word = self._given.get(request.step_id)
        if word is None:
            said = self._next[request.agent_id].popleft()
            word, self._places[request.step_id] = said.word, said.place
            if not isinstance(word, ModelError):
                self._given[request.step_id] = word
        self._check_calls(request, word)
        return _answered(word, request)

    def _check_calls(self, request: ModelRequest, word: Word) -> None:
        """A typo of the test is told to the test, and not to a model that goes on all the same."""
        specs = {spec.name: spec for spec in request.tools}
        for each in word.tool_calls if isinstance(word, Answer) else ():
            wrong = None if self._may_fail(each.name) else _wrong_with(each, specs)
            if wrong is not None:
                error = MisspeltCallError(
                    f"team.says({request.agent_id!r}, …) calls {each.name} ({self._places[request.step_id]}): {wrong} "
                    f"If the test wants that, say so before: team.lets_fail({each.name!r})."
                )
                self.faults.append(error)
                raise ModelRefusedError(str(error))

    def _say_nothing(self, request: ModelRequest) -> str:
        agent = request.agent_id
        last = next((turn.text for turn in reversed(request.turns) if isinstance(turn, UserTurn)), "")
        told = without_marks(last)[:_SHOWN_CHARACTERS]
        error = UnsaidError(
            f"{agent} asks its model (request {request.step_id}) after {told!r}, "
            f"and the test does not say what that answers. Say it before: team.says({agent!r}, 'Done.')."
        )
        self.faults.append(error)
        raise ModelRefusedError(str(error))


class _NamedModel:
    """A model that says what the words of the team are."""

    def __init__(self, words: Words, name: str) -> None:
        self._words = words
        self._name = name

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        return self._words.events(request, self._name)

    def context_window(self) -> int | None:
        return self._words.context_window()

    async def close(self) -> None:
        """It goes on in the next life of the process."""


def _answered(word: Word, request: ModelRequest) -> Answer | str:
    """The word as a model says it, with an estimate of what it used; raises it if it is an error."""
    if isinstance(word, ModelError):
        raise word
    if not isinstance(word, str | Answer):
        raise TypeError(f"{word!r:.100} is nothing that a model says: give a text, call('tool', …) or a ModelError")
    if isinstance(word, str) or word.usage != Usage():
        return word
    estimated = answer_with(request, model="test", text=word.text, reasoning=word.reasoning, tool_calls=word.tool_calls)
    return replace(word, usage=estimated.usage)


def _wrong_with(called: ToolCall, specs: Mapping[str, ToolSpec]) -> str | None:
    spec = specs.get(called.name)
    if spec is None:
        return f"the agent has no such tool{_meant(called.name, specs)} It has {_listed(specs)}."
    known, given = spec.parameters.get("properties", {}), arguments_of(called.arguments)
    unknown = [name for name in given if name not in known]
    if unknown and not spec.parameters.get("additionalProperties"):
        return f"it takes no '{unknown[0]}'{_meant(unknown[0], known)} It takes {_listed(known)}."
    missing = [name for name in spec.parameters.get("required", ()) if name not in given]
    return f"it needs {_listed(missing)}." if missing else None


def _meant(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return "." if near is None else f". Did you mean '{near}'?"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
