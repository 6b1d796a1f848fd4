"""A real server with its own event loop in a thread, and what tests want to know of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ai_whisperer.models.base import ModelFactory
from ai_whisperer.models.catalog import resolve
from ai_whisperer.server.serving import RunningServer, running
from ai_whisperer.settings import Settings
from ai_whisperer.tools.function import AnyFunction
from tests.acceptance.raw_socket import RawSocket

T = TypeVar("T")

ALICE, BOB = "token-of-alice-0123456789", "token-of-bob-0123456789"


class ServerInThread:
    """A server that runs until the block is left."""

    def __init__(
        self, settings: Settings, *, model_factory: ModelFactory = resolve, tools: Iterable[AnyFunction] = ()
    ) -> None:
        self.settings = settings
        self._model_factory = model_factory
        self._tools = tuple(tools)
        self._up: concurrent.futures.Future[RunningServer] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._serve, name="server of a test")

    def __enter__(self) -> ServerInThread:
        self._thread.start()
        self.running = self._up.result(timeout=90)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(timeout=90)
        assert not self._thread.is_alive(), "the server does not end"

    @property
    def url(self) -> str:
        return self.running.address.url

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def token(self) -> str:
        return self.running.address.token

    def connect(self, token: str | None = None, **options: Any) -> RawSocket:
        """A client with the right token."""
        return RawSocket(self.port, token=token or self.token, **options)

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run something on the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(timeout=90)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds that is asked on the server's event loop."""

        async def held() -> None:
            async with asyncio.timeout(60):
                while not condition():  # noqa: ASYNC110 - nobody tells when it does
                    await asyncio.sleep(0.002)

        self.do(held)

    def contents(self) -> dict[str, list[Any]]:
        """Every row of every table, as they are on disk."""
        return contents_of(self.settings.data)

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if self._up.done():
                raise
            self._up.set_exception(error)

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._leave = asyncio.Event()
        async with running(self.settings, model_factory=self._model_factory, tools=self._tools) as server:
            self._up.set_result(server)
            await self._leave.wait()


def contents_of(data: Path) -> dict[str, list[Any]]:
    """Every row of every table of a data folder."""
    connection = apsw.Connection(str(data / "whisperer.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {table: list(connection.execute(f"SELECT * FROM {table}")) for table in tables}  # noqa: S608
    finally:
        connection.close()


class LogWitness(logging.Handler):
    """Keeps every line that is logged, in the form in which it would be written."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
        self.lines: list[str] = []
        self.complaints: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self.lines.append(line)
        if record.levelno >= logging.ERROR or record.exc_info:
            self.complaints.append(line)


@contextmanager
def witnessed(level: int = logging.DEBUG) -> Iterator[LogWitness]:
    """Everything that any logger says while the block runs."""
    witness = LogWitness()
    root = logging.getLogger()
    before = root.level
    root.addHandler(witness)
    root.setLevel(level)
    try:
        yield witness
    finally:
        root.setLevel(before)
        root.removeHandler(witness)
