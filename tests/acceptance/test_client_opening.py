"""Where a client connects to, whom the server lets in, and what a client is that is not open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import Client
from ai_whisperer.errors import (
    ClosedError,
    ConnectionLostError,
    InvalidInputError,
    StateError,
    UnauthorizedError,
)
from tests.acceptance.client_stage import StagedServer


@pytest.mark.parametrize(
    "written",
    [
        "{url}/?token={token}",
        "{url}?token={token}",
        "{url}/ws?token={token}",
        "{ws}/ws?token={token}",
        "{ws}/?x=1&token={token}",
    ],
)
def test_any_form_of_the_address_leads_to_the_server(server: StagedServer, written: str) -> None:
    url, token = server.address.url, server.address.token

    async def main() -> None:
        async with Client(written.format(url=url, ws=url.replace("http", "ws"), token=token)) as client:
            assert (await client.server_info()).principal == "local"

    asyncio.run(main())


@pytest.mark.parametrize("token", [None, "wrong", "b\u00e4d", "", "two words"])
def test_a_wrong_token_is_refused_at_once(server: StagedServer, token: str | None) -> None:
    async def main() -> None:
        with pytest.raises(UnauthorizedError, match="token"):
            async with Client(server.address.url, token):
                raise AssertionError("it was let in")

    asyncio.run(main())


@pytest.mark.parametrize("url", ["", "127.0.0.1:8642", "ftp://127.0.0.1/", "http://", "http://host:port/", None])
def test_what_is_no_address_is_refused_without_its_secrets(url: Any) -> None:
    with pytest.raises(InvalidInputError, match="address of a server") as caught:
        Client(url and f"{url}?token=secret")
    assert "secret" not in caught.value.message


def test_a_host_that_the_server_does_not_answer_to_is_named(server: StagedServer) -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLostError, match="does not answer to the host 'localhost"):
            await Client(server.address.page.replace("127.0.0.1", "localhost")).open()

    asyncio.run(main())


def test_a_client_that_is_not_open_says_so(server: StagedServer) -> None:
    async def main() -> None:
        client = Client(server.address.page)
        for use in (client.list_agents, client.at_rest):
            with pytest.raises(ClosedError, match="async with"):
                await use()
        with pytest.raises(ClosedError, match="async with"):
            client.events()

    asyncio.run(main())


def test_a_client_that_is_open_is_not_opened_again(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        before = asyncio.all_tasks()
        with pytest.raises(StateError, match="open already"):
            await client.open()
        assert asyncio.all_tasks() == before
        await client.close()
        await client.open()
        assert await client.list_agents() == []

    server.play(scenario, session_id=session_id)
