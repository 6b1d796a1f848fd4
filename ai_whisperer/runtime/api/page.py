"""The page of a session that a program holds open."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from ai_whisperer.store.base import Store
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.tools.function import Tool


class Served(Struct, frozen=True):
    """What a page is served of: an open session and what is in it. `data` is its folder, if it has one."""

    manager: Any
    store: Store
    data: Path | None
    model: str
    templates: TemplateLibrary
    tools: Sequence[Tool]


_PageOf = Callable[[Served], AbstractAsyncContextManager[str]]
"""See `server.embedding.page_of`."""


class SessionPage:
    """Serves the page while the session is open, if it is wanted."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._stack = AsyncExitStack()
        self.url: str | None = None

    async def begin(self, served: Served) -> None:
        """Serve it, and print its address, with the token, for the person who started the program."""
        if not self._wanted:
            return
        # The server is built on this runtime, so it is found by its name, and loaded only by those who want it.
        page_of: _PageOf = import_module("ai_whisperer.server.embedding").page_of
        self.url = await self._stack.enter_async_context(page_of(served))
        sys.stderr.write(f"page {self.url}\n")
        sys.stderr.flush()

    async def end(self) -> None:
        self.url = None
        await self._stack.aclose()
