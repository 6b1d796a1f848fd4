"""The process that keeps one job: starts it, watches it, reads its output, and ends all of it.

It is apart from the server, so that the server reads only what is kept of the output, a bug in a library of a sandbox
cannot take the server along, and the job is ended even when the server is killed: then the socket between them closes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence

from ai_whisperer.domain.conversation import ToolRun
from ai_whisperer.errors import SandboxError, WhispererError
from ai_whisperer.sandbox import family, priority
from ai_whisperer.sandbox.base import Ending, Job, Outcome
from ai_whisperer.sandbox.bubblewrap import BubblewrapLevel
from ai_whisperer.sandbox.capture import Capture
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.held import Held, Level, let_go_of_streams
from ai_whisperer.sandbox.holder import HolderLevel
from ai_whisperer.sandbox.own_world import OwnWorld
from ai_whisperer.sandbox.privileges import JOB_USER
from ai_whisperer.sandbox.rlimits import RlimitsLevel
from ai_whisperer.sandbox.sandlock import Landlock, Sandlock
from ai_whisperer.sandbox.wire import Ended, Order, Piece, Refused, Report, framed, read_order

LEVELS: dict[str, Level] = {
    "namespaces": HolderLevel(OwnWorld),
    "sandlock": HolderLevel(Sandlock),
    "bubblewrap": BubblewrapLevel(),
    "landlock": HolderLevel(Landlock),
    "rlimits": RlimitsLevel(),
}

_LOOK_SECONDS = 0.05
_PIECE_SECONDS = 0.1
_READ_BYTES = 1 << 18
_QUICK_SECONDS = 0.02
"""So long a job is as urgent as the server: short ones are to be quick."""
_EXTRA_PROCESSES = 2
"""What a sandbox may need for itself."""


def keep(connection: socket.socket, level: str = "") -> None:
    """Take one order from the socket and carry it out to its end; it is for the level, if that is known."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    group = JobGroup()
    try:
        _keep(connection, level, group)
    finally:
        group.remove()


def _keep(connection: socket.socket, level: str, group: JobGroup) -> None:
    try:
        family.adopt_orphans()
        _warm_up(level, group)
        order = read_order(connection)
        report: Report = Ended(outcome=_carried_out(order, connection, group))
    except EOFError:
        return
    except WhispererError as error:
        report = _given_up(error.message)
    except Exception as error:  # noqa: BLE001 - whatever it is, the server has to hear of it
        report = _given_up(f"The keeper of the sandbox failed: {type(error).__name__}: {error}.")
    connection.sendall(framed(report))
    with contextlib.suppress(OSError):
        connection.recv(1)  # until the server has heard it: what is left to clear up must not hold it up
    with contextlib.suppress(SandboxError):
        family.end_all()


def _given_up(message: str) -> Refused:
    try:
        family.end_all()
    except (SandboxError, OSError) as error:
        return Refused(message=f"{message} {error}")
    return Refused(message=message)


def _warm_up(name: str, group: JobGroup) -> None:
    """Go once through what a job needs, while none waits.

    After a fork each page that is touched has to be copied first; so that is done by the time the order comes.
    """
    job = Job(argv=("",), cwd="/")
    outcome = Outcome(ending=Ending.EXITED, run=ToolRun(sandbox=""))
    framed(Order(level="", job=job))
    framed(Ended(outcome=outcome))
    family.reap_orphans(0)
    family.taken(0, 0)
    Capture(job.output_bytes).kept()
    if name in LEVELS:
        group.enter()
        LEVELS[name].warm_up(job)


def _carried_out(order: Order, connection: socket.socket, group: JobGroup) -> Outcome:
    began = time.monotonic()
    output = _stand_in(order.job)
    level = _level(order.level)
    group.enter()
    group.hold(order.job.threads + level.own_threads)
    held = level.start(order.job, group)
    let_go_of_streams()
    watch = _Watch(order.job, held, group, connection=connection, output=output)
    ending = watch.until_end()
    status = None if ending else held.status()
    if not held.all_gone:
        family.end_all()
    watch.read_rest()
    used = held.used
    return Outcome(
        ending=ending or (status.ending if status else Ending.EXITED),
        status=status.number if status else signal.SIGKILL,
        output=watch.capture.kept(),
        cut_bytes=watch.capture.cut_bytes,
        run=ToolRun(
            sandbox=order.level,
            wall_seconds=round(time.monotonic() - began, 4),
            cpu_seconds=round(max(watch.cpu_seconds, used.cpu_seconds, family.cpu_of_ended()), 4),
            memory_bytes=max(watch.peak_bytes, used.largest_bytes) or used.bound_bytes,
        ),
    )


def _level(name: str) -> Level:
    level = LEVELS.get(name)
    if level is None:
        raise SandboxError(f"There is no sandbox '{name}'. There are: {', '.join(LEVELS)}.")
    return level


def _stand_in(job: Job) -> int:
    """Make the standard streams of this process those of the job; returns where its output can be read."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    if job.stdin:
        source = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        left = memoryview(job.stdin)
        while left:
            left = left[os.write(source, left) :]
        fcntl.fcntl(source, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        source = os.open(f"/proc/self/fd/{source}", os.O_RDONLY)
    else:
        source = os.open(os.devnull, os.O_RDONLY)
    if os.geteuid() == 0:
        os.fchown(writable, JOB_USER, JOB_USER)  # who opens it by its name, /dev/stderr, must be its owner
    os.dup2(source, 0)
    os.dup2(writable, 1)
    os.dup2(writable, 2)
    for each in (source, writable):
        os.close(each)
    return readable


class _Watch:
    """Looks after a job that runs."""

    def __init__(self, job: Job, held: Held, group: JobGroup, *, connection: socket.socket, output: int) -> None:
        self._job = job
        self._held = held
        self._group = group
        self._connection = connection
        self._output = output
        self._exit = held.ended()
        self._deadline = time.monotonic() + job.wall_seconds
        self._next_piece = 0.0
        self._next_look = time.monotonic() + _QUICK_SECONDS
        self.capture = Capture(job.output_bytes)
        self._stepped_back: set[int] = set()
        self._most = job.processes + _EXTRA_PROCESSES
        self.peak_bytes = 0
        self.cpu_seconds = 0.0

    def until_end(self) -> Ending | None:
        """Return when the first process has ended: None; or the limit for which the job has to be ended."""
        poll = select.poll()
        for each in (self._connection.fileno(), self._output, self._exit):
            poll.register(each, select.POLLIN)
        while True:
            seconds = _LOOK_SECONDS if self._stepped_back else _QUICK_SECONDS
            ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
            if self._connection.fileno() in ready:
                return Ending.CANCELLED
            if self._output in ready and not self._read():
                poll.unregister(self._output)
            now = time.monotonic()
            self._tell(now)
            ending = self._broken_limit(now)
            if ending is not None:
                return ending
            if self._exit in ready:
                return None

    def read_rest(self) -> None:
        """Read what is left; all writers are gone, so it ends."""
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            output = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return False
        self.capture.add(output)
        return bool(output)

    def _tell(self, now: float) -> None:
        """Show the server a piece, if it is time for one and it keeps up with reading."""
        if now < self._next_piece:
            return
        if not select.select([], [self._connection], [], 0)[1]:
            return
        piece = self.capture.take_piece()
        if piece:
            self._next_piece = now + _PIECE_SECONDS
            self._connection.sendall(framed(Piece(output=piece)))

    def _broken_limit(self, now: float) -> Ending | None:
        if now > self._deadline:
            return Ending.TIMED_OUT
        if self.capture.total > self._job.flood_bytes:
            return Ending.TOO_MUCH_OUTPUT
        if now < self._next_look:
            return None
        self._next_look = now + _LOOK_SECONDS
        family.reap_orphans(self._held.pid)
        besides = self._held.pid if self._held.holders else 0
        seen = family.taken(self._job.memory_bytes, self._most, besides=besides)
        self.peak_bytes = max(self.peak_bytes, seen.memory_bytes)
        self.cpu_seconds = max(self.cpu_seconds, seen.cpu_seconds)
        self._group.step_back()
        self._step_back(seen.sessions)
        if seen.processes > self._most or seen.threads > self._job.threads + _EXTRA_PROCESSES:
            return Ending.TOO_MANY_PROCESSES
        if seen.memory_bytes > self._job.memory_bytes:
            return Ending.OUT_OF_MEMORY
        if seen.cpu_seconds > self._job.cpu_seconds:
            return Ending.OUT_OF_CPU
        return None

    def _step_back(self, sessions: Mapping[int, Sequence[int]]) -> None:
        """Let this process and the job come after the server, with what it has put into sessions of their own since."""
        for session, members in {os.getpid(): [os.getpid()], **sessions}.items():
            if session not in self._stepped_back and priority.step_back(members):
                self._stepped_back.add(session)
