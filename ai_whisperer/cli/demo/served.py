"""The server of the demo, in a process of its own: it can be killed at any moment and started again.

Called with the data folder, the port and the model. When it takes requests it prints its address as a line of JSON; if
it cannot continue, it prints why as another. It leaves cleanly on SIGTERM, and when its standard input ends: so it does
not outlive the demo, however that ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import msgspec

from ai_whisperer.cli.racing import first_of
from ai_whisperer.errors import WhispererError
from ai_whisperer.examples.tools import TOOLS
from ai_whisperer.secrets import redacted
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """Why it cannot continue, as a `WhispererError` says it."""

    code: str
    message: str


async def serve(settings: Settings) -> None:
    """Serve until it is time to leave; raises what has stopped the store, if something has."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    async with running(settings, tools=TOOLS) as server:
        print(msgspec.json.encode(server.address).decode(), flush=True)
        outcome = await first_of(asked.wait(), _left_alone(), server.failure())
    if isinstance(outcome, BaseException):
        raise outcome


async def _left_alone() -> None:
    """Wait until nobody holds the other end of the standard input."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass


def main(data: str, port: str, model: str) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # they are for the demo, which ends this process in order
        signal.signal(number, signal.SIG_IGN)
    settings = Settings(data=Path(data), port=int(port), model=model, shutdown_grace_seconds=2.0)
    try:
        asyncio.run(serve(settings))
    except WhispererError as error:
        print(msgspec.json.encode(Complaint(code=error.code, message=redacted(error.message))).decode(), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
