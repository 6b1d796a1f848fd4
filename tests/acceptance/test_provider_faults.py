"""What providers do wrong, over real HTTP."""

import asyncio
import json
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, aclosing
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.errors import (
    ModelCutOffError,
    ModelEmptyError,
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelTimeoutError,
    ModelTooLongError,
    ModelUnavailableError,
)
from ai_whisperer.models.base import (
    Alive,
    CallRequested,
    Finished,
    StreamEvent,
    TextDelta,
    collect,
)
from ai_whisperer.testing.model_server import Call, ModelServer, Reply, obliging, stream_events
from tests.acceptance.provider_stage import (
    HELLO,
    KEY,
    ProviderModel,
    ask,
    failure_of,
    finish_is_among,
    model_at,
    model_named,
    with_server,
)
from tests.acceptance.sandbox_stage import until

pytestmark = pytest.mark.usefixtures("provider_environment", "provider_client")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ModelRefusedError),
        (401, ModelRefusedError),
        (403, ModelRefusedError),
        (404, ModelRefusedError),
        (413, ModelRefusedError),
        (422, ModelRefusedError),
        (408, ModelTimeoutError),
        (407, ModelRefusedError),
        (409, ModelServerError),
        (500, ModelUnavailableError),
        (501, ModelRefusedError),
        (502, ModelUnavailableError),
        (503, ModelUnavailableError),
        (505, ModelRefusedError),
        (529, ModelUnavailableError),
        (429, ModelRateLimitError),
    ],
)
def test_a_status_becomes_an_error_and_is_not_retried_here(status: int, kind: type[ModelError]) -> None:
    error = failure_of(Reply(status=status, error="that went wrong"))
    assert type(error) is kind
    assert "that went wrong" in error.message


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("0.5", 0.5), ("soon", None)])
def test_retry_after_is_passed_on(status: int, header: str, seconds: float | None) -> None:
    error = failure_of(Reply(status=status, headers={"Retry-After": header}))
    assert error.retry_after_seconds == seconds


def test_retry_after_may_be_a_date() -> None:
    error = failure_of(Reply(status=429, headers={"Retry-After": formatdate(time.time() + 86_400, usegmt=True)}))
    assert error.retry_after_seconds is not None
    assert 80_000 < error.retry_after_seconds <= 86_400


def test_an_exhausted_quota_is_refused_since_waiting_would_not_help() -> None:
    error = failure_of(Reply(status=429, error_code="insufficient_quota", error="You exceeded your quota."))
    assert type(error) is ModelRefusedError
    assert "Top up" in error.message


def test_a_conversation_that_is_too_long_is_refused() -> None:
    error = failure_of(Reply(status=400, error_code="context_length_exceeded", error="maximum context length"))
    assert type(error) is ModelTooLongError
    assert "Shorten" in error.message


def test_the_key_is_in_no_message_even_if_the_provider_quotes_it() -> None:
    error = failure_of(Reply(status=401, error=f"Incorrect API key provided: {KEY}"))
    assert KEY not in error.message
    assert "Check the key" in error.message
    assert error.__cause__ is None
    assert error.__suppress_context__


async def _refused() -> str:
    async with ModelServer() as server:
        return server.base_url


async def _unknown_host() -> str:
    return "http://no-such-host.invalid/v1"


@pytest.mark.parametrize("address", [_refused, _unknown_host])
def test_a_server_that_is_not_there_is_an_outage(address: Callable[[], Awaitable[str]]) -> None:
    async def run() -> None:
        async with model_at(await address()) as model:
            with pytest.raises(ModelUnavailableError, match="could not be reached"):
                await collect(model.stream(ask()))

    asyncio.run(run())


@pytest.mark.parametrize("address", ["127.0.0.1:1/v1", "htp://127.0.0.1:1/v1"])
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    async def run() -> None:
        async with model_at(address) as model:
            with pytest.raises(ModelRefusedError, match="begins with http://"):
                await collect(model.stream(ask()))

    asyncio.run(run())


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl on this machine to make a certificate with")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    kind = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *kind, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def run() -> None:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        async with server, model_at(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as model:
            with pytest.raises(ModelRefusedError, match="certificate is not trusted"):
                await collect(model.stream(ask()))

    asyncio.run(run())


def test_a_server_that_takes_no_connection_in_time_is_an_outage() -> None:
    async def run(url: str) -> None:
        async with model_at(url) as model:
            with pytest.raises(ModelUnavailableError, match="could not be reached"):
                await collect(model.stream(ask(settings={"timeout": 0.05})))

    with socket.socket() as full, ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # the kernel takes one or two more than it is told; those after them wait for ever
            client = waiting.enter_context(socket.socket())
            client.settimeout(0)
            client.connect_ex(full.getsockname())
        asyncio.run(run(f"http://127.0.0.1:{full.getsockname()[1]}/v1"))


def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()


@pytest.mark.parametrize("end", [_hang_up, _reset])
def test_a_peer_that_takes_the_request_and_says_nothing_is_an_outage(
    end: Callable[[asyncio.StreamWriter], None],
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        end(writer)

    async def run() -> None:
        peer = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with peer, model_at(f"http://127.0.0.1:{peer.sockets[0].getsockname()[1]}/v1") as model:
            with pytest.raises(ModelUnavailableError):
                await collect(model.stream(ask()))

    asyncio.run(run())


def test_a_provider_that_says_nothing_in_time_is_a_timeout() -> None:
    # So long that a busy machine connects within it.
    error = failure_of(Reply(text="x", stall_after_events=2), ask(settings={"timeout": 0.5}))
    assert type(error) is ModelTimeoutError


@pytest.mark.parametrize("place", range(len(stream_events(HELLO, model="m", number=1)) - 1))
def test_a_malformed_event_is_a_server_error_wherever_it_stands(place: int) -> None:
    assert type(failure_of(replace(HELLO, malformed_after_events=place))) is ModelServerError


@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize(
    "event", ["[]", "null", "7", '"text"', '{"choices": "x"}', '{"choices": [7]}', '{"choices": [{"delta": []}]}']
)
def test_json_of_the_wrong_shape_never_escapes_as_another_error(event: str, place: int) -> None:
    async def body(model: ProviderModel, _: ModelServer) -> None:
        try:
            answer = await collect(model.stream(ask()))
        except ModelServerError:
            pass
        else:
            assert answer.text == HELLO.text

    with_server(replace(HELLO, malformed_after_events=place, malformed_event=event), body)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", ModelUnavailableError),
        ("rate_limit_exceeded", ModelRateLimitError),
        ("context_length_exceeded", ModelTooLongError),
        ("a new one", ModelServerError),
    ],
)
def test_an_error_that_the_provider_reports_inside_the_stream_counts(code: str, kind: type[ModelError]) -> None:
    event = json.dumps({"error": {"message": "that went wrong", "code": code}})
    error = failure_of(replace(HELLO, malformed_after_events=3, malformed_event=event))
    assert type(error) is kind
    assert "that went wrong" in error.message


STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200",
        b"220 mail.example.org ESMTP\r\n",
        STREAM_HEAD + b"zz\r\n",
        STREAM_HEAD + b"5\r\ndata:",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>",
    ],
)
def test_a_peer_that_speaks_no_proper_http_is_worth_a_retry(sent: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        peer = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with peer, model_at(f"http://127.0.0.1:{peer.sockets[0].getsockname()[1]}/v1") as model:
            with pytest.raises((ModelServerError, ModelCutOffError)):
                await collect(model.stream(ask()))

    asyncio.run(run())


def test_an_answer_with_nothing_in_it_is_empty() -> None:
    assert type(failure_of(Reply())) is ModelEmptyError
    assert type(failure_of(Reply(reasoning="Hm."))) is ModelEmptyError


# Streams that break


CUT = Reply(text="Hello there, friend.", reasoning="Think, then speak.", tool_calls=(Call("add", '{"a": 1, "b": 2}'),))


@pytest.mark.parametrize("sent", range(len(stream_events(CUT, model="m", number=1)) + 1))
def test_a_cut_after_any_event_never_looks_complete_without_a_reason(sent: int) -> None:
    events = stream_events(CUT, model="m", number=1)
    told: list[StreamEvent] = []

    async def body(model: ProviderModel, _: ModelServer) -> None:
        try:
            answer = await collect(model.stream(ask()), told.append)
        except ModelCutOffError:
            assert not any(isinstance(event, Finished | CallRequested) for event in told)
        else:
            assert finish_is_among(events[:sent])
            assert (answer.text, answer.tool_calls[0].arguments) == (CUT.text, CUT.tool_calls[0].arguments)
        assert CUT.text.startswith("".join(event.text for event in told if isinstance(event, TextDelta)))

    with_server(replace(CUT, cut_after_events=sent), body)


@pytest.mark.parametrize("reply", [HELLO, CUT, Reply(reasoning="Hm.")])
def test_a_stream_that_ends_in_good_order_but_without_a_reason_is_cut_off(reply: Reply) -> None:
    assert type(failure_of(replace(reply, omit_finish=True))) is ModelCutOffError


@pytest.mark.parametrize("sent", [0, 1, 3])
def test_cancelling_the_reader_of_a_stalled_stream_closes_the_connection(sent: int) -> None:
    async def body(model: ProviderModel, server: ModelServer) -> None:
        reading = asyncio.create_task(collect(model.stream(ask())))
        async with asyncio.timeout(60):
            await server.stalled.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await server.received[0].client_left.wait()

    with_server(replace(HELLO, stall_after_events=sent), body)


def test_leaving_a_stream_early_closes_the_connection_and_the_model_goes_on() -> None:
    def respond(_body: dict[str, Any], number: int) -> Reply:
        return replace(HELLO, stall_after_events=4) if number == 1 else HELLO

    async def body(model: ProviderModel, server: ModelServer) -> None:
        async with asyncio.timeout(60):
            async with aclosing(model.stream(ask())) as events:
                async for event in events:
                    if not isinstance(event, Alive):
                        break
            await server.received[0].client_left.wait()
            assert (await collect(model.stream(ask()))).text == HELLO.text

    with_server(respond, body)


def test_many_requests_share_one_model() -> None:
    async def body(model: ProviderModel, server: ModelServer) -> None:
        requests = [ask(UserTurn(text=f"number {number}"), step_id=f"t.{number}") for number in range(50)]
        answers = await asyncio.gather(*(collect(model.stream(request)) for request in requests))
        assert [answer.text for answer in answers] == [f"done: number {number}" for number in range(50)]
        assert sorted(received.headers["idempotency-key"] for received in server.received) == sorted(
            request.step_id for request in requests
        )

    with_server(obliging, body)


# The server as a witness


def test_a_mistake_in_the_script_of_a_test_is_not_taken_for_a_fault_that_was_asked_for() -> None:
    def respond(_body: dict[str, Any], _number: int) -> Reply:
        raise LookupError("a mistake")

    async def body(model: ProviderModel, _: ModelServer) -> None:
        with pytest.raises(ModelServerError):
            await collect(model.stream(ask()))

    with pytest.raises(LookupError, match="a mistake"):
        with_server(respond, body)


def test_the_server_runs_as_a_process_and_logs_what_arrived_and_what_was_answered(tmp_path: Path) -> None:
    log, script = tmp_path / "log", tmp_path / "script.json"
    script.write_text(json.dumps([{"contains": "cut me", "reply": {"text": "x", "cut_after_events": 1}}]))
    command = [sys.executable, "-m", "ai_whisperer.testing.model_server", "--log", str(log), "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready, url = server.stdout.readline().split()
            assert ready == "ready"
            asyncio.run(_ask_thrice(url))
            until(lambda: len(log.read_text().splitlines()) == 5)  # it is logged after the client has it
        finally:
            server.terminate()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["event"], line["number"], line["key"]) for line in lines] == [
        ("arrived", 1, "t1.1"),
        ("answered", 1, "t1.1"),
        ("arrived", 2, "t1.2"),
        ("arrived", 3, "t1.3"),
        ("answered", 3, "t1.3"),
    ]
    assert {line["model"] for line in lines} == {"test-model"}


async def _ask_thrice(url: str) -> None:
    async with model_at(url) as model:
        await collect(model.stream(ask()))
        with pytest.raises(ModelCutOffError):
            await collect(model.stream(ask(UserTurn(text="cut me"), step_id="t1.2")))
        await collect(model.stream(ask(step_id="t1.3")))


def test_models_of_one_name_share_their_connections_until_the_last_is_closed() -> None:
    async def body(model: ProviderModel, server: ModelServer) -> None:
        other = model_named(model.name)
        await collect(model.stream(ask()))
        await collect(other.stream(ask()))
        await other.close()
        await collect(model.stream(ask()))
        assert len(server.received) == 3

    with_server(Reply(text="hello"), body)
