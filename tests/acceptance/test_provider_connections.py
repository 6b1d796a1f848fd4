"""The connections of our own client: kept, opened in turn, through proxies and TLS, and never blamed for our delays."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.errors import ModelError, ModelRefusedError, ModelUnavailableError
from ai_whisperer.models.base import collect
from ai_whisperer.models.http import pool
from ai_whisperer.models.http.connecting import ConnectTimeoutError, Patience
from ai_whisperer.models.openai_chat import OpenAIChatModel
from ai_whisperer.testing.model_server import ModelServer, Reply, obliging
from tests.acceptance.provider_stage import HELLO, ask

pytestmark = pytest.mark.usefixtures("provider_environment")


@asynccontextmanager
async def counted(server: ModelServer, *, secure: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[int]]]:
    """A front before the server that counts connections: all that there were, those open now, the most at once."""
    counts = [0, 0, 0]
    tasks: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counts[0] += 1
        counts[1] += 1
        counts[2] = max(counts[1:])
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(server.root_url.rpartition(":")[2]))
        await asyncio.gather(pipe(reader, inner_writer), pipe(inner_reader, writer))
        counts[1] -= 1

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve(reader, writer)))

    front = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=secure, backlog=2_000)
    async with front:
        scheme = "http" if secure is None else "https"
        yield f"{scheme}://127.0.0.1:{front.sockets[0].getsockname()[1]}/v1", counts
    await asyncio.gather(*tasks)


def test_a_connection_is_used_again_and_closed_with_the_last_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with ModelServer(lambda _body, _number: HELLO) as server, counted(server) as (url, counts):
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            models = [OpenAIChatModel("openai-chat:a"), OpenAIChatModel("openai-chat:b")]
            for _ in range(3):
                for model in models:
                    await collect(model.stream(ask()))
                    while not pool.pool_of(asyncio.get_running_loop())._idle:  # noqa: ASYNC110
                        await asyncio.sleep(0)  # the end of the response is on its way
            assert counts[0] == 1
            for model in models:
                await model.close()
            assert asyncio.get_running_loop() not in pool._pools
            assert len(server.received) == 6

    asyncio.run(run())


def test_a_kept_connection_that_the_server_has_closed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        replies = (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            for body in [b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'] * 2
        )

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(next(replies))
            await writer.drain()
            writer.close()  # though the response did not say so

        peer = await asyncio.start_server(talk, "127.0.0.1", 0)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{peer.sockets[0].getsockname()[1]}/v1")
        model = OpenAIChatModel("openai-chat:a")
        async with peer:
            for _ in range(2):
                assert (await collect(model.stream(ask()))).text == "hi"
        await model.close()

    asyncio.run(run())


def test_a_crowd_opens_its_connections_in_turn_and_all_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = [0, 0]

    async def run() -> None:
        connect = pool._connect

        async def watched(*args: object) -> object:
            begun[0] += 1
            begun[1] = max(begun)
            try:
                return await connect(*args)  # type: ignore[arg-type]
            finally:
                begun[0] -= 1

        monkeypatch.setattr(pool, "_connect", watched)
        monkeypatch.setattr(pool, "CONNECTS_AT_ONCE", 8)
        async with ModelServer(obliging, latency_seconds=0.01) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            models = [OpenAIChatModel(f"openai-chat:{number}") for number in range(200)]
            answers = await asyncio.gather(
                *(collect(model.stream(ask(UserTurn(text=model.model)))) for model in models)
            )
            assert [answer.text for answer in answers] == [f"done: {number}" for number in range(200)]
            for model in models:
                await model.close()

    asyncio.run(run())
    assert begun == [0, 8]


def test_an_event_loop_that_is_held_up_fails_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with ModelServer(lambda _body, _number: HELLO) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            model = OpenAIChatModel("openai-chat:a")
            asyncio.get_running_loop().call_soon(_busy, 0.3)
            assert (await collect(model.stream(ask(settings={"timeout": 0.1})))).text == HELLO.text
            await model.close()

    asyncio.run(run())


def _busy(seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass


def test_patience_ends_a_wait_for_somebody_and_no_wait_that_others_end() -> None:
    async def run() -> None:
        with pytest.raises(ConnectTimeoutError):
            async with Patience(0.001):
                await asyncio.Event().wait()
        async with Patience(60):
            pass
        task = asyncio.create_task(_patient())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


async def _patient() -> None:
    async with Patience(60):
        await asyncio.Event().wait()


# Proxies and TLS


@asynccontextmanager
async def proxy(
    answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that opens tunnels, and the heads of the requests that it got."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        writer.write(answer)
        if b" 200 " in answer:
            port = int(head.split(b" ")[1].rpartition(b":")[2])
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copied(reader, inner_writer), _copied(inner_reader, writer))
        else:
            await writer.drain()
            writer.close()

    tasks: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(
        lambda reader, writer: tasks.append(asyncio.create_task(serve(reader, writer))), "127.0.0.1", 0
    )
    async with server:
        yield f"http://me:hunter2-hunter2@127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    await asyncio.gather(*tasks)


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def test_a_provider_is_asked_over_tls(certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with (
            ModelServer(lambda _body, _number: HELLO) as server,
            counted(server, secure=certificate) as (url, counts),
        ):
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            model = OpenAIChatModel("openai-chat:a")
            for _ in range(2):
                assert (await collect(model.stream(ask()))).text == HELLO.text
            assert counts[0] <= 2
            await model.close()

    asyncio.run(run())


def test_a_proxy_opens_a_tunnel_for_tls(certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with (
            ModelServer(lambda _body, _number: HELLO) as server,
            counted(server, secure=certificate) as (url, _),
            proxy() as (address, heads),
        ):
            monkeypatch.delenv("NO_PROXY")
            monkeypatch.setenv("HTTPS_PROXY", address)
            monkeypatch.setenv("OPENAI_BASE_URL", url.replace("127.0.0.1", "provider.test"))
            model = OpenAIChatModel("openai-chat:a")
            assert (await collect(model.stream(ask()))).text == HELLO.text
            await model.close()
            assert heads[0].startswith(b"CONNECT provider.test:")
            assert b"Proxy-Authorization: Basic " in heads[0]
            assert server.received[0].headers["host"].startswith("provider.test:")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [(407, ModelRefusedError, "wants a name and a password"), (502, ModelUnavailableError, "Check the proxy")],
)
def test_a_proxy_that_opens_none_is_told_of(
    status: int, kind: type[ModelError], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with proxy(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\n\r\n" % status) as (address, _):
            monkeypatch.delenv("NO_PROXY")
            monkeypatch.setenv("HTTPS_PROXY", address)
            monkeypatch.setenv("OPENAI_BASE_URL", "https://provider.test/v1")
            model = OpenAIChatModel("openai-chat:a")
            with pytest.raises(kind, match=words) as caught:
                await collect(model.stream(ask()))
            assert "hunter2" not in caught.value.message
            await model.close()

    asyncio.run(run())


def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        reply = Reply(status=307, headers={"Location": "http://127.0.0.1:1/v1/chat/completions"})
        async with ModelServer(lambda _body, _number: reply) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            model = OpenAIChatModel("openai-chat:a")
            with pytest.raises(ModelRefusedError, match="sends requests elsewhere"):
                await collect(model.stream(ask()))
            await model.close()

    asyncio.run(run())
