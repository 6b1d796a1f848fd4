"""Lets the faults of a schedule happen at their moments: in models, in tools, on the disk, and among people."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.errors import (
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    WhispererError,
)
from ai_whisperer.models.base import Finished, Model, ModelRequest, StreamEvent
from ai_whisperer.storm.choosing import Shape
from ai_whisperer.storm.faults import (
    AnyFault,
    FailedModel,
    Interleaving,
    Kill,
    KillMoment,
    LatePerson,
    ModelFailure,
    Schedule,
    SlowCommit,
    SlowModel,
    SlowTool,
)
from ai_whisperer.storm.invariants import line_in
from ai_whisperer.storm.log import Request, Seen, ToolFailure, UniverseRun, parsed
from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.wrapping import WrappedTool

_SLOWEST_COMMIT_SECONDS = 0.02
_REFUSING_SECONDS = 0.05

MOST_ROUNDS = 300_000
"""So many rounds of the event loop a universe may take; the teams of the guide take less than a thousand."""

Key = tuple[str, str, int]


class Order:
    """Decides by its seed what comes first, as long as it has choices left."""

    def __init__(self, interleaving: Interleaving) -> None:
        self.made = 0
        """How many choices there were."""
        self.rounds = 0
        """How many rounds the event loops of the universe have had."""
        self.most_rounds = MOST_ROUNDS
        self._random = None if interleaving.is_plain else random.Random(f"order {interleaving.seed}")  # noqa: S311
        self._most = interleaving.choices

    def _chance(self) -> random.Random | None:
        self.made += 1
        if self._random is not None and self._most is not None and self.made > self._most:
            self._random = None
        return self._random

    def mix(self, ready: list[asyncio.Handle]) -> list[asyncio.Handle]:
        chance = self._chance()
        if chance is not None:
            chance.shuffle(ready)
        return ready

    def commit_seconds(self) -> float:
        chance = self._chance()
        return 0.0 if chance is None else chance.random() * _SLOWEST_COMMIT_SECONDS


class Injection:
    """Counts what happens, and says which faults are due. It outlives the deaths of the process."""

    def __init__(self, schedule: Schedule, *, die: Callable[[Kill], None], now: Callable[[], float]) -> None:
        """`die` ends the process from within; `now` is the time since the universe began."""
        self.order = Order(schedule.interleaving)
        self.seen = Seen()
        self.happened: list[AnyFault] = []
        self._die = die
        self._now = now
        self._counts: Counter[tuple[str, str]] = Counter()
        self._due: dict[Key, list[AnyFault]] = defaultdict(list)
        for fault in schedule.faults:
            self._due[_key_of(fault)].append(fault)

    @property
    def shape(self) -> Shape:
        """What there was that a fault can hit."""
        counted = self._counts.items()
        return Shape(
            requests={of: count for (what, of), count in counted if what == "request"},
            calls={of: count for (what, of), count in counted if what == "call"},
            commits=self._counts["commit", ""],
            acts=self._counts["act", ""],
        )

    def next(self, what: str, of: str = "") -> list[AnyFault]:
        """Count one more, and return the faults that are due with it."""
        self._counts[what, of] += 1
        due = self._due.get((what, of, self._counts[what, of]))
        if due is None:
            return []
        self.happened += [fault for fault in due if not isinstance(fault, Kill)]
        return due

    def kills(self, due: Iterable[AnyFault], moment: KillMoment) -> bool:
        """Whether the process has died now."""
        for fault in due:
            if isinstance(fault, Kill) and fault.moment is moment:
                self.happened.append(fault)
                self._die(fault)
                return True
        return False

    async def kill(self, due: Iterable[AnyFault], moment: KillMoment) -> None:
        """Does not return if the process dies here."""
        if self.kills(due, moment):
            await asyncio.get_running_loop().create_future()

    def now(self) -> float:
        return self._now()

    async def act(self) -> None:
        """People are about to do something."""
        for fault in self.next("act"):
            if isinstance(fault, LatePerson):
                await asyncio.sleep(fault.seconds)


class FaultyModel:
    """A model to which the faults of the schedule happen."""

    def __init__(self, inner: Model, injection: Injection) -> None:
        self._inner = inner
        self._injection = injection

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        injection = self._injection
        due = injection.next("request", request.agent_id)
        asked = Request(agent=request.agent_id, step_id=request.step_id, at=injection.now())
        injection.seen.requests.append(asked)
        if not due:
            async for event in self._inner.stream(request):
                yield event
            return
        await injection.kill(due, KillMoment.MODEL_ASKED)
        is_cut = False
        for fault in due:
            if isinstance(fault, SlowModel):
                await asyncio.sleep(fault.seconds)
            elif isinstance(fault, FailedModel):
                is_cut = fault.failure is ModelFailure.CUT_OFF
                if not is_cut:
                    await asyncio.sleep(_REFUSING_SECONDS)
                    raise _ERRORS[fault.failure]()
        async for event in self._inner.stream(request):
            if isinstance(event, Finished):
                await injection.kill(due, KillMoment.MODEL_ANSWERED)
            yield event
            if is_cut:
                return

    def context_window(self) -> int | None:
        """How many tokens the model takes, if it says so."""
        window: Callable[[], int | None] | None = getattr(self._inner, "context_window", None)
        return None if window is None else window()

    async def close(self) -> None:
        """It goes on in the next life of the process, as a provider does."""


class FaultyTool(WrappedTool):
    """Like the tool that it stands for, with the faults of the schedule; it notes each time that the function runs."""

    __slots__ = ("_injection",)

    def __init__(self, inner: Tool, injection: Injection) -> None:
        super().__init__(inner)
        self._injection = injection

    async def call(self, arguments: str, context: ToolContext) -> ToolResult:
        injection = self._injection
        due = injection.next("call", self.name)
        await injection.kill(due, KillMoment.TOOL_BEGAN)
        slow = [fault for fault in due if isinstance(fault, SlowTool)]
        for fault in slow:
            if fault.before_seconds:
                await asyncio.sleep(fault.before_seconds)
        runs = injection.seen.runs
        at = len(runs)
        runs.append(
            UniverseRun(
                agent=context.agent_id,
                tool=self.name,
                arguments=parsed(arguments),
                task_id=context.task_id,
                step_id=context.step_id,
                began_at=injection.now(),
                may_repeat=self.inner.may_repeat(arguments),
            )
        )
        try:
            result = await self.inner.call(arguments, context)
        except Exception as error:
            told = f"{self.name} raised {type(error).__name__}: {error}{_place(self.inner, error)}"
            injection.seen.tool_failures.append(ToolFailure(told=told, meant=isinstance(error, WhispererError)))
            raise
        finally:
            runs[at] = replace(runs[at], ended_at=injection.now())
        await injection.kill(due, KillMoment.TOOL_ENDED)
        for fault in slow:
            if fault.after_seconds:
                await asyncio.sleep(fault.after_seconds)
        return result


def _place(tool: Tool, error: Exception) -> str:
    """The line of the tool's own file in which it was raised."""
    code = getattr(inspect.unwrap(tool.function), "__code__", None)
    line = "" if code is None else line_in(code.co_filename, error)
    return "" if code is None or not line else f" ({Path(code.co_filename).name}, {line.strip(' ()')})"


class FaultyPace:
    """A disk that takes its time, and on which the process dies."""

    def __init__(self, injection: Injection) -> None:
        self._injection = injection
        self._due: list[AnyFault] = []

    def seconds_before(self) -> float:
        self._due = self._injection.next("commit")
        slow = sum(fault.seconds for fault in self._due if isinstance(fault, SlowCommit))
        return slow + self._injection.order.commit_seconds()

    def committing(self) -> None:
        self._injection.kills(self._due, KillMoment.BEFORE_COMMIT)

    def committed(self) -> None:
        self._injection.kills(self._due, KillMoment.AFTER_COMMIT)

    def seconds_after(self) -> float:
        return self._injection.order.commit_seconds()


_ERRORS: Mapping[ModelFailure, Callable[[], ModelError]] = {
    ModelFailure.RATE_LIMIT: lambda: ModelRateLimitError("Too many requests (status 429)."),
    ModelFailure.UNAVAILABLE: lambda: ModelUnavailableError("The provider is down (status 503)."),
    ModelFailure.SERVER_ERROR: lambda: ModelServerError("The provider failed (status 500)."),
}


def _key_of(fault: AnyFault) -> Key:
    match fault:
        case SlowModel() | FailedModel():
            return "request", fault.agent, fault.request
        case SlowTool():
            return "call", fault.tool, fault.call
        case SlowCommit():
            return "commit", "", fault.commit
        case LatePerson():
            return "act", "", fault.act
        case Kill():
            counted = _COUNTED[fault.moment]
            return counted, fault.of if counted != "commit" else "", fault.number


_COUNTED = {
    KillMoment.MODEL_ASKED: "request",
    KillMoment.MODEL_ANSWERED: "request",
    KillMoment.TOOL_BEGAN: "call",
    KillMoment.TOOL_ENDED: "call",
    KillMoment.BEFORE_COMMIT: "commit",
    KillMoment.AFTER_COMMIT: "commit",
}
