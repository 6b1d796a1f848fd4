"""The bounds for what providers send are those of their clients, not of all clients of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest

from ai_whisperer.models.bounded_http import bound
from ai_whisperer.testing.model_server import ModelServer, Reply

LIBRARIES = ("httpx", "httpx2")
START = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n"


def asked(*pieces: bytes, library: str, ask: Callable[[Any, str], Awaitable[None]]) -> None:
    """Let a client of the library ask a server that sends these pieces."""

    async def main() -> None:
        async with (
            ModelServer(lambda *_: Reply(raw=lambda: pieces)) as server,
            import_module(library).AsyncClient(trust_env=False) as client,
        ):
            await ask(client, f"{server.base_url}/chat/completions")

    asyncio.run(main())


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_long_head_is_refused_by_a_client_that_is_bound_and_read_by_others_in_the_process(library: str) -> None:
    pieces = (START, b"x-more: " + b"x" * 50_000 + b"\r\n\r\nok")

    async def others(client: Any, url: str) -> None:
        bound(import_module(library).AsyncClient())
        assert (await client.post(url, json={"model": "m", "stream": True, "messages": []})).text == "ok"

    async def ours(client: Any, url: str) -> None:
        bound(client)
        with pytest.raises(import_module(library).RemoteProtocolError, match="more than 16,384 bytes"):
            await client.post(url, json={"model": "m", "stream": True, "messages": []})

    asked(*pieces, library=library, ask=others)
    asked(*pieces, library=library, ask=ours)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(START + b"\r\n", id="usual"),
        pytest.param(START.replace(b"\r\n", b"\n") + b"\n", id="bare line ends"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 3 + START + b"\r\n", id="after hints"),
    ],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_long_body_is_no_head(library: str, head: bytes) -> None:
    body = b"x" * 100_000

    async def ours(client: Any, url: str) -> None:
        bound(client)
        assert (await client.post(url, json={"model": "m", "stream": True, "messages": []})).content == body

    asked(head.replace(b"length: 2", b"length: %d" % len(body)), body, library=library, ask=ours)


@pytest.mark.parametrize("library", LIBRARIES)
def test_heads_before_the_head_without_end_are_refused(library: str) -> None:
    async def ours(client: Any, url: str) -> None:
        bound(client)
        with pytest.raises(import_module(library).RemoteProtocolError, match="more than 16,384 bytes"):
            await client.post(url, json={"model": "m", "stream": True, "messages": []})

    asked(*[b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"] * 1_000, library=library, ask=ours)
