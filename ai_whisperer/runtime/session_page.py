"""The page of a session that a program holds open."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any


class SessionPage:
    """Serves the page while the session is open, if it is wanted."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._stack = AsyncExitStack()
        self.url: str | None = None

    async def begin(self, manager: Any, *, data: str | Path | None, **means: Any) -> None:
        """Serve it, and print its address, with the token, for the person who started the program."""
        if not self._wanted:
            return
        # The server is built on this runtime, so it is found by its name, and loaded only by those who want it.
        embedding = import_module("ai_whisperer.server.embedding")
        serving = embedding.serving(manager, data=None if data is None else Path(data), **means)
        self.url = (await self._stack.enter_async_context(serving)).page
        sys.stderr.write(f"page {self.url}\n")
        sys.stderr.flush()

    async def end(self) -> None:
        self.url = None
        await self._stack.aclose()
