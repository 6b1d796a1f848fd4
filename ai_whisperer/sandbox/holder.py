"""The process between a keeper and a job whose sandbox is a library: it takes the limits, and is the job's init.

The keeper stays outside: it is under no limit of the job, and where namespaces can be had the job has no name for it.
When the holder ends, the kernel ends all that is in its namespace. It ends that itself first and says so: to take a
namespace down is slow, and nobody has to wait for it when nothing of the job is left in it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Protocol

import msgspec

from ai_whisperer.domain.record import Record
from ai_whisperer.errors import SandboxError, WhispererError
from ai_whisperer.sandbox import family, namespaces
from ai_whisperer.sandbox.base import Ending, Job
from ai_whisperer.sandbox.cgroups import JobGroup
from ai_whisperer.sandbox.held import Started, Status, let_go_of_streams
from ai_whisperer.sandbox.wire import Order, framed, read_body, read_order

_REAP_SECONDS = 0.2
_STREAMS = b"+"
"""Goes before the order, with the streams of the job."""


class Library(Protocol):
    """What a holder does for its level, in the holder itself."""

    @property
    def goes_apart(self) -> bool:
        """Whether the holder is to be the first in a world of processes of its own, if that can be had."""
        ...

    def prepare(self, *, apart: bool) -> None:
        """Do what can be done before the job is known; `apart`: the processes of others are out of reach."""
        ...

    def begin(self, job: Job) -> Started:
        """Start the job; raises `SandboxError` if it cannot be held."""
        ...


class _Report(Record, frozen=True, kw_only=True):
    error: str = ""
    status: Status = Status()
    all_gone: bool = False
    used: family.Used = family.Used()


_decode = msgspec.msgpack.Decoder(_Report).decode


class Holder:
    """A process that waits for a job, in a world of processes of its own where that can be had."""

    holders = 1

    def __init__(self, library: Library) -> None:
        self.used = family.Used()
        self.all_gone = False
        apart = library.goes_apart and namespaces.enter_processes()
        self._connection, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                self._connection.close()
                _hold(library, theirs, apart=apart)
            os._exit(1)
        theirs.close()

    def start(self, job: Job) -> None:
        """Start the job, with the standard streams of this process; raises `SandboxError` if it cannot be held."""
        order = framed(Order(level="", job=msgspec.structs.replace(job, stdin=b"")))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self._connection, [_STREAMS, order], [0, 1, 2]) - len(_STREAMS)
            self._connection.sendall(order[sent:])
        report = self._report()
        if report is None or report.error:
            raise SandboxError(report.error if report else "The process that holds the program has died.")

    def ended(self) -> int:
        return self._connection.fileno()

    def status(self) -> Status:
        report = self._report()
        if report is None:
            return Status(ending=Ending.SIGNALLED, number=signal.SIGKILL)
        self.used, self.all_gone = report.used, report.all_gone
        return report.status

    def _report(self) -> _Report | None:
        try:
            return _decode(read_body(self._connection))
        except (EOFError, OSError):
            return None


class HolderLevel:
    """A level whose jobs have a holder each. `library` makes what a holder does, for a job like the one it is given.

    One that was prepared for a job without network cannot get any more what it has given up.
    """

    own_threads = 8
    """The holder, and the threads by which a library watches over the job."""

    def __init__(self, library: Callable[[Job], Library]) -> None:
        self._library = library
        self._waiting: Holder | None = None

    def start(self, job: Job, group: JobGroup) -> Holder:
        del group  # what the keeper starts is in it
        holder = self._waiting or Holder(self._library(job))
        holder.start(job)
        return holder

    def warm_up(self, job: Job) -> None:
        self._waiting = Holder(self._library(job))


def _hold(library: Library, connection: socket.socket, *, apart: bool) -> None:
    family.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which the first of a world of processes never gets from within
    os.setsid()
    library.prepare(apart=apart)
    sent, streams, _, _ = socket.recv_fds(connection, len(_STREAMS), 3)
    if not sent:
        return
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    try:
        process = library.begin(read_order(connection).job)
    except Exception as error:  # noqa: BLE001 - whatever it is, the keeper has to hear of it
        unknown = f"The program could not be started: {type(error).__name__}: {error}."
        connection.sendall(framed(_Report(error=error.message if isinstance(error, WhispererError) else unknown)))
        return
    let_go_of_streams()
    connection.sendall(framed(_Report()))
    _wait_for(process.pid)
    status = process.status()
    all_gone = family.end_namespace()
    ended = family.used_by_ended()
    used = msgspec.structs.replace(ended, cpu_seconds=ended.cpu_seconds + family.cpu_of_this())
    connection.sendall(framed(_Report(status=status, all_gone=all_gone, used=used)))
    connection.recv(1)  # until the keeper, which has more urgent things to do, ends this process


def _wait_for(main: int) -> None:
    """Return when the main process has ended; bury those whose parents have ended before them."""
    poll = select.poll()
    poll.register(os.pidfd_open(main), select.POLLIN)
    while not poll.poll(_REAP_SECONDS * 1000):
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid != main:
                os.waitpid(ended.si_pid, os.WNOHANG)
