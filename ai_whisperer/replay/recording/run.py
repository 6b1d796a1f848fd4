"""One run of a recording: who waits for what, what is released next, and the first difference."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NoReturn, cast

from msgspec.structs import replace

from ai_whisperer.core.causal_paths import Paths
from ai_whisperer.domain.clock import TimedIds
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.note import Note
from ai_whisperer.models.base import Model, ModelFactory, ModelRequest
from ai_whisperer.replay.recording.answering import (
    Chance,
    LiveModel,
    RecordedModel,
    StandIn,
    Watched,
    actual_reply,
    actual_result,
    by_key,
    tools_for,
    window_of,
)
from ai_whisperer.replay.recording.asking import Asking, digest_of, told_tools
from ai_whisperer.replay.recording.comparing import LogComparison
from ai_whisperer.replay.recording.differences import Difference
from ai_whisperer.replay.recording.format import Asked, Entry, Input, Recording, Reply, Result
from ai_whisperer.replay.recording.format import Tool as RecordedTool
from ai_whisperer.replay.recording.inputs import CLOSE, OPEN
from ai_whisperer.replay.recording.order import RecordedOrder
from ai_whisperer.replay.recording.performing import Performance
from ai_whisperer.replay.recording.replay_store import ReplayStore
from ai_whisperer.replay.recording.requests import RequestComparison
from ai_whisperer.replay.recording.virtual_loop import SLACK_SECONDS, ReplayLoop
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.simulation.loop import VirtualClock
from ai_whisperer.store.base import Store
from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.registry import machine_tools

Event = Input | Reply | Result

_ASKED = "approval.requested"
_ENDS_SECONDS = 1.0
"""So long a call may have gone on when its task was cancelled."""


class Run:
    """Plays a recording once, within a `ReplayLoop`. Then `difference`, `entries` and `asked` are there."""

    def __init__(
        self,
        recording: Recording,
        *,
        tools: Mapping[str, Tool] | None,
        live_tools: bool,
        models: ModelFactory | None,
        ignore: frozenset[str],
        chance: random.Random,
        store: Callable[[], Awaitable[Store]] | None = None,
        at_end: Callable[[Store], Awaitable[None]] | None = None,
        adopts: bool = False,
    ) -> None:
        """`at_end` is given the store when the session was played and its process has died.

        With `adopts`, entries of the log and arguments of calls that say something else are no difference: `as_asked`
        has them as they are now. So a recording is brought in order whose texts were changed.
        """
        self._recording = recording
        self._tools = tools or {}
        self._gone = () if tools is None or "tools" in ignore else missing_tools(recording, tools)
        self._live_tools = live_tools
        self._models = models
        self._chance = chance
        self._open_store = store or partial(open_store, None)
        self._at_end = at_end
        self._waits = Chance(0)
        self._window = window_of(recording.agents)
        self._paths = Paths()
        self._asking = Asking(self._paths.causal)
        self._requests = RequestComparison(recording, ignore)
        self._replies, self._results = by_key(recording)
        self._asked_about = {each.params["approvalId"] for each in recording.entries if each.name == _ASKED}
        self._calls: dict[str, set[int]] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._heard: set[int] = set()
        self._stopped = False
        self._deaths: list[int] = []
        self.asked: dict[tuple[str, int], Asked] = {}
        self.comparison = LogComparison(recording.entries, since=recording.header.compared_from, adopts=adopts)
        self._adopts = adopts
        self._order = RecordedOrder(recording, self._paths, self.comparison, now=self._now)
        self._arguments: dict[tuple[str, int], str] = {}
        self.entries: list[Entry] = []
        self.difference: Difference | None = None
        self.steps = 0

    async def play(self) -> None:
        """Play it to its end, or to the first difference."""
        self._loop = cast(ReplayLoop, asyncio.get_running_loop())
        clock = VirtualClock(self._recording.header.began_at)
        behind = await self._open_store()
        store = ReplayStore(behind, self._told)
        tools, own = tools_for(replace(self._recording, tools=self._told_of()), self._tool)
        self._performance = Performance(
            self._recording,
            store=cast(Store, store),
            on_death=store.forget,
            tools=tools,
            agent_tools=own,
            model_factory=self._model,
            clock=clock,
            chance=self._waits,
            ids=TimedIds(clock, self._chance),
        )
        if self._models is None:
            self._loop.follow(self._order)
        if self._gone:
            self._stop(tools_gone(self._gone))
        try:
            await self._performance.open()
            for event in self._timeline():
                await self._reach(event.seq, at=self._time_of(event))
                if self.difference is not None:
                    break
                await self._do(event)
            if self.difference is None and self._recording.entries:
                last = self._recording.entries[-1]
                await self._reach(last.seq + 1, at=last.at)
            if self.difference is None and self._models is None:
                self.difference = self.comparison.missing()
        finally:
            self._stopped = True
            self._loop.follow(None)
            self._performance.end()
            await self._loop.settled()
            if self._at_end is not None and self.difference is None:
                await self._at_end(behind)
            await store.close()

    @property
    def paths(self) -> Paths:
        """The causal paths of all that has happened so far."""
        return self._paths

    def _timeline(self) -> Sequence[Event]:
        recorded = self._recording
        events: list[Event] = [*recorded.inputs]
        events += [reply for reply in recorded.replies if reply.seq]
        events += [result for result in recorded.results if result.seq]
        events.sort(key=lambda event: event.seq)
        ends = [each for each in recorded.inputs if each.call in (OPEN, CLOSE)]
        self._silent_ends = {
            each.number for each, after in pairwise(ends) if each.call == CLOSE and each.seq == after.seq
        }
        in_order = {after.seq for before, after in pairwise(ends) if before.call == CLOSE}
        self._deaths = [each.seq for each in ends if each.call == OPEN and each.seq not in in_order]
        self._deaths.append(recorded.header.last)  # what comes after it is not in the recording
        return events

    def _time_of(self, event: Event) -> float:
        """When it happened. A process that has ended in order, and told nothing of that, ended after the last entry."""
        if isinstance(event, Input) and event.call == CLOSE and event.number in self._silent_ends:
            return self._order.time_of(event.seq - 1) or event.at
        return event.at

    async def _reach(self, seq: int, *, at: float) -> None:
        """Let happen what was recorded before that number, timers too; then let it be that time.

        A timer that was due a moment before and fired later, as far as the log tells, waits.
        """
        while True:
            await self._loop.settled()
            if self.difference is not None:
                return
            untold = self.comparison.first_untold if self._models is None else 0
            by = min(self._order.time_of(untold) or at, at) if untold < seq else at
            if self._models is not None or untold < seq:
                goes_on = (
                    self._loop.run_soon()
                    or self._loop.fire_next(until=by + SLACK_SECONDS)
                    or self._loop.run_first()
                    or self._loop.fire_next(until=at + SLACK_SECONDS)
                )
            else:
                goes_on = at > self._loop.time() and (
                    self._loop.run_soon() or self._loop.fire_next(until=at - SLACK_SECONDS)
                )
            if not goes_on:
                break
        self._loop.jump_to(at)

    async def _do(self, event: Event) -> None:
        if not isinstance(event, Input):
            while _name(event) not in self._waiting and (self._loop.run_soon() or self._loop.run_first()):
                await self._loop.settled()
            self._release(event)
        elif event.call == CLOSE:
            self._performance.begin_close()
        elif event.call == OPEN:
            if self.comparison.first_untold < event.seq or self._models is not None:
                await self._performance.closed()
            self._performance.kill()
            await self._loop.settled()
            self._paths.input = event.number
            await self._performance.open()
        else:
            self._paths.input = event.number
            self._performance.begin(event, self._paths.actual_data(event.arguments))
        await self._loop.settled()
        refused = self._performance.refusal(self._heard)
        if refused is not None and self._models is None:
            self._stop(refused)

    def _release(self, event: Reply | Result) -> None:
        """Hand what was recorded to whoever waits for it."""
        waiter = self._waiting.pop(_name(event), None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        elif self._models is None and event.seq >= self._recording.header.compared_from:
            what = "a model request" if isinstance(event, Reply) else f"a call of {event.tool}"
            self._stop(
                Difference(
                    kind="missing",
                    place=event.key,
                    what=f"{what} was recorded (entry {event.seq} of the log) and is not made now.",
                    key=event.key,
                    seq=event.seq,
                )
            )

    def _told(self, notes: Sequence[Note]) -> None:
        """What was just committed. It is heard before anybody who waited for the commit goes on."""
        for note in notes:
            params = note.told.params()
            self._paths.feed(note.name, note.cause, params)
            causal = self._paths.causal_data(params)
            at = round(note.at - self._recording.header.began_at, 6)
            cause = self._paths.causal(note.cause)
            if cause.partition(":")[0] in ("user", "request"):
                cause = f"input:{self._paths.input}"
                self._heard.add(self._paths.input)
            self.entries.append(Entry(seq=note.seq, at=at, name=note.name, cause=cause, params=causal))
            if self._models is None and self.difference is None and not self._stopped:
                difference = self.comparison.take(note.name, causal)
                if difference is not None:
                    self._stop(difference)
                if self._deaths and self.comparison.first_untold > self._deaths[0]:
                    del self._deaths[0]
                    self._performance.kill()  # here the process died: what follows from it never happened

    def _stop(self, difference: Difference) -> None:
        if self.difference is None and not self._stopped:
            self.difference = difference

    def _now(self) -> float:
        return self._loop.time()

    def causal(self, text: str) -> str:
        return self._paths.causal(text)

    async def reply_to(self, request: ModelRequest, model: str = "") -> Reply:
        """What was recorded for the request, when its time has come."""
        key = self._paths.key(request.step_id)
        asked = replace(self._asking.digests(request, key=key), model=self._asking.named(model))
        self.asked[key, request.attempt] = asked
        self.steps += 1
        place = self._requests.place(key, self._paths.place(request.step_id))
        recorded = self._replies.get((key, request.attempt))
        if recorded is None:
            self._stop(Difference(kind="request", place=place, what="is asked now and was not recorded.", key=key))
            await self._never()
        difference = self._requests.compare(recorded, asked, self._asking.bodies, place=place)
        if difference is not None:
            self._stop(difference)
        if recorded.interrupted or difference is not None:
            await self._never()
        await self._turn(_name(recorded))
        return actual_reply(recorded, self._paths.actual)

    async def result_of(self, tool: Tool, arguments: str, context: ToolContext) -> ToolResult:
        """What was recorded for the call, when its time has come; or what it brings for real."""
        key = self._paths.key(context.step_id)
        self.steps += 1
        place = f"{self._paths.place(context.step_id)}, call of {tool.name}"
        number = self._call_of(key)
        if number is None:
            self._stop(Difference(kind="call", place=place, what="is made now and was not recorded.", key=key))
            await self._never()
        recorded = self._results[key][number]
        causal = self._paths.causal(arguments)
        if self._adopts:
            recorded = replace(recorded, arguments=digest_of(causal))
            self._arguments[key, number] = recorded.arguments
        if (recorded.tool, recorded.arguments) != (tool.name, digest_of(causal)):
            what = f"was recorded as a call of {recorded.tool}" if recorded.tool != tool.name else "has other arguments"
            self._stop(Difference(kind="call", place=place, what=f"{what}: now {causal}", key=key, seq=recorded.seq))
            await self._never()
        brought = recorded.result
        if self._live_tools:
            with self._loop.for_real():
                brought = await tool.call(arguments, context)
        elif brought is not None:
            brought = actual_result(brought, self._paths.actual)
        if brought is None or not recorded.seq:
            await self._never()
        try:
            await self._turn(_name(recorded))
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or not 0 <= recorded.at - self._loop.time() < _ENDS_SECONDS:
                raise
            current.uncancel()  # as it was then: a call that cannot be cut off is waited for, and its result counts
        return brought

    def _call_of(self, key: str) -> int | None:
        """Which of the calls of a step is made now: the one that ends in this process, else one that had no end."""
        made = self._calls.setdefault(key, set())
        left = [number for number in range(len(self._results.get(key, ()))) if number not in made]
        ends = (number for number in left if self._results[key][number].seq)
        found = next((number for number in ends if self._results[key][number].seq <= self._order.end()), None)
        if found is None:
            found = next((number for number in left if not self._results[key][number].seq), None)
        if found is not None:
            made.add(found)
        return found

    async def _turn(self, name: str) -> None:
        waiter = self._waiting[name] = self._loop.create_future()
        try:
            await waiter
        finally:
            if self._waiting.get(name) is waiter:
                del self._waiting[name]

    async def _never(self) -> NoReturn:
        """Wait until the run is over."""
        while True:
            await self._loop.create_future()

    def _model(self, name: str) -> Model:
        if self._models is not None:
            return LiveModel(self._models(name), self._loop.for_real)
        return RecordedModel(_Asker(self, name), self._waits, window=self._window)

    def _tool(self, recorded: RecordedTool) -> Tool:
        tool = self._tools.get(recorded.name)
        if self._live_tools and tool is not None:
            return Watched(tool, recorded, self, was_asked=self._was_asked)
        return StandIn(recorded, self, tool if recorded.spec is not None else None, was_asked=self._was_asked)

    def _was_asked(self, step_id: str) -> bool | None:
        """Not what an agent is decides that, but the log: it may have become more careful since, or be of a fork."""
        is_asked = self._paths.causal(step_id) in self._asked_about
        return is_asked if is_asked or self._paths.key(step_id) in self._results else None

    def _told_of(self) -> tuple[RecordedTool, ...]:
        """The tools of the recording, and those that are new: agents that may use all tools are told of them."""
        known = {tool.name for tool in self._recording.tools}
        new = (tool for tool in self._tools.values() if tool.name not in known)
        return (*self._recording.tools, *(RecordedTool(name=tool.name, spec=tool.spec) for tool in new))

    def _as_told(self, recorded: RecordedTool) -> RecordedTool:
        """The tool as models are told of it now."""
        tool = self._tools.get(recorded.name)
        if tool is None or recorded.spec is None:
            return recorded
        return replace(recorded, spec=tool.spec, digest=digest_of(told_tools((tool.spec,))))

    def as_asked(self) -> Recording:
        """The recording with what is asked and told now."""
        replies = tuple(
            replace(reply, asked=self.asked.get((reply.key, reply.attempt), reply.asked))
            for reply in self._recording.replies
        )
        used = {digest for reply in replies if reply.asked is not None for digest in _digests(reply.asked)}
        bodies = {**self._recording.bodies, **self._asking.bodies}
        return replace(
            self._recording,
            tools=tuple(sorted((self._as_told(tool) for tool in self._told_of()), key=lambda tool: tool.name)),
            replies=replies,
            results=tuple(self._as_called()),
            entries=tuple(
                replace(each, params=self.comparison.adopted.get(each.seq, each.params))
                for each in self._recording.entries
            ),
            bodies={digest: bodies[digest] for digest in used if digest in bodies},
        )

    def _as_called(self) -> Iterator[Result]:
        made: Counter[str] = Counter()
        for result in self._recording.results:
            arguments = self._arguments.get((result.key, made[result.key]), result.arguments)
            made[result.key] += 1
            yield replace(result, arguments=arguments)


class _Asker:
    """A run, asked by the model of this name."""

    def __init__(self, run: Run, model: str) -> None:
        self._run = run
        self._model = model
        self.causal = run.causal
        self.result_of = run.result_of

    async def reply_to(self, request: ModelRequest) -> Reply:
        return await self._run.reply_to(request, self._model)


def missing_tools(recording: Recording, tools: Iterable[str]) -> tuple[str, ...]:
    """The tools of the recording that are not among these, of those that models were told of."""
    told = {tool.name for tool in recording.tools if tool.spec is not None}
    return tuple(sorted(told.difference(tools) - machine_tools().keys()))


def tools_gone(names: Sequence[str]) -> Difference:
    told = f"was recorded and is not there now: {', '.join(names)}. Provide it again, record the session again, "
    return Difference(kind="tool", place="the tools", what=f"{told}or do not compare tools (--ignore tools).")


def _digests(asked: Asked) -> tuple[str, ...]:
    return (asked.system, asked.tools, asked.settings, asked.model, *asked.turns)


def _name(event: Reply | Result) -> str:
    return f"{event.key}#{event.attempt}" if isinstance(event, Reply) else event.key
