"""Machines in one simulated event loop: what runs on one that is frozen does not go on, whatever the others do."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

from ai_whisperer.simulation.loop import SimulationLoop

_MACHINE: ContextVar[Machine | None] = ContextVar("machine", default=None)
_OUTSIDE = Context()
_ENDING_SECONDS = 10.0


class Way:
    """The way between a machine and the database. While it is blocked nothing arrives, and nobody is told so."""

    def __init__(self) -> None:
        self._is_open = True
        self._held: list[Callable[[], object]] = []

    def pass_on(self, what: Callable[[], object]) -> None:
        if self._is_open:
            what()
        else:
            self._held.append(what)

    def block(self) -> None:
        self._is_open = False

    def unblock(self) -> None:
        self._is_open = True
        held, self._held = self._held, []
        for what in held:
            what()


class Machine:
    """A process on a machine of its own: all callbacks that came to be on it.

    `is_over` is whether it has ended or others took it for dead: it can change nothing any more. `ahead` is how far its
    clock is ahead of the right time. `is_suspect` is whether something has happened to it for which others may take it
    for dead; with `is_disturbed` it may refuse something.
    """

    def __init__(self, name: str, *, ahead: float = 0.0) -> None:
        self.name = name
        self.ahead = ahead
        self.is_frozen = False
        self.is_dead = False
        self.is_removed = False
        self.is_suspect = False
        self.is_disturbed = False
        self.is_cut_at_commit = False
        self.way = Way()
        self._context = copy_context()
        self._context.run(_MACHINE.set, self)

    @property
    def is_over(self) -> bool:
        return self.is_dead or self.is_removed

    def run(self, doing: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Have it done on this machine."""
        return asyncio.get_running_loop().create_task(doing, context=self._context)


def this_machine() -> Machine | None:
    """The machine on which this is called; None outside of all."""
    return _MACHINE.get()


def context_here() -> Context:
    """A context in which nothing is set, but on this machine."""
    context = Context()
    context.run(_MACHINE.set, this_machine())
    return context


class MachineLoop(SimulationLoop):
    """A simulation of several machines, of which some do not go on."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._still: dict[Machine, tuple[list[asyncio.Handle], list[asyncio.TimerHandle]]] = {}
        self._kept: set[asyncio.Task[Any]] = set()
        self.set_task_factory(self._made)  # type: ignore[arg-type]

    def _made(self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **how: Any) -> asyncio.Task[Any]:
        """A task that is kept until it ends: one of a machine that stands still is nobody's otherwise."""
        task = asyncio.Task(coro, loop=loop, **how)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard, context=_OUTSIDE)
        return task

    def freeze(self, machine: Machine) -> None:
        """Let nothing more happen on the machine, after what happens at this very moment."""
        if machine in self._still:
            return
        machine.is_frozen = True
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        its = [timer for timer in timers if _machine_of(timer) is machine]
        self._still[machine] = ([], its)
        timers[:] = [timer for timer in timers if _machine_of(timer) is not machine]
        heapq.heapify(timers)

    def thaw(self, machine: Machine) -> None:
        """Let it go on: what was due meanwhile is due now."""
        if machine.is_dead or machine not in self._still:
            return
        machine.is_frozen = False
        handles, timers = self._still.pop(machine)
        self._ready.extend(handles)  # type: ignore[attr-defined]
        for timer in timers:
            heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]

    def kill(self, machine: Machine) -> None:
        self.freeze(machine)
        machine.is_dead = True

    async def end(self) -> None:
        """The simulation is over: end all that runs, also what stands still, until nothing is left."""
        for machine in list(self._still):
            machine.is_dead = False
            self.thaw(machine)
            machine.is_dead = True
        while left := self._kept - {asyncio.current_task()}:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=_ENDING_SECONDS)

    def run_in_executor(self, _: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Virtual time knows no threads: what would be done in one is done at once."""
        done = self.create_future()
        done.set_result(func(*args))
        return done

    def idle(self, timeout: float | None) -> None:
        if self._still:
            ready = self._ready  # type: ignore[attr-defined]
            moving: list[asyncio.Handle] = []
            for handle in ready:
                still = self._still.get(_machine_of(handle))  # type: ignore[arg-type]
                (moving if still is None else still[0]).append(handle)
            ready.clear()
            ready.extend(moving)
        super().idle(timeout)


def _machine_of(handle: asyncio.Handle) -> Machine | None:
    machine: Machine | None = handle._context.get(_MACHINE)  # type: ignore[attr-defined]
    return machine
