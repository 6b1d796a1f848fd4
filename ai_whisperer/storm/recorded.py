"""A team from a recording: people do what they did, models and tools answer what they answered, by the key of the step.

A key is a causal path, so that it is the same in a universe where everything comes in another order. What a universe
asks for that was never recorded gets an answer that says so, and ends the task: it is no finding by itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from ai_whisperer.core.causal_paths import Paths
from ai_whisperer.domain.conversation import Answer, ToolResult
from ai_whisperer.errors import ConflictError, NotFoundError, RecordingError, StormError, WhispererError
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.replay.recording.answering import (
    Chance,
    StandIn,
    actual_reply,
    actual_result,
    error_of,
    events_of,
    tools_for,
    window_of,
)
from ai_whisperer.replay.recording.asking import digest_of
from ai_whisperer.replay.recording.files import read_recording
from ai_whisperer.replay.recording.format import Input, Recording, Reply, Result
from ai_whisperer.replay.recording.inputs import CLOSE, OPEN
from ai_whisperer.replay.recording.performing import CALLS, RecordedTemplates, make, stated_limits
from ai_whisperer.storm.invariants import Invariant, check_names
from ai_whisperer.storm.people import People
from ai_whisperer.storm.process import Setting, UniverseProcess
from ai_whisperer.storm.team import StormTeam
from ai_whisperer.storm.team_file import invariants_of
from ai_whisperer.tools.function import Tool, ToolContext

_NOT_RECORDED = "Nothing was recorded for this: the universe went another way."
_WAITS_LONG = "acquire_lock"


class RecordedTeam:
    """The team of a recording, with the invariants of other files."""

    def __init__(self, path: Path, *, invariants: tuple[Path, ...] = ()) -> None:
        """Raises `RecordingError` or `StormError` if it cannot be played."""
        self.path = path
        self.invariants = invariants
        self._recording = read_recording(path)
        unknown = [each for each in self._recording.inputs if each.call not in {*CALLS, CLOSE, OPEN}]
        if unknown:
            raise RecordingError(
                f"Input {unknown[0].number} of {path} calls '{unknown[0].call}', which this AI Whisperer does not know."
            )
        if not self._recording.replies:
            raise StormError(f"{path}: no model was asked in this recording, so there is nothing to put into a storm.")
        self._known = Known(self._recording)
        self.team()

    def team(self) -> StormTeam:
        memory = Memory(self._known)
        shared, of_agents = tools_for(self._recording, lambda recorded: StandIn(recorded, memory))
        people = RecordedPeople(self._recording, memory)
        return StormTeam(
            people=people.play,
            setting=Setting(
                model=RecordedModel(memory),
                tools=shared,
                agent_tools=of_agents,
                more={"templates": RecordedTemplates(self._recording), "limits": stated_limits(self._recording)},
            ),
            invariants=self._invariants(),
        )

    def _invariants(self) -> list[Invariant]:
        paths = {path.resolve(): path for path in self.invariants}
        found = [each for path in paths.values() for each in invariants_of(path)]
        check_names(found)
        return found


class Known:
    """What a recording has by the keys of steps, and how long each took."""

    def __init__(self, recording: Recording) -> None:
        self.window = window_of(recording.agents)
        self.replies: dict[str, list[Reply]] = defaultdict(list)
        self.results: dict[str, list[Result]] = defaultdict(list)
        self.alike: dict[tuple[str, str], Result] = {}
        for reply in recording.replies:
            if not reply.interrupted:
                self.replies[reply.key].append(reply)
        for result in recording.results:
            self.results[result.key].append(result)
            if result.result is not None:
                self.alike.setdefault((result.tool, result.arguments), result)
        self._begun = _beginnings(recording)

    def seconds(self, key: str, at: float) -> float:
        """How long it took until then."""
        begun = self._begun.get(key)
        return 0.0 if begun is None else max(at - begun, 0.0)


def _beginnings(recording: Recording) -> Mapping[str, float]:
    """By key, when the step was begun first."""
    paths, begun = Paths(), dict[str, float]()
    for entry in recording.entries:
        cause = entry.cause
        if cause.startswith("input:"):
            paths.input, cause = int(cause.removeprefix("input:")), "user:user"
        paths.feed(entry.name, cause, entry.params)
        if entry.name == "step.started":
            begun.setdefault(paths.key(entry.params["stepId"]), entry.at)
    return begun


class Memory:
    """What of the recording a universe has used up, and which of its ids stand for which recorded ones."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.paths = Paths()
        self.process: UniverseProcess | None = None
        self._fed = 0
        self._called: dict[str, int] = defaultdict(int)

    async def learn(self) -> None:
        """Take up what the log has told since."""
        if self.process is None:
            return
        for entry in await self.process.entries(after=self._fed):
            if entry.seq > self._fed:  # another may have been here meanwhile
                self.paths.feed(entry.name, entry.cause, entry.params)
                self._fed = entry.seq

    def causal(self, text: str) -> str:
        return self.paths.causal(text)

    async def reply_to(self, request: ModelRequest) -> Reply:
        """What was recorded for the attempt, or else for the last one."""
        await self.learn()
        key = self.paths.key(request.step_id)
        known = self.known.replies.get(key)
        if not known:
            return Reply(key=key, seq=0, at=0.0, answer=Answer(text=_NOT_RECORDED))
        reply = next((each for each in known if each.attempt == request.attempt), known[-1])
        await asyncio.sleep(self.known.seconds(key, reply.at) if reply is known[0] else 0.0)
        return actual_reply(reply, self.paths.actual)

    async def result_of(self, tool: Tool, arguments: str, context: ToolContext) -> ToolResult:
        """What was recorded for the call; or for one like it, if it has another place in this universe."""
        await self.learn()
        key = self.paths.key(context.step_id)
        asked = (tool.name, digest_of(self.causal(arguments)))
        known = [each for each in self.known.results.get(key, ()) if (each.tool, each.arguments) == asked]
        number, self._called[key] = self._called[key], self._called[key] + 1
        result = known[min(number, len(known) - 1)] if known else None
        if result is None or result.result is None:
            result = self.known.alike.get(asked)
        if result is None or result.result is None:
            return ToolResult(content=_NOT_RECORDED, is_error=True)
        await asyncio.sleep(self.known.seconds(result.key, result.at))
        return actual_result(result.result, self.paths.actual)


class RecordedModel:
    """A model that says what was recorded, as long after it was asked."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        reply = await self._memory.reply_to(request)
        if reply.error is not None:
            raise error_of(reply, Chance(0))
        for event in events_of(reply.answer or Answer(text=_NOT_RECORDED)):
            yield event

    def context_window(self) -> int:
        return self._memory.known.window

    async def close(self) -> None:
        """It goes on in the next life of the process."""


class RecordedPeople:
    """Who made the inputs of a recording: at their times, and as soon as there is what they reacted to."""

    def __init__(self, recording: Recording, memory: Memory) -> None:
        self._recording = recording
        self._memory = memory
        self._definitions = {agent.id: agent.definition for agent in recording.agents}

    def play(self, process: UniverseProcess) -> None:
        self._memory.process = process
        people = People(process)
        people.insist(self._memory.learn)
        for made in self._recording.inputs:
            if made.call == OPEN:  # it was started again: here it dies for that, whether it ended in order or not
                _until(process, made.at)
                process.kill()
                process.start_again()
            if made.call in (OPEN, CLOSE):
                continue
            again = _Again()
            people.insist(lambda made=made, again=again: self._make(people, process, made, again))  # type: ignore[misc]
        people.come_to_rest()

    async def _make(self, people: People, process: UniverseProcess, made: Input, again: _Again) -> None:
        injection = process.injection
        await asyncio.sleep(max(made.at - process.elapsed(), 0.0))
        if not again.is_set:
            await injection.act()
        was_tried, again.is_set = again.is_set, True
        await self._memory.learn()
        self._memory.paths.input = made.number
        refusal = ""

        async def is_made() -> bool:
            nonlocal refusal
            try:
                await self._call(process, made)
            except (NotFoundError, ConflictError) as error:
                refusal = error.message
                return was_tried and isinstance(error, ConflictError)  # it was done before the process died
            return True

        try:
            if not await people.until(is_made):
                injection.seen.unmet.append(f"input {made.number} ({made.call}): {refusal}")
        except WhispererError as error:
            injection.seen.unmet.append(f"input {made.number} ({made.call}): {error.message}")
        await self._memory.learn()

    async def _call(self, process: UniverseProcess, made: Input) -> None:
        await self._memory.learn()
        arguments: dict[str, Any] = self._memory.paths.actual_data(made.arguments)
        work = make(made, arguments, session=process.session, definitions=self._definitions)
        if made.call == _WAITS_LONG:
            waiting = asyncio.ensure_future(work)
            await asyncio.wait([waiting], timeout=0.1)
            if waiting.done():
                waiting.result()
            return
        done = await work
        seen = process.injection.seen
        if made.call == "send_task":
            seen.accepted_tasks.append(done.id)
        elif made.call in ("send_mail", "reply_mail"):
            seen.accepted_mails.append(done.id)


class _Again:
    """Whether an input was tried before."""

    is_set = False


def _until(process: UniverseProcess, at: float) -> None:
    """Let time pass, and whatever happens meanwhile happen; a process that dies is started again."""
    People(process).insist(lambda: asyncio.sleep(max(at - process.elapsed(), 0.0)))
