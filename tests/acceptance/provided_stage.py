"""A whole server whose agents ask a real provider over HTTP, with a client, for tests of what goes all the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ai_whisperer.client import Client
from ai_whisperer.server.address import Address
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.testing.model_server import ModelServer, Respond
from tests.acceptance.command_stage import Ran
from tests.acceptance.command_stage import run as run_to_end


class Provided(NamedTuple):
    """A server in a data folder, its client, and the provider that its agents ask."""

    client: Client
    provider: ModelServer
    address: Address
    data: Path

    async def command(self, *arguments: str) -> Ran:
        """Run a command against the server."""
        return await asyncio.to_thread(run_to_end, *arguments, "--data", str(self.data))

    def asked(self, at: int = -1) -> list[dict[str, Any]]:
        """The messages of a request."""
        messages: list[dict[str, Any]] = list(self.provider.received)[at].body["messages"]
        return messages


@asynccontextmanager
async def provided(respond: Respond, data: Path, **settings: Any) -> AsyncIterator[Provided]:
    """A server with the provider that answers so; the address of the provider is in the environment meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        async with ModelServer(respond) as provider:
            patch.setenv("OPENAI_BASE_URL", provider.base_url)
            patch.setenv("OPENAI_API_KEY", "any")
            patch.setenv("ANTHROPIC_BASE_URL", provider.base_url.removesuffix("/v1"))
            patch.setenv("ANTHROPIC_API_KEY", "any")
            own = Settings(**{"data": data, "port": 0, "model": "openai-chat:test-model", **settings})
            async with (
                running(own) as server,
                Client(server.address.url, server.address.token, session_id="default") as client,
            ):
                yield Provided(client, provider, server.address, data)


def play(respond: Respond, data: Path, scenario: Callable[[Provided], Awaitable[None]], **settings: Any) -> None:
    """Run the scenario with such a server."""

    async def main() -> None:
        async with asyncio.timeout(120), provided(respond, data, **settings) as stage:
            await scenario(stage)

    asyncio.run(main())
