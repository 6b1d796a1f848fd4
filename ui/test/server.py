"""A server for the tests of the client and the page.

It prints `ready <url with token>` and serves until its input ends. The file with the rules of its scripted model is the
last argument, if there is one.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings


async def main(data: str, port: str, rules: str | None = None) -> None:
    settings = Settings(data=Path(data), port=int(port))
    if rules is not None:
        settings = replace(settings, model=f"scripted:{rules}")
    async with running(settings) as server:
        sys.stdout.write(f"ready {server.address.page}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
