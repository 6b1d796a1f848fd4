"""A server for the tests of the client: prints `ready <url with token>` and serves until its input ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings


async def main(data: str, port: str) -> None:
    async with running(Settings(data=Path(data), port=int(port))) as server:
        sys.stdout.write(f"ready {server.address.page}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
