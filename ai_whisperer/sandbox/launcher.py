"""The server's side of the keepers: starts the process they are forked from, and talks to each."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import own_code, system
from ai_whisperer.sandbox.base import Job, Outcome, ignored
from ai_whisperer.sandbox.wire import LEVEL_BYTES, Ended, Order, Piece, framed, hear_report


class Launcher:
    """Has one process from which the keepers are forked; it starts with the first job and ends with `close`.

    Between jobs one keeper is forked ahead, so that the next job need not wait for it.
    """

    # The package is loaded from its very place, so that its neighbours are not found: they may be anybody's.
    program = (
        "import sys; from importlib.util import module_from_spec, spec_from_file_location\n"
        "sys.path += sys.argv[3:]; home = sys.argv[2]\n"
        "spec = spec_from_file_location('ai_whisperer', home + '/__init__.py', submodule_search_locations=[home])\n"
        "package = sys.modules['ai_whisperer'] = module_from_spec(spec); spec.loader.exec_module(package)\n"
        "from ai_whisperer.sandbox.zygote import main; main(int(sys.argv[1]))"
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: socket.socket | None = None
        self._spare: tuple[str, socket.socket] | None = None
        self._starts: set[asyncio.Future[socket.socket]] = set()

    async def connect(self, level: str) -> socket.socket:
        """A socket to a fresh keeper, prepared for that level if one is named; raises `SandboxError` if none can be."""
        try:
            if self._orders is not None:
                with contextlib.suppress(OSError):  # the process has died: another is started
                    return self._next_keeper(self._orders, level)
            return await self._started(level)
        except OSError as error:
            raise SandboxError(f"The process that starts sandboxes could not be started: {error}.") from error

    async def close(self) -> None:
        """End the process, if it was started. Jobs that still run have keepers of their own."""
        if self._starts:
            await asyncio.wait(self._starts)
        if self._process is not None:
            await asyncio.to_thread(self._close)

    async def _started(self, level: str) -> socket.socket:
        """Start the process in a thread, which goes on if nobody waits any more: then its keeper is let go."""
        start = asyncio.ensure_future(asyncio.to_thread(self._restarted, level))
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)
        try:
            return await asyncio.shield(start)
        except asyncio.CancelledError:
            start.add_done_callback(_let_go)
            raise

    def _restarted(self, level: str) -> socket.socket:
        with self._lock:
            if self._orders is not None and self._process is not None and self._process.poll() is None:
                return self._next_keeper(self._orders, level)
            self._end()
            ours, theirs = socket.socketpair()
            with theirs:
                number = str(theirs.fileno())
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        "-c",
                        self.program,
                        number,
                        own_code.PACKAGE,
                        *own_code.library_folders(),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={"PATH": system.PATH, "LANG": "C.UTF-8"},
                    cwd="/",
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            self._orders = ours
            return self._keeper(ours, level)

    def refill(self, level: str) -> None:
        """Have a keeper forked for the next job of that level, if none is waiting; best when nobody waits for it."""
        if not self._lock.acquire(blocking=False):  # it is being started or ended
            return
        try:
            if self._spare is None and self._orders is not None:
                with contextlib.suppress(OSError):  # the process has died: the next job starts another
                    self._spare = (level, self._keeper(self._orders, level))
        finally:
            self._lock.release()

    def _next_keeper(self, orders: socket.socket, level: str) -> socket.socket:
        if self._spare is None:
            return self._keeper(orders, level)
        (prepared_for, spare), self._spare = self._spare, None
        with contextlib.suppress(BlockingIOError):
            if prepared_for == level:
                spare.recv(1, socket.MSG_PEEK)  # only one that has died has something to read: the end
            spare.close()
            return self._keeper(orders, level)
        return spare

    def _keeper(self, orders: socket.socket, level: str) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(orders, [level.ljust(LEVEL_BYTES).encode()], [theirs.fileno()], socket.MSG_DONTWAIT)
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)  # noqa: FBT003 - the socket's own words
        return ours

    def _close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._spare is not None:
            self._spare[1].close()
        if self._orders is not None:
            self._orders.close()
        self._spare = self._orders = None
        if self._process is not None:
            self._process.wait()
            self._process = None


def _let_go(start: asyncio.Future[socket.socket]) -> None:
    if not start.cancelled() and start.exception() is None:
        start.result().close()


class KeptSandbox:
    """A sandbox of one level, whose jobs run under keepers."""

    def __init__(self, name: str, launcher: Launcher) -> None:
        self.name = name
        self._launcher = launcher

    async def run(self, job: Job, on_output: Callable[[bytes], None] = ignored) -> Outcome:
        # A keeper that was prepared for the level has given up the network, and cannot get it back.
        connection = await self._launcher.connect("" if job.network else self.name)
        order = framed(Order(level=self.name, job=job))
        try:
            sent = _sent_at_once(connection, order)
            hearing = asyncio.ensure_future(_carried_out(connection, order[sent:], on_output))
            await _waited_for(hearing, connection)
            return hearing.result()
        finally:  # after who waits for the outcome has it: what is woken by this needs the processor too
            asyncio.get_running_loop().call_soon(self._clear_up, connection)

    def _clear_up(self, connection: socket.socket) -> None:
        connection.close()
        self._launcher.refill(self.name)


async def _waited_for(hearing: asyncio.Future[Outcome], connection: socket.socket) -> None:
    """Wait for the end; if cancelled, have the job killed and wait for the end all the same."""
    cancelled: asyncio.CancelledError | None = None
    while not hearing.done():
        try:
            await asyncio.wait([hearing])
        except asyncio.CancelledError as error:
            cancelled = error
            with contextlib.suppress(OSError):  # the keeper is gone
                connection.shutdown(socket.SHUT_WR)
    if cancelled is not None:
        with contextlib.suppress(SandboxError):
            hearing.result()
        raise cancelled


def _sent_at_once(connection: socket.socket, order: bytes) -> int:
    """How much of the order could be sent, so that the keeper works while this process gets ready to listen."""
    with contextlib.suppress(OSError):  # it shows again when the rest is sent, or the answer read
        return connection.send(order)
    return 0


async def _carried_out(connection: socket.socket, order: bytes, on_output: Callable[[bytes], None]) -> Outcome:
    """Send what is left of the order, and hear how the job ends."""
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, order)
        while True:
            report = await hear_report(partial(loop.sock_recv, connection))
            if isinstance(report, Piece):
                on_output(report.output)
            elif isinstance(report, Ended):
                return report.outcome
            else:
                raise SandboxError(report.message)
    except (EOFError, OSError) as error:
        raise SandboxError(
            "The keeper of the sandbox ended without a report, so it is not known what the program did."
        ) from error
