"""Broken frames over a real socket: each gets the right error or the right close code, and nobody else notices.

`WHISPERER_TEST_FRAMES` says how many, `WHISPERER_TEST_SEED` which ones.
"""

from __future__ import annotations

import json
import logging
import os
import random
import socket
import struct
from collections import Counter
from collections.abc import Iterator

import pytest

from ai_whisperer.protocol.jsonrpc import INVALID_REQUEST, PARSE_ERROR
from ai_whisperer.settings import Settings
from tests.acceptance.frame_mutation import Mutator, expected, judge
from tests.acceptance.raw_socket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    ClosedError,
    Json,
    RawSocket,
    frame,
    request_of,
)
from tests.acceptance.server_in_thread import LogWitness, ServerInThread, witnessed
from tests.acceptance.session_talk import sockets

FRAMES = int(os.environ.get("WHISPERER_TEST_FRAMES", "5000"))
SEED = int(os.environ.get("WHISPERER_TEST_SEED", "20250605"))
MAX_FRAME_BYTES = 64 << 10
INFO = request_of("server.info", {})


@pytest.fixture(scope="module")
def witness() -> Iterator[LogWitness]:
    with witnessed(logging.INFO) as witness:
        yield witness


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, witness: LogWitness) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0, max_frame_bytes=MAX_FRAME_BYTES)
    with ServerInThread(settings) as server:
        yield server


@pytest.fixture(autouse=True)
def no_harm_is_done(server: ServerInThread, witness: LogWitness) -> Iterator[None]:
    """A client that does everything right is served as ever, and the log has nothing to complain of."""
    with server.connect() as bystander:
        bystander.call("server.info")
        yield
        bystander.call("server.info")
    with server.connect() as newcomer:
        newcomer.call("async.getAgentStates", sessionId="default")
    assert witness.complaints == []


def close_code(server: ServerInThread, raw: bytes) -> int | None:
    """The code with which the server closes the connection when it is sent this."""
    with server.connect() as client:
        client.send(raw)
        return client.until_closed().code


def answer_to(server: ServerInThread, raw: bytes) -> Json:
    with server.connect() as client:
        client.send(raw)
        return client.receive()


def prepare(client: RawSocket) -> None:
    if "error" not in client.answer("session.create", sessionId="fuzz"):
        client.call("async.createAgent", sessionId="fuzz", agentId="worker")
        client.call("async.sendTask", sessionId="fuzz", agentId="worker", prompt="hello", taskId="task-1")


def test_mutated_requests_get_the_error_that_another_parser_expects(server: ServerInThread) -> None:
    count = FRAMES * 3 // 5
    mutator = Mutator(SEED, "fuzz")
    outcomes: Counter[str] = Counter()
    with server.connect() as client:
        prepare(client)
        for number in range(count):
            data = mutator.frame()
            wanted = expected(data)
            client.send(frame(data, TEXT if is_text(data) else BINARY))
            if wanted is None:
                outcomes["no answer"] += 1
                continue
            answer = next_answer(client)
            fault = judge(answer, wanted)
            assert fault is None, f"seed {SEED}, frame {number}: {data[:500]!r} was answered {answer}, but {fault}."
            outcomes[str(answer["error"]["code"]) if "error" in answer else "result"] += 1
            if "unknown_session" in json.dumps(answer):
                prepare(client)
        assert client.answer("server.info")["id"].startswith("call-"), "what is no request was answered"
    print(f"\n{count} mutated requests, seed {SEED}: {dict(outcomes)}")
    assert outcomes.keys() >= {"no answer", "result", "-32700", "-32600", "-32601", "-32602", "-32004", "-32009"}


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def next_answer(client: RawSocket) -> Json:
    """The next message that is no notification."""
    while True:
        message = client.receive()
        if isinstance(message, list) or "method" not in message:
            return message


def test_streams_of_noise_are_closed_with_a_code_or_wait_for_more(server: ServerInThread) -> None:
    count = FRAMES // 5
    chance = random.Random(SEED)
    codes: Counter[int | None] = Counter()
    for _ in range(count // 10):
        with server.connect() as client:
            for _ in range(10):
                client.send(noise(chance))
            client.send(frame(b"", CLOSE))
            client.socket.shutdown(socket.SHUT_WR)  # or the server would wait for the rest of a frame
            codes[client.until_closed().code] += 1
    print(f"\n{count} pieces of noise, seed {SEED}: close codes {dict(codes)}")
    own = {code for code in codes if code is not None and code < 3000}  # others are those of the noise, sent back
    assert own <= {1000, 1001, 1002, 1003, 1005, 1007, 1009}
    assert 1002 in own


def noise(chance: random.Random) -> bytes:
    """A frame of which something is wrong, or nothing like a frame."""
    payload = chance.randbytes(chance.choice((0, 1, 5, 125, 126, 200)))
    kind = chance.randrange(4)
    if kind == 0:
        return payload
    if kind == 1:
        return frame(payload, first_byte=chance.randrange(256), mask=chance.randbytes(4))
    if kind == 2:
        return frame(payload, chance.choice((TEXT, BINARY, CONTINUATION, PING, PONG)), mask=chance.randbytes(4))
    return frame(INFO, mask=None if chance.random() < 0.2 else chance.randbytes(4))


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (frame(INFO, mask=None), 1002),
        *((frame(b"", first_byte=0x80 | opcode), 1002) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)),
        *((frame(INFO, first_byte=0x81 | bits), 1002) for bits in (0x40, 0x20, 0x10)),
        (frame(b"x" * 126, PING), 1002),
        (frame(b"x", first_byte=PING), 1002),
        (frame(b"x", first_byte=CLOSE), 1002),
        (frame(INFO, CONTINUATION), 1002),
        (frame(b"{", first_byte=TEXT) + frame(b"}", TEXT), 1002),
        (frame(b"x", CLOSE), 1002),
        (frame(struct.pack("!H", 999), CLOSE), 1002),
        (frame(struct.pack("!H", 1005), CLOSE), 1002),
        (frame(struct.pack("!H", 1000) + b"\xff", CLOSE), 1007),
        (frame(struct.pack("!H", 1000) + b"bye", CLOSE), 1000),
        (frame(struct.pack("!H", 4999), CLOSE), 4999),
        (frame(b"\xff\xfe"), 1007),
        (frame(b'{"a":"\xed\xa0\x80"}'), 1007),
        (frame(b"\xc3", first_byte=TEXT) + frame(b"(", CONTINUATION), 1007),
        (frame(b"x" * (MAX_FRAME_BYTES + 1)), 1009),
        (frame(b"", length=1 << 62), 1009),
        (frame(b"x" * 40_000, first_byte=TEXT) + frame(b"x" * 40_000, CONTINUATION), 1009),
        (frame(b"x" * 40_000, first_byte=BINARY) + frame(b"x" * 40_000, CONTINUATION), 1009),
    ],
)
def test_what_breaks_the_rules_of_websocket_is_closed_with_its_code(
    server: ServerInThread, raw: bytes, code: int
) -> None:
    assert close_code(server, raw) == code


def test_a_length_beyond_all_measure_is_not_believed(server: ServerInThread) -> None:
    assert close_code(server, b"\x81\xff" + b"\xff" * 8 + b"mask") in (1002, 1009)


def test_a_message_of_the_largest_size_is_read(server: ServerInThread) -> None:
    padded = INFO + b" " * (MAX_FRAME_BYTES - len(INFO))
    assert "result" in answer_to(server, frame(padded))


def test_a_message_in_fragments_is_one_message_also_with_a_ping_in_between(server: ServerInThread) -> None:
    text = '{"jsonrpc":"2.0","id":"é😀","method":"server.info"}'.encode()
    with server.connect() as client:
        for at, byte in enumerate(text):
            client.send(frame(bytes([byte]), first_byte=TEXT if at == 0 else CONTINUATION))
        client.send(frame(b"are you there", PING))
        client.send(frame(b"", CONTINUATION))
        assert client.read_frame() == (PONG, b"are you there")
        assert client.answer_to("é😀")["result"]["version"]


@pytest.mark.parametrize("pieces", [b"", frame(b"", first_byte=CONTINUATION), frame(b"{", first_byte=CONTINUATION) * 3])
@pytest.mark.parametrize("kind", [TEXT, BINARY])
@pytest.mark.parametrize(
    ("farewell", "code"),
    [
        (struct.pack("!H", 1000) + b"bye", 1000),
        (struct.pack("!H", 4321), 4321),
        (b"", 1005),
        (struct.pack("!H", 999), 1002),
        (b"x", 1002),
    ],
)
def test_a_client_may_leave_in_the_middle_of_a_message(
    server: ServerInThread, kind: int, pieces: bytes, farewell: bytes, code: int
) -> None:
    assert close_code(server, frame(INFO, first_byte=kind) + pieces + frame(farewell, CLOSE)) == code


def test_what_was_sent_of_a_message_is_dropped_when_its_client_leaves(server: ServerInThread) -> None:
    create = b'{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"sessionId":"half-said"}}'
    half = frame(create, first_byte=TEXT) + frame(b"", first_byte=CONTINUATION)
    assert close_code(server, half + frame(struct.pack("!H", 1000), CLOSE) + frame(b"", CONTINUATION)) == 1000
    with server.connect() as client:
        assert "half-said" not in str(client.call("session.list"))


def test_pings_and_pongs_may_come_between_all_pieces_of_a_message(server: ServerInThread) -> None:
    with server.connect() as client:
        for at, byte in enumerate(INFO):
            client.send(frame(bytes([byte]), first_byte=TEXT if at == 0 else CONTINUATION))
            client.send(frame(b"unasked", PONG) + frame(b"%d" % at, PING))
            assert client.read_frame() == (PONG, b"%d" % at)
        client.send(frame(b"", CONTINUATION))
        assert "result" in client.receive()


def test_a_message_in_very_many_pieces_takes_no_more_room_than_it_has_letters(server: ServerInThread) -> None:
    with server.connect() as client:
        client.send(frame(INFO[:1], first_byte=TEXT))
        for _ in range(20):
            client.send(frame(b"", first_byte=CONTINUATION) * 5000)
        client.send(frame(b"all there?", PING))
        assert client.read_frame() == (PONG, b"all there?")
        (held,) = (each for each in sockets() if each._pieces == INFO[:1])
        assert held.frames == []
        client.send(frame(INFO[1:], CONTINUATION))
        assert "result" in client.receive()


def test_pings_are_answered_and_pongs_are_not(server: ServerInThread) -> None:
    with server.connect() as client:
        client.send(frame(b"nobody asked", PONG))
        client.send(frame(b"\x00\xff" * 62, PING))
        assert client.read_frame() == (PONG, b"\x00\xff" * 62)


def test_many_messages_in_one_piece_and_one_message_in_many(server: ServerInThread) -> None:
    with server.connect() as client:
        client.send(b"".join(frame(request_of("server.info", {}, number)) for number in range(300)))
        assert {client.receive()["id"] for _ in range(300)} == set(range(300))
        for byte in frame(request_of("server.info", {}, "drip")):
            client.send(bytes([byte]))
        assert "result" in client.answer_to("drip")


@pytest.mark.parametrize("cut", [1, 2, 4, 6, 10, 40])
def test_a_client_that_goes_away_in_the_middle_of_a_frame(server: ServerInThread, cut: int) -> None:
    with server.connect() as client:
        client.send(frame(INFO)[:cut])


def test_json_in_a_binary_frame_is_answered(server: ServerInThread) -> None:
    assert "result" in answer_to(server, frame(INFO, BINARY))


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"\xff", PARSE_ERROR),
        (b"", PARSE_ERROR),
        (b"\x00" * 1000, PARSE_ERROR),
        (b"[" * MAX_FRAME_BYTES, INVALID_REQUEST),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, INVALID_REQUEST),
        (b"[" + b"1," * 200 + b"1]", INVALID_REQUEST),
        (INFO[:-1], PARSE_ERROR),
        (INFO + INFO, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"server.info","params":{"x":NaN}}', PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":1,"method":"server.info\\ud800"}', PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 50_000 + b',"method":"server.info"}', INVALID_REQUEST),
    ],
)
def test_a_binary_frame_that_is_no_request_is_refused_like_text(
    server: ServerInThread, payload: bytes, code: int
) -> None:
    answer = answer_to(server, frame(payload, BINARY))
    assert (answer["id"], answer["error"]["code"]) == (None, code)


def test_of_a_key_that_is_there_twice_the_later_one_counts(server: ServerInThread) -> None:
    twice = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"nothing","method":"server.info","params":5,"params":{}}'
    answer = answer_to(server, frame(twice))
    assert answer["id"] == 2
    assert "result" in answer


def test_a_batch_is_answered_as_one_and_notifications_in_it_are_not(server: ServerInThread) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "server.info"},
        {"jsonrpc": "2.0", "method": "server.info"},
        {"jsonrpc": "2.0", "method": "no.such.method"},
        5,
        {"jsonrpc": "2.0", "id": "x", "method": "no.such.method"},
    ]
    answers = answer_to(server, frame(json.dumps(batch).encode()))
    assert [(each["id"], each.get("error", {}).get("code")) for each in answers] == [
        (1, None),
        (None, -32600),
        ("x", -32601),
    ]


def test_notifications_are_carried_out_and_never_answered(server: ServerInThread) -> None:
    with server.connect() as client:
        quiet = {"jsonrpc": "2.0", "method": "session.create", "params": {"sessionId": "made quietly"}}
        client.send_json(quiet)
        client.send_json([quiet, quiet])
        client.send_json({"jsonrpc": "2.0", "method": "nonsense"})
        assert client.call("session.get", sessionId="made quietly")["sessionId"] == "made quietly"
        assert client.notes == []


def test_unknown_things_are_named_with_what_there_is(server: ServerInThread) -> None:
    with server.connect() as client:
        client.answer("async.createAgent", sessionId="default", agentId="known-agent")
        unknown_session = client.error("async.getAgentStates", sessionId="nowhere")
        unknown_agent = client.error("async.pauseAgent", sessionId="default", agentId="nobody")
        unknown_method = client.error("async.getAgentState", sessionId="default")
    assert "'default'" in unknown_session["message"]
    assert "known-agent" in unknown_agent["message"]
    assert "async.getAgentStates" in unknown_method["message"]
    assert unknown_session["data"]["requestId"]


def test_a_client_that_vanishes_leaves_no_trace(server: ServerInThread) -> None:
    client = server.connect()
    client.call("events.subscribe", sessionId="default", after=0)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    client.send(frame(INFO) * 100)
    client.socket.close()


def test_the_server_says_nothing_after_a_close(server: ServerInThread) -> None:
    with server.connect() as client:
        client.send(frame(INFO) + frame(struct.pack("!H", 1000), CLOSE) + frame(INFO) * 3)
        closed = client.until_closed()
        assert closed.code == 1000
        with pytest.raises(ClosedError):
            client.receive()


def test_a_complaint_would_have_been_seen(witness: LogWitness) -> None:
    logging.getLogger("anything").error("something went wrong")
    assert witness.complaints == ["ERROR anything something went wrong"]
    witness.complaints.clear()
