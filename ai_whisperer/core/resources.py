"""Who may touch what now: calls that touch the same thing take turns, and readers share.

A call enters the line of each thing that it touches, all at once, and begins when in every one of these lines nothing
that conflicts is before it: no call that has begun, and none that came earlier and waits. So all things are taken
together and in one order of arrival. No two calls can wait for each other, and no stream of readers passes a writer.

A call that could not begin even if it were its turn (its agent is paused, say) keeps its place, and others pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.waits import Touch


class ResourceRequest(Record, frozen=True, kw_only=True):
    """A call that waits for what it touches since then, or that holds it since then. Its id is that of the step."""

    id: str
    agent_id: str
    task_id: str
    touches: tuple[Touch, ...]
    since: float = 0.0
    arrival: int = 0

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(touch.resource for touch in self.touches)

    @property
    def access(self) -> Access:
        """`write` if it writes any of the things."""
        return Access.WRITE if any(touch.access is Access.WRITE for touch in self.touches) else Access.READ


class _Line:
    """Those who touch one thing. Its holders are any number of readers or one writer."""

    __slots__ = ("holders", "waiting", "writers")

    def __init__(self) -> None:
        self.holders: dict[str, Access] = {}
        self.waiting: dict[str, ResourceRequest] = {}
        self.writers: dict[str, ResourceRequest] = {}  # those among the waiting who want to write

    def is_held_against(self, access: Access) -> bool:
        if access is Access.WRITE:
            return bool(self.holders)
        return next(iter(self.holders.values()), Access.READ) is Access.WRITE

    def before(self, request: ResourceRequest, access: Access) -> Iterator[ResourceRequest]:
        """Those that wait, came earlier and conflict, the first one first."""
        earlier = self.waiting if access is Access.WRITE else self.writers
        for other in earlier.values():
            if other.arrival >= request.arrival:
                return
            yield other


class ResourceLines:
    """The lines of all things that calls of one session touch now.

    `is_ready` says of a call that waits whether it could begin if it were its turn.
    """

    def __init__(self, is_ready: Callable[[ResourceRequest], bool]) -> None:
        self._is_ready = is_ready
        self._lines: dict[str, _Line] = {}
        self._waiting: dict[str, ResourceRequest] = {}
        self._holding: dict[str, ResourceRequest] = {}
        self._of_task: dict[str, dict[str, None]] = {}
        self._arrivals = 0

    def enter(self, request: ResourceRequest) -> ResourceRequest:
        """Put a call at the end of the lines of what it touches; returns it with its place in the order."""
        self._arrivals += 1
        entered = replace(request, arrival=self._arrivals)
        for touch in entered.touches:
            line = self._lines.get(touch.resource)
            if line is None:
                line = self._lines[touch.resource] = _Line()
            line.waiting[entered.id] = entered
            if touch.access is Access.WRITE:
                line.writers[entered.id] = entered
        self._waiting[entered.id] = entered
        self._of_task.setdefault(entered.task_id, {})[entered.id] = None
        return entered

    def may_begin(self, request: ResourceRequest) -> bool:
        """Whether a call that waits is to wait no longer. The calls of one task keep their order in any case."""
        for touch in request.touches:
            line = self._lines[touch.resource]
            if line.is_held_against(touch.access):
                return False
            if any(self._goes_first(other, request) for other in line.before(request, touch.access)):
                return False
        return True

    def begin(self, request: ResourceRequest, *, at: float) -> None:
        """Let a call that waits hold what it touches until it leaves."""
        for touch in request.touches:
            line = self._lines[touch.resource]
            del line.waiting[request.id]
            line.writers.pop(request.id, None)
            line.holders[request.id] = touch.access
        del self._waiting[request.id]
        self._holding[request.id] = replace(request, since=at)

    def leave(self, request_id: str) -> ResourceRequest | None:
        """Take a call out of all lines, one that waits or one that holds; None if it is in none."""
        request = self._waiting.pop(request_id, None) or self._holding.pop(request_id, None)
        if request is None:
            return None
        for touch in request.touches:
            line = self._lines[touch.resource]
            line.holders.pop(request_id, None)
            line.waiting.pop(request_id, None)
            line.writers.pop(request_id, None)
            if not line.holders and not line.waiting:
                del self._lines[touch.resource]
        of_task = self._of_task[request.task_id]
        del of_task[request_id]
        if not of_task:
            del self._of_task[request.task_id]
        return request

    def waiting(self, request_id: str) -> ResourceRequest | None:
        """The call, if it waits."""
        return self._waiting.get(request_id)

    def waiting_of(self, task_id: str) -> list[ResourceRequest]:
        """The calls of a task that wait, in the order in which they came."""
        return [self._waiting[each] for each in self._of_task.get(task_id, ()) if each in self._waiting]

    def held_by(self, task_id: str) -> list[ResourceRequest]:
        """The calls of a task that hold what they touch."""
        return [self._holding[each] for each in self._of_task.get(task_id, ()) if each in self._holding]

    def unblocked(self, resources: Iterable[str]) -> list[ResourceRequest]:
        """The calls in the lines of these things that wait and may begin, the first one first."""
        found: dict[str, ResourceRequest] = {}
        for resource in resources:
            line = self._lines.get(resource)
            if line is not None:
                found.update((each.id, each) for each in self._next_of(line))
        return sorted((each for each in found.values() if self.may_begin(each)), key=lambda each: each.arrival)

    def in_the_way(self, request: ResourceRequest) -> list[ResourceRequest]:
        """What a call that waits waits for: those that hold what it touches, or else the first that gets it before."""
        found: dict[str, ResourceRequest] = {}
        for touch in request.touches:
            line = self._lines[touch.resource]
            if line.is_held_against(touch.access):
                found.update((each, self._holding[each]) for each in line.holders)
        earlier = (other for other in self._before(request) if self._goes_first(other, request))
        return list(found.values()) or list(islice(earlier, 1))

    def holders_before(self, request: ResourceRequest) -> Iterator[ResourceRequest]:
        """The calls that must end before a call that waits has its turn, those that others before it wait for too.

        Also over those that others pass for now: they may be ready any time, and then come first.
        """
        seen = {request.id}
        ahead = [request]
        while ahead:
            each = ahead.pop()
            for touch in each.touches:
                line = self._lines[touch.resource]
                if line.is_held_against(touch.access):
                    yield from (self._holding[holder] for holder in line.holders)
            for other in self._before(each):
                if other.id not in seen:
                    seen.add(other.id)
                    ahead.append(other)

    def held(self, request_id: str) -> ResourceRequest | None:
        """The call, if it holds what it touches."""
        return self._holding.get(request_id)

    def names(self) -> list[str]:
        """The things that are touched now."""
        return sorted(self._lines)

    def line_of(self, resource: str) -> tuple[list[ResourceRequest], list[ResourceRequest]]:
        """Those that hold the thing, and those that wait for it, in the order in which they came."""
        line = self._lines[resource]
        return [self._holding[each] for each in line.holders], list(line.waiting.values())

    def _next_of(self, line: _Line) -> Iterator[ResourceRequest]:
        """Those that nobody else in this line keeps from beginning: the first writer, or all readers before it."""
        may_write = not line.holders
        if line.is_held_against(Access.READ):
            return
        for request in line.waiting.values():
            if not self._is_ready(request):
                continue
            if request.id in line.writers:
                if may_write:
                    yield request
                return
            may_write = False
            yield request

    def _goes_first(self, other: ResourceRequest, request: ResourceRequest) -> bool:
        """Whether a call waits for another that came earlier, rather than to pass it."""
        return other.task_id == request.task_id or self._is_ready(other)

    def _before(self, request: ResourceRequest) -> Iterator[ResourceRequest]:
        for touch in request.touches:
            yield from self._lines[touch.resource].before(request, touch.access)
