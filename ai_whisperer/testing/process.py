"""A session in a process that can be killed: on a simulated disk, in virtual time, from one seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.moments import duration
from ai_whisperer.core.sleeping import seconds_of as moment_of
from ai_whisperer.errors import StateError
from ai_whisperer.models.base import Model
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.simulation.loop import EPOCH, SimulationStalledError, VirtualClock
from ai_whisperer.store.base import Store
from ai_whisperer.testing.stuck import StuckError, who_waits
from ai_whisperer.testing.team_loop import TeamLoop
from ai_whisperer.testing.team_settings import Length, checked_settings, seconds_of

__tracebackhide__ = True  # pytest shows the line of the test instead

_T = TypeVar("_T")

PATIENCE = "1d"
_IMPATIENCE = "the patience of the test is over"
_ENDING_SECONDS = 3_600.0
_LIFETIME_SECONDS = 100 * 365 * 86_400.0


class SimulatedProcess:
    """Opens its session when it is first needed, and can be killed and started again. Nothing in it takes real time.

    Each life has an event loop of its own, as each process has. What a killed one was about to do is not done any more.
    """

    def __init__(
        self,
        *,
        model: Model,
        provided: Callable[[], Mapping[str, Any]],
        seed: int = 0,
        start: float | str | datetime = EPOCH,
        patience: Length = PATIENCE,
        slowest_commit_seconds: float = 0.01,
        disk: SimulatedDisk | None = None,
        **settings: Any,
    ) -> None:
        """`provided` is asked at each start for settings of the manager that may change; `settings` stay.

        A `disk` that is given is closed with the process.
        """
        self.seed = seed
        self.patience_seconds = seconds_of(patience)
        self._model = model
        self._provided = provided
        self._settings = {"templates": (), **checked_settings(settings)}
        self.session_id = str(settings.get("session_id", "default"))
        self._random = random.Random(seed)  # noqa: S311 - chance that can be repeated is the purpose
        seed_of_disk = self._random.getrandbits(32)
        self._disk = disk or SimulatedDisk(seed_of_disk, slowest_commit_seconds=slowest_commit_seconds)
        self._clock = VirtualClock(moment_of(start))
        self._loop: TeamLoop | None = None
        self._session: AsyncAgentSessionManager | None = None
        self._dead: list[tuple[TeamLoop, set[asyncio.Task[Any]]]] = []
        self._is_closed = False
        self._is_down = False
        self._has_body = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with seed {self.seed} at {self.now:%Y-%m-%d %H:%M:%S}>"

    @property
    def session(self) -> AsyncAgentSessionManager:
        """The session of the life that goes on. Use it in coroutines that `run` runs."""
        if self._session is None:
            if self._is_closed:
                raise _closed()
            if self._is_down:
                raise StateError("The process was killed. Start it again first: team.restart().")
            self.start()
        assert self._session is not None  # noqa: S101 - it was started
        return self._session

    @property
    def is_alive(self) -> bool:
        return self._session is not None

    @property
    def now(self) -> datetime:
        """What the clock shows, in UTC."""
        return datetime.fromtimestamp(self._seconds_now(), UTC)

    def run(self, work: Coroutine[Any, Any, _T], *, patience: Length | None = None) -> _T:
        """Run a coroutine to its end in virtual time; `work` may use `session`.

        Raises `StuckError`, which says who waits for what, if it does not end within the patience.
        """
        try:
            self._check_usable()
            self.session  # noqa: B018 - it is opened now
        except BaseException:
            work.close()
            raise
        within = self.patience_seconds if patience is None else seconds_of(patience)
        return self._run(work, within)

    def run_in_any_life(self, work: Awaitable[_T]) -> _T:
        """Like `run`, for what takes as long as it takes, and may kill the process with `die` or `open` it again."""

        async def awaited() -> _T:
            return await work

        self._check_usable()
        if not self._is_down:
            self.session  # noqa: B018 - it is opened now
        return self._run(awaited(), _LIFETIME_SECONDS)

    def later(self, length: Length) -> None:
        """Let so much time pass. All that is due meanwhile happens."""
        seconds = seconds_of(length)
        self._check_usable()
        if not self._is_down:
            self.session  # noqa: B018 - timers run only in an open session
        self._alive_loop().run_until_complete(asyncio.sleep(seconds))

    def due_in(self) -> float | None:
        """In how many seconds something is due; None if nothing is left that could happen."""
        if not self._is_down:
            self.session  # noqa: B018 - timers run only in an open session
        return self._alive_loop().due_in()

    def start(self) -> None:
        """Open the session, after a kill on what the disk has. It is opened by itself when it is first needed."""
        self._check_usable()
        if self._session is not None:
            raise StateError("The process runs already.")
        self._run(self.open(), self.patience_seconds)

    def kill(self) -> None:
        """The process dies now, as by `kill -9`: what is not on disk is lost, and nothing of it goes on."""
        self._check_usable()
        if self._is_down:
            raise StateError("The process was killed already. Start it again: team.restart().")
        self.session  # noqa: B018 - there is something to kill
        self.die()
        self._bury()

    def restart(self, *, down_for: Length = 0.0) -> None:
        """Start the process that was killed again, after so long. The agents resume."""
        seconds = seconds_of(down_for)
        self._check_usable()
        if not self._is_down:
            raise StateError("The process runs. Kill it first, or do both: team.kill_and_restart().")
        if seconds:
            self.later(seconds)
        self._run(self.open(), self.patience_seconds)

    def kill_and_restart(self, *, down_for: Length = 0.0) -> None:
        """Kill the process and start it again on what the disk has, after so long."""
        seconds_of(down_for)
        self.kill()
        self.restart(down_for=down_for)

    def close(self) -> None:
        """End what runs and remove the disk. Nothing can be done afterwards."""
        if self._is_closed:
            return
        self._check_usable()
        try:
            if self._session is not None:
                with suppress(StuckError):
                    self._run(self._session.close(grace_seconds=0), self.patience_seconds)
                self.die()
            self._bury()
            self._keep()
        finally:
            self._is_closed = True
            for loop, tasks in self._dead:
                _end(loop, tasks)
            self._dead.clear()
            self._disk.close()

    def _keep(self) -> None:
        """Keep what is to be kept of the disk before it is removed."""

    def die(self) -> None:
        """Kill the process from within a coroutine that runs in it: nothing runs any more when that returns."""
        self._disk.crash()
        self._session = None
        self._is_down = True
        self._has_body = True

    def _bury(self) -> None:
        """Let nothing of a process that died go on."""
        loop, self._loop = self._loop, None
        self._has_body = False
        if loop is not None:
            self._clock = self._clock.later(loop.time())
            # What was under way is kept as it is to the end: to let go of it now would run its `finally` blocks.
            self._dead.append((loop, asyncio.all_tasks(loop)))

    async def open(self) -> None:
        """Open the session in the loop that runs."""
        store = self._disk.open()
        try:
            await self._hear(store)
            manager = AsyncAgentSessionManager(
                store=store,
                work=self._disk.folder / "files",
                model_factory=self._model_named,
                clock=self._clock,
                random=random.Random(self._random.getrandbits(32)),  # noqa: S311
                **{**self._settings, **self._provided()},
            )
            await manager.open()
        except BaseException:
            self._disk.crash()
            raise
        self._session = manager
        self._is_down = False

    def _model_named(self, name: str) -> Model:
        """What answers for the model of that name: the same for all."""
        del name
        return self._model

    async def _hear(self, store: Store) -> None:
        """Look at what is in a store before the session is opened on it."""

    def _run(self, work: Coroutine[Any, Any, _T], within: float) -> _T:
        loop = self._alive_loop()
        main = loop.create_task(work)
        impatient = loop.call_later(within, main.cancel, _IMPATIENCE)
        try:
            return loop.run_until_complete(main)
        except SimulationStalledError as error:
            stalled = str(error) or "Nothing is left that could happen."
        except asyncio.CancelledError as error:
            if _IMPATIENCE not in error.args:
                raise
            stalled = f"It does not come within {duration(within)} of virtual time."
        finally:
            impatient.cancel()
            if self._has_body:
                self._bury()
        main.cancel()
        raise StuckError(f"{stalled} {self._who_waits()}")

    def _who_waits(self) -> str:
        if self._session is None:
            return ""
        with suppress(SimulationStalledError):
            return self._alive_loop().run_until_complete(who_waits(self._session))
        return ""

    def _alive_loop(self) -> TeamLoop:
        if self._loop is None:
            self._loop = self.new_loop(self._random.getrandbits(32))
        return self._loop

    def new_loop(self, seed: int) -> TeamLoop:
        """The event loop of the next life."""
        return TeamLoop(seed)

    def _seconds_now(self) -> float:
        return self._clock.at(self._loop.time() if self._loop is not None else 0.0)

    def _check_usable(self) -> None:
        if self._is_closed:
            raise _closed()
        if _in_a_loop():
            raise StateError(
                "A team has an event loop of its own, on virtual time, and is used from plain functions: write "
                "`def test_…`, not `async def`. Give it coroutines to run: team.run(main(team.session))."
            )


def _closed() -> StateError:
    return StateError("The team is closed: its test is over.")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _end(loop: TeamLoop, tasks: set[asyncio.Task[Any]]) -> None:
    """Let what a killed process had under way end, now that nobody looks any more."""
    loop.set_exception_handler(lambda *_: None)
    left = {task for task in tasks | asyncio.all_tasks(loop) if not task.done()}
    for task in left:
        task.cancel()
    with suppress(SimulationStalledError):
        if left:
            loop.call_later(_ENDING_SECONDS, loop.stop)
            with suppress(RuntimeError):  # it was stopped before all had ended
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
