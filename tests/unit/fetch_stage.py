"""Fetching from a server on loopback: by the tool, or under names whose addresses are made up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.core.address_kinds import IPAddress
from ai_whisperer.core.network import grants_of
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.fetching.exchange import Streams
from ai_whisperer.tools.fetching.fetch_tool import fetch_url, result_of
from ai_whisperer.tools.fetching.fetcher import Fetcher, request_for
from ai_whisperer.tools.fetching.target import Target
from ai_whisperer.tools.function import CancelSignal, ToolContext
from ai_whisperer.tools.workplace import OWN, Folder, Workplace
from tests.unit.fetch_server import FetchServer

PUBLIC = "93.184.215.14"
MEBIBYTE = 1 << 20


def context_of(*network: str, progress: list[str] | None = None, **limits: Any) -> ToolContext:
    own = Folder(path=Path("/nowhere"), access=Access.WRITE)
    return ToolContext(
        session_id="s",
        agent_id="a",
        task_id="t",
        step_id="t.1",
        cancelled=CancelSignal(),
        workplace=Workplace(folders={OWN: own}, network=network, limits=EffectiveLimits(**limits)),
        progress=(progress if progress is not None else []).append,
    )


def fetched(server: FetchServer, path: str, *, progress: list[str] | None = None, **arguments: Any) -> ToolResult:
    """What the tool returns for a path of the server, which is granted."""
    context = context_of(server.host, progress=progress)
    result = asyncio.run(fetch_url.function(context, url=server.url(path), **arguments))
    assert isinstance(result, ToolResult)
    return result


def refusal(server: FetchServer, path: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        fetched(server, path, **arguments)
    return caught.value.message


class Names:
    """Names and the addresses that they have, one answer after the other; every connection ends at the server."""

    def __init__(self, server: FetchServer, **answers: list[list[str]]) -> None:
        self._server = server
        self._answers = {name.replace("_", "."): lists for name, lists in answers.items()}
        self.asked: list[str] = []
        self.connected: list[str] = []

    async def resolve(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answers = self._answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, address: IPAddress, _target: Target) -> Streams:
        self.connected.append(str(address))
        return await asyncio.open_connection("127.0.0.1", self._server.port)

    def fetch(self, url: str, *network: str, method: str = "GET", **fields: Any) -> ToolResult:
        fields = {"headers": None, "body": None, "max_bytes": MEBIBYTE} | fields
        coroutine = Fetcher(resolve=self.resolve, connect=self.connect).fetch(
            request_for(url, method, **fields), grants_of(network), timeout_seconds=60, progress=lambda _: None
        )
        return result_of(asyncio.run(coroutine), start=0, max_characters=1000)

    def refusal(self, url: str, *network: str, **fields: Any) -> str:
        with pytest.raises(ToolError) as caught:
            self.fetch(url, *network, **fields)
        return caught.value.message
