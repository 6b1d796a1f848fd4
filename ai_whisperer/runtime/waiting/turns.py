"""Calls that touch the same thing take turns. A call that waits for its turn has not begun, and its loop rests.

Nothing is given to a call beforehand. When its turn may have come its loop is taken up, asks again, and takes what the
call touches in the very decision in which the call begins; it is free again when the call has ended, however it ends.
Whoever is next begins as soon as that end is decided, before the event loop turns to anything else: nobody in the line
waits for what others do meanwhile. A loop that cannot go on (paused, stopping, still busy with other calls of the same
answer) is passed by others, and asks when it goes on.

All of this is in memory alone: after a crash no call runs, and those that waited are asked for again by their journals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from ai_whisperer.core.failure_records import failed
from ai_whisperer.core.resources import ResourceLines, ResourceRequest
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.notifications.resources import ResourceGranted, ResourceWaiting
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.domain.waits import ResourceStatus, ResourceUse, WaitKind, WaitRecord
from ai_whisperer.errors import ToolError, WaitCycleError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Loop, Roster
from ai_whisperer.runtime.waiting.cycles import Cycles
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.tools.function import Tool

_MOST_HOLDERS_TOLD = 10

_SECONDS_UNTIL_OFFERED = 1.0
"""So long nobody is offered what a call touched that was cut off: the event loop may be ending."""


def lines_of(roster: Roster) -> ResourceLines:
    """Lines in which whoever could not begin now is passed by others."""

    def is_ready(request: ResourceRequest) -> bool:
        loop = roster.running.get(request.task_id)
        return loop is not None and loop.is_ready

    return ResourceLines(is_ready)


class Turns:
    """What the running calls of one session touch, and which calls wait for it.

    `freed` is what calls have touched that have ended, as long as nobody was let begin for it.
    """

    def __init__(
        self,
        kernel: Kernel,
        roster: Roster,
        waits: Waits,
        cycles: Cycles,
        lines: ResourceLines,
        *,
        shown: Callable[[str], str],
    ) -> None:
        """`shown` is what people are shown of the name of a resource."""
        self._kernel = kernel
        self._roster = roster
        self._waits = waits
        self._cycles = cycles
        self._shown = shown
        self.freed: dict[str, None] = {}
        self.lines = lines
        self._holders: dict[str, tuple[str, ...]] = {}

    def admit(
        self, decision: Decision, task: TaskRecord, step: StepRecord, tool: Tool
    ) -> WaitRecord | ToolResult | None:
        """None if the call has what it touches, until `call_ended`; a wait if it is not its turn; a result if neither.

        A call that waits already keeps its place when it asks again.
        """
        try:
            request = self._request(decision, task, step, tool)
        except ToolError as error:
            return failed(error.message)
        known = self.lines.waiting(step.id)
        if known is not None and known.touches != request.touches:  # its agent was given another tool of that name
            self.let_go(step.id)
            known = None
        if not request.touches:
            return None
        waiting = known or self.lines.enter(request)
        if self.lines.may_begin(waiting):
            self._begin(decision, waiting, waited=known is not None)
            return None
        return self._waits.find(step.id) or self._refused(waiting) or self._begin_wait(decision, waiting)

    def may_begin(self, step_id: str) -> bool:
        """Whether the call waits for what it touches, and would have it if it asked again now."""
        request = self.lines.waiting(step_id)
        return request is not None and self.lines.may_begin(request)

    def call_ended(self, step_id: str) -> None:
        """What the call touched is free."""
        request = self.lines.leave(step_id)
        if request is None or self._kernel.event_loop.is_closed():
            return
        loop = self._roster.running.get(request.task_id)
        if loop is not None and loop.is_cut_off:
            self._kernel.event_loop.call_later(_SECONDS_UNTIL_OFFERED, self._offer, request.resources)
            return
        if not self.freed:
            self._kernel.event_loop.call_soon(self.hand_over)
        self.freed.update(dict.fromkeys(request.resources))

    def hand_over(self) -> None:
        """Let those begin whose turn has come since calls have ended.

        Whoever ends a call asks for this when that is decided: the event loop may have much to do before it comes to
        it by itself, and all who wait in the line would wait for that too.
        """
        freed, self.freed = self.freed, {}
        for loop in self._next_of(freed):
            loop.take_up()

    def worker_ended(self, task_id: str) -> None:
        """What calls of the task were to touch, and never ran, is free."""
        for request in self.lines.held_by(task_id):
            self.call_ended(request.id)

    def abandon(self, wait: WaitRecord) -> None:
        """The call that waits for its turn does so no more: it has its result, or its task has ended."""
        self._let_go(wait)
        self.call_ended(wait.id)

    def let_go(self, step_id: str) -> None:
        """Whatever becomes of the call now, it does not wait for its turn any more, if it did."""
        wait = self._waits.find(step_id)
        if wait is not None and wait.kind is WaitKind.RESOURCE:
            self.abandon(wait)

    def held_up(self, task_id: str) -> None:
        """The loop of the task is about to be busy, or may not go on: whoever is behind it need not wait for it."""
        for request in self.lines.waiting_of(task_id):
            self._kernel.event_loop.call_soon(self._offer, request.resources)

    def waited_for_by(self, task_id: str) -> list[str]:
        """The things that calls of the task wait for, as people are shown them."""
        return [self._shown(name) for request in self.lines.waiting_of(task_id) for name in request.resources]

    def waited_for_at(self, step_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The things that the call waits for, as people are shown them, and which agents had them when it began to."""
        request = self.lines.waiting(step_id)
        names = () if request is None else tuple(self._shown(name) for name in request.resources)
        return names, self._holders.get(step_id, ())

    def listed(self) -> list[ResourceStatus]:
        """All things that are touched now: who holds them, and who waits, in the order in which they came."""
        return [self._status_of(name) for name in self.lines.names()]

    def _request(self, decision: Decision, task: TaskRecord, step: StepRecord, tool: Tool) -> ResourceRequest:
        agent = self._roster.agents[task.agent_id]
        arguments = "" if step.call is None else step.call.arguments
        return ResourceRequest(
            id=step.id,
            agent_id=task.agent_id,
            task_id=task.id,
            touches=tool.touched_by(arguments, agent.workplace),
            since=decision.at,
        )

    def _refused(self, request: ResourceRequest) -> ToolResult | None:
        """What the call is told if its turn would never come."""
        names = ", ".join(self._shown(name) for name in request.resources)
        try:
            self._cycles.check_turn(request, names=names)
        except WaitCycleError as error:
            self.lines.leave(request.id)
            return ToolResult(content=error.message, is_error=True)
        return None

    def _begin(self, decision: Decision, request: ResourceRequest, *, waited: bool) -> None:
        wait = self._waits.find(request.id) if waited else None
        self.lines.begin(request, at=decision.at)
        if wait is not None:
            self._let_go(wait)
            seconds = max(0.0, decision.at - request.since)
            decision.tell(
                ResourceGranted(
                    agent_id=request.agent_id,
                    task_id=request.task_id,
                    step_id=request.id,
                    resources=[self._shown(name) for name in request.resources],
                    access=request.access,
                    waited_seconds=seconds,
                )
            )

    def _begin_wait(self, decision: Decision, request: ResourceRequest) -> WaitRecord:
        wait = WaitRecord(
            session_id=self._kernel.session_id,
            id=request.id,
            kind=WaitKind.RESOURCE,
            agent_id=request.agent_id,
            task_id=request.task_id,
            target=", ".join(request.resources),
            target_agent="",
            arrival=request.arrival,
            deadline_at=math.inf,  # it ends by itself, or with its task
            created_at=decision.at,
        )
        self._waits.hold_back(wait)
        holders = list(dict.fromkeys(each.agent_id for each in self.lines.in_the_way(request)))[:_MOST_HOLDERS_TOLD]
        self._holders[wait.id] = tuple(holders)
        decision.tell(
            ResourceWaiting(
                agent_id=request.agent_id,
                task_id=request.task_id,
                step_id=request.id,
                resources=[self._shown(name) for name in request.resources],
                access=request.access,
                holders=holders,
            )
        )
        return wait

    def _let_go(self, wait: WaitRecord) -> None:
        del self._holders[wait.id]
        self._waits.let_go(wait)

    def _offer(self, resources: Iterable[str]) -> None:
        """Something has changed in these lines: let those ask again who may have their turn."""
        for loop in self._next_of(resources):
            # Not at once: what is decided now may still be under way, as may be the loop that asks.
            self._kernel.event_loop.call_soon(loop.take_up)

    def _next_of(self, resources: Iterable[str]) -> list[Loop]:
        """The loops whose calls may have their turn in these lines, the first one first."""
        if self._kernel.closing or self._kernel.event_loop.is_closed():
            return []
        return [self._roster.running[request.task_id] for request in self.lines.unblocked(resources)]

    def _status_of(self, resource: str) -> ResourceStatus:
        holders, waiting = self.lines.line_of(resource)
        return ResourceStatus(
            resource=self._shown(resource),
            holders=tuple(_use(each, resource) for each in holders),
            waiting=tuple(_use(each, resource) for each in waiting),
        )


def _use(request: ResourceRequest, resource: str) -> ResourceUse:
    access = next(touch.access for touch in request.touches if touch.resource == resource)
    return ResourceUse(
        agent_id=request.agent_id, task_id=request.task_id, step_id=request.id, access=access, since=request.since
    )
