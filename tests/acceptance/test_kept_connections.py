"""Which connections of our own client are kept for another request, and how many there may be."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import collect
from ai_whisperer.models.http import pool
from ai_whisperer.models.openai_chat import OpenAIChatModel
from tests.acceptance.provider_stage import ask

pytestmark = pytest.mark.usefixtures("provider_environment")

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
FINISH = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await body_of(reader)
    writer.write(HEAD + b"content-length: %d\r\n\r\n%b" % (len(FINISH), FINISH))


async def greet_and_go_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await body_of(reader)
    writer.write(HEAD + b"content-length: 1000\r\n\r\n" + FINISH + DONE)


@asynccontextmanager
async def peer(talk: Talk, *, secure: ssl.SSLContext | None = None) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that talks so: its address, and how many requests came on each of its connections."""
    asked: list[int] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(asked)
        asked.append(0)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                asked[number] += 1
                await talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=secure, backlog=1_000) as server:
        scheme = "http" if secure is None else "https"
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def model_at(url: str) -> AsyncIterator[OpenAIChatModel]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", url)
        model = OpenAIChatModel("openai-chat:a")
        try:
            yield model
        finally:
            await model.close()


async def body_of(reader: asyncio.StreamReader) -> None:
    """Read the body, which is a JSON object."""
    await reader.readuntil(b'"include_usage":true}}')


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_a_connection_on_which_reading_was_paused_is_read_again() -> None:
    """The client takes what comes apart in slices of 16 KiB: here one ends between the last event and the end."""
    start = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    fixed = len(start) + len(chunk(FINISH + DONE)) - 2
    comment = b":" + b"x" * ((16 << 10) - fixed - len(b"4000\r\n\r\n") - 3) + b"\n\n"
    response = start + chunk(comment) + chunk(FINISH + DONE) + chunk(b"")
    assert response[: 16 << 10].endswith(DONE)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await body_of(reader)
        writer.write(response)

    async def run() -> None:
        async with peer(talk) as (url, asked), model_at(url) as model:
            for _ in range(3):
                assert (await collect(model.stream(ask(settings={"timeout": 1})))).text == "hi"
                while not pool.pool_of(asyncio.get_running_loop())._idle:  # noqa: ASYNC110
                    await asyncio.sleep(0)  # the end of the response is on its way
            assert asked == [3]

    asyncio.run(run())


@pytest.mark.parametrize("is_secure", [False, True])
def test_a_connection_with_a_request_that_was_not_all_sent_is_not_used_again(
    is_secure: bool,  # noqa: FBT001
    certificate: ssl.SSLContext,
) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    replies = iter([refusal, HEAD + b"content-length: %d\r\n\r\n%b" % (len(FINISH), FINISH)])
    is_over = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = next(replies)
        if reply is not refusal:
            await body_of(reader)
        writer.write(reply)
        if reply is refusal:
            await is_over.wait()  # what it has refused it does not read

    async def run() -> None:
        async with peer(talk, secure=certificate if is_secure else None) as (url, asked), model_at(url) as model:
            with pytest.raises(ModelRefusedError, match="413"):
                await collect(model.stream(ask(UserTurn(text="x" * (16 << 20)))))
            assert (await collect(model.stream(ask(settings={"timeout": 1})))).text == "hi"
            assert asked == [1, 1]

    asyncio.run(run())


@pytest.mark.parametrize("talk", [greet, greet_and_go_on])
def test_connections_that_nobody_uses_make_room_for_others(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_room", lambda: 5)

    async def run() -> None:
        async with peer(talk) as (first_url, first), peer(greet) as (second_url, second), model_at(first_url) as one:
            await asyncio.gather(*(collect(one.stream(ask())) for _ in range(5)))
            shared = pool.pool_of(asyncio.get_running_loop())
            async with model_at(second_url) as other:
                await asyncio.gather(*(collect(other.stream(ask())) for _ in range(5)))
                assert sum(map(len, shared._idle.values())) + len(shared._ending) == 5
                assert len(first) == len(second) == 5
                await asyncio.gather(*(collect(other.stream(ask())) for _ in range(5)))
                assert second == [2] * 5
        assert shared._open == 0
        assert not shared._idle

    asyncio.run(run())
