"""A recording behind a team: it answers for models and tools, and what is not in it is asked for real if it may be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import cast

from ai_whisperer.choices import nearest
from ai_whisperer.domain.conversation import Answer, ToolResult
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import (
    InvalidInputError,
    ModelRefusedError,
    RecordingError,
    ToolError,
)
from ai_whisperer.models.base import ModelFactory, ModelRequest
from ai_whisperer.models.catalog import resolve
from ai_whisperer.replay.recording import UNPLAYED, Ignored, Recording, Scrub, read_recording, record, write_recording
from ai_whisperer.replay.recording.answering import (
    Chance,
    Prompter,
    StandIn,
    actual_reply,
    actual_result,
    by_key,
    error_of,
)
from ai_whisperer.replay.recording.asking import Asking, digest_of
from ai_whisperer.replay.recording.differences import Difference
from ai_whisperer.replay.recording.format import FORMAT, Header, Reply, Result
from ai_whisperer.replay.recording.requests import RequestComparison
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.secrets import redactor
from ai_whisperer.testing.aligning import Alignment
from ai_whisperer.testing.hearing import params_of
from ai_whisperer.testing.real_calls import RealCalls
from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.registry import machine_tools

_NOTHING = Recording(header=Header(format=FORMAT, version="", session="", last=0, began_at=0.0))


class Mode(StrEnum):
    """What is asked for real: `none`, nothing; `once`, all if there is no recording yet; `new`, what is not in it;
    `all`, everything, for a recording that takes the place of the one that is there.
    """

    NONE = "none"
    ONCE = "once"
    NEW = "new"
    ALL = "all"


Writers = dict[Path, str]
"""By path, the test that has made a recording in this run."""


class NotRecordedError(AssertionError):
    """Something is asked that is not in the recording, and nothing may be asked for real."""


def checked_mode(given: str) -> Mode:
    """The mode of that name; raises `InvalidInputError` with those that there are."""
    try:
        return Mode(given)
    except ValueError:
        near = nearest(given, list(Mode)) if isinstance(given, str) else None
        meant = "" if near is None else f" Did you mean '{near}'?"
        raise InvalidInputError(f"{given!r} is no mode of recordings.{meant} There are: {', '.join(Mode)}.") from None


class Playback:
    """Answers for models and tools from a recording. It outlives the deaths of the process."""

    def __init__(
        self,
        path: Path,
        mode: str = Mode.NONE,
        *,
        models: ModelFactory = resolve,
        ignore: Iterable[Ignored] = (),
        scrub: Scrub | None = None,
        writers: Writers | None = None,
        test: str = "",
    ) -> None:
        """`models` are asked for real where the mode lets them. What of requests is in `ignore` is not compared.

        What one of the `writers` of this run has recorded is only played by others: `test` is the name of this one.
        Raises `RecordingError` if there is no recording and none may be made, or if it cannot be read, and
        `InvalidInputError` for what cannot be meant.
        """
        if scrub is not None and not callable(scrub):
            raise InvalidInputError(f"scrub must be a function that is given each text, not {scrub!r:.60}.")
        self.path = path
        chosen = checked_mode(mode)
        is_there = path.exists()
        self._writers = {} if writers is None else writers
        self._test = test
        self._writer = self._writers.get(path.resolve())
        if self._writer is not None:
            chosen = Mode.NONE
        if chosen is Mode.NONE and not is_there:
            raise RecordingError(
                f"There is no recording '{path}', and nothing may be asked for real. Record it: --recordings=once, or "
                "mode='once' in the marker."
            )
        self._may_ask = chosen in (Mode.NEW, Mode.ALL) or (chosen is Mode.ONCE and not is_there)
        self._scrub = scrub
        self._redact = redactor()
        self._real = RealCalls(models)
        self._fed = 0
        self._calls: Counter[str] = Counter()
        recording = read_recording(path) if is_there and chosen is not Mode.ALL else _NOTHING
        self.recording = recording
        self._replies: dict[str, list[Reply]] = {}
        for reply in recording.replies:
            self._replies.setdefault(reply.key, []).append(reply)
        _, self._results = by_key(recording)
        self._alignment = Alignment(recording)
        self._asking = Asking(self.causal)
        self._comparison = RequestComparison(recording, frozenset([ignore] if isinstance(ignore, str) else ignore))
        self.faults: list[Exception] = []
        """What was asked that is not in the recording as it is asked now."""
        self.asked_for_real = 0
        """How many requests and calls were made for real."""

    def feed(self, notes: Iterable[Note | Notification]) -> None:
        """Take what was told of the session; what was taken before is left out."""
        for note in notes:
            if note.seq > self._fed:
                self._fed = note.seq
                self._alignment.feed(note.name, note.cause, params_of(note))

    def context_window(self) -> int | None:
        """How many tokens models take, as far as the recording tells."""
        known = [agent.context_window for agent in self.recording.agents if agent.context_window is not None]
        return min(known, default=None)

    async def answer_to(self, request: ModelRequest) -> Answer | None:
        """What was recorded for the request; None if it is to be asked for real. Raises a `ModelError`."""
        reply, difference = self._recorded_reply(request)
        if difference is not None:
            if not self._may_ask:
                raise ModelRefusedError(str(self._fault(difference)))
            self.asked_for_real += 1
            return None
        if reply is None or reply.interrupted:
            await _never()
            return Answer()
        if reply.error is not None:
            raise error_of(reply, Chance(0))
        return actual_reply(reply, self._alignment.actual).answer or Answer()

    def real_answer(self, request: ModelRequest, model: str) -> Answer:
        """What the model of that name says for real, in real time; raises a `ModelError`."""
        return self._real.answer(model, request)

    async def result_of(
        self, tool: Tool, arguments: str, context: ToolContext, *, on_run: Callable[[], None] = lambda: None
    ) -> ToolResult:
        """What was recorded for the call; or what it brings for real, and `on_run` is called before."""
        result, difference = self._recorded_result(tool, arguments, context)
        if difference is not None:
            if not self._may_ask:
                raise ToolError(str(self._fault(difference)))
            self.asked_for_real += 1
            if isinstance(tool, StandIn):
                raise ToolError(f"There are no programs and no network in virtual time: {tool.name} was not called.")
            on_run()
            if tool.callee.is_async and not tool.takes_context:
                return self._real.run(tool.call(arguments, context))
            return await tool.call(arguments, context)
        if result is None or result.result is None:
            await _never()  # the process died in the call
            return ToolResult(content="")
        return actual_result(result.result, self._alignment.actual)

    def stand_ins(self, provided: Container[str]) -> list[Tool]:
        """What was recorded of built-in tools that reach the machine: they cannot be used in virtual time."""
        machine = machine_tools()
        recorded = (tool for tool in self.recording.tools if tool.name in machine and tool.name not in provided)
        prompter = cast("Prompter", self)  # of which tools need no more than there is
        return [StandIn(tool, prompter, machine[tool.name]) for tool in recorded]

    def causal(self, text: str) -> str:
        """The text as it would stand in the recording."""
        return self._clean(self._alignment.recorded(text))

    def keep(self, folder: Path, tools: Iterable[Tool], *, session_id: str) -> None:
        """Write the recording of the session in a folder, if something in it is new; raises `RecordingError`.

        One that does not play as it was takes the place of no other.
        """
        if self.asked_for_real:
            taken = asyncio.run(_taken(folder, tools, session_id, self._scrub))
            unplayed = next((note for note in taken.header.notes if note.startswith(UNPLAYED)), None)
            if unplayed is not None and self.path.exists():
                raise RecordingError(
                    f"The recording '{self.path}' stays as it was, and the new one was not written. {unplayed} Let the "
                    "test do nothing that is another thing each time; or delete the file first, and record it again."
                )
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_recording(taken, self.path)
            self._writers[self.path.resolve()] = self._test

    def close(self) -> None:
        self._real.close()

    def _recorded_reply(self, request: ModelRequest) -> tuple[Reply | None, Difference | None]:
        """What was recorded for the request, or in what it differs."""
        key, place = self._alignment.key(request.step_id), self._alignment.place(request.step_id)
        reply = None if key is None else _reply_among(self._replies.get(key, []), request.attempt)
        if key is None or reply is None:
            place = self._comparison.place(request.step_id.replace(".", "/", 1), place)
            return None, Difference(kind="request", place=place, what="is asked now and was not recorded.")
        asked = self._asking.digests(request, key=key)
        place = self._comparison.place(key, place)
        return reply, self._comparison.compare(reply, asked, self._asking.bodies, place=place)

    def _recorded_result(
        self, tool: Tool, arguments: str, context: ToolContext
    ) -> tuple[Result | None, Difference | None]:
        key, written = self._alignment.key(context.step_id), self.causal(arguments)
        known = [] if key is None else self._results.get(key, [])
        number = self._calls[context.step_id]
        self._calls[context.step_id] += 1
        what = f"is made now and was not recorded: {written}"
        if known:
            result = known[min(number, len(known) - 1)]
            if (result.tool, result.arguments) == (tool.name, digest_of(written)):
                return result, None
            other = "has other arguments" if result.tool == tool.name else f"was recorded as a call of {result.tool}"
            what = f"{other}: now {written}"
        place = f"{self._alignment.place(context.step_id)}, call of {tool.name}"
        return None, Difference(kind="call", place=place, what=what)

    def _fault(self, difference: Difference) -> NotRecordedError:
        if self._writer is None:
            advice = (
                "If it is to be so, record it: --recordings=new for what is missing or has changed, --recordings=all "
                "for everything."
            )
        else:
            advice = (
                f"It was recorded in this run, by {self._writer}, and has the session of one test: give this one a "
                "recording of its own, with another path in the marker."
            )
        fault = NotRecordedError(f"{difference.sentence} (in {self.path.name}) {advice}\n{difference.diff}".rstrip())
        self.faults.append(fault)
        return fault

    def _clean(self, text: str) -> str:
        text = self._redact(text)
        return text if self._scrub is None else self._scrub(text)


def _reply_among(replies: Sequence[Reply], attempt: int) -> Reply | None:
    """That to the attempt; what was cut off then need not be now, so in its place the next that was not."""
    whole = [reply for reply in replies if not reply.interrupted]
    following = [reply for reply in whole if reply.attempt >= attempt]
    return next(iter(following or whole[-1:] or replies[-1:]), None)


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


async def _taken(folder: Path, tools: Iterable[Tool], session_id: str, scrub: Scrub | None) -> Recording:
    store = await open_store(folder)
    try:
        return await record(store, session_id, tools=tools, scrub=scrub)
    finally:
        await store.close()
