"""From the name of a host to a connection: lookups that are shared, and addresses of which some lead nowhere."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from ai_whisperer.errors import ModelUnavailableError
from ai_whisperer.models.base import Alive, collect
from ai_whisperer.models.http.address import Origin
from ai_whisperer.models.http.pool import pool_of
from ai_whisperer.models.openai_chat import OpenAIChatModel
from ai_whisperer.testing.model_server import ModelServer
from tests.acceptance.provider_stage import HELLO, ask

pytestmark = pytest.mark.usefixtures("provider_environment")

LOCAL = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
LOCAL6 = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))


class Names:
    """Name servers that know one address, and answer when they may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: Any) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self._found = found
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: str, *args: Any, **more: Any) -> Any:
        if host != "provider.test":
            return self._real(host, *args, **more)
        self.asked.append(host)
        self.may_answer.wait(10)
        if not self._found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return list(self._found)


async def listening() -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


def test_a_crowd_waits_for_one_lookup_and_no_provider_is_blamed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch, LOCAL)

    async def run() -> None:
        server, port = await listening()
        pool = pool_of(asyncio.get_running_loop())
        pool.enter()
        origin = Origin("provider.test", port, is_secure=False)
        async with server:
            asyncio.get_running_loop().call_later(0.6, names.may_answer.set)
            taken = await asyncio.gather(*(pool.take(origin, connect_seconds=0.5, turn_seconds=10) for _ in range(30)))
            for connection in taken:
                assert connection is not None
                pool.give_back(origin, connection, is_over=False)
        await pool.leave()
        assert names.asked == ["provider.test"]

    asyncio.run(run())


def test_a_request_that_waits_for_a_lookup_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch, LOCAL)
    monkeypatch.setattr("ai_whisperer.models.own_client._TURN_SECONDS", 0.001)

    async def run() -> None:
        async with ModelServer(lambda _body, _number: HELLO) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url.replace("127.0.0.1", "provider.test"))
            model = OpenAIChatModel("openai-chat:a")
            events = model.stream(ask())
            assert [type(await anext(events)) for _ in range(3)] == [Alive] * 3
            names.may_answer.set()
            assert (await collect(events)).text == HELLO.text
            await model.close()

    asyncio.run(run())


@pytest.mark.parametrize("found", [(LOCAL6, LOCAL), (LOCAL, LOCAL6)])
def test_an_address_that_leads_nowhere_is_passed_over(found: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    Names(monkeypatch, *found).may_answer.set()

    async def run() -> None:
        async with ModelServer(lambda _body, _number: HELLO) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url.replace("127.0.0.1", "provider.test"))
            model = OpenAIChatModel("openai-chat:a")
            assert (await collect(model.stream(ask()))).text == HELLO.text
            await model.close()

    asyncio.run(run())


@pytest.mark.parametrize(("found", "words"), [((), "cannot be resolved"), ((LOCAL6, LOCAL), "127.0.0.1.*Check its")])
def test_a_host_without_a_connection_is_told_of(
    found: tuple[Any, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch, *found).may_answer.set()

    async def run() -> None:
        server, port = await listening()
        server.close()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://provider.test:{port}/v1")
        model = OpenAIChatModel("openai-chat:a")
        with pytest.raises(ModelUnavailableError, match=words):
            await collect(model.stream(ask()))
        await model.close()

    asyncio.run(run())
