"""The server extends uvicorn's protocols from the inside: this fails when what it relies on is not there any more."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode
from websockets.protocol import State

from ai_whisperer.server.http import ClientHttp
from ai_whisperer.server.socket import ClientSocket, framed, socket_of

T = TypeVar("T")

OWN: dict[type, set[str]] = {
    ClientSocket: {
        "arrivals",
        "is_open",
        "is_drained",
        "put",
        "drained",
        "drop",
        "_take",
        "_taken",
        "_part",
        "_cut_off",
    },
    ClientHttp: {"_begin", "_end"},
}
BASES: dict[type, type] = {ClientSocket: WebSocketsSansIOProtocol, ClientHttp: H11Protocol}
USED: dict[type, tuple[str, ...]] = {
    ClientSocket: (
        "close_sent",
        "close_timer",
        "conn",
        "curr_msg_data_type",
        "disconnected",
        "frames",
        "handshake_complete",
        "handshake_initiated",
        "logger",
        "loop",
        "ping_timer",
        "queue",
        "read_paused",
        "transport",
        "writable",
        "schedule_ping",
        "stop_keepalive",
    ),
    ClientHttp: ("cycle", "loop", "transport"),
}


@pytest.mark.parametrize("kind", [ClientSocket, ClientHttp])
def test_what_is_overridden_is_there_and_is_called_as_it_was(kind: type) -> None:
    base = BASES[kind]
    for name, ours in vars(kind).items():
        if name in OWN[kind] or name == "__init__" or not inspect.isfunction(ours):
            continue
        theirs = getattr(base, name, None)
        assert theirs is not None, f"uvicorn has no {name} any more"
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
        assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs), name
    assert not OWN[kind] & set(dir(base)), "uvicorn has got something of the same name"


def test_the_library_of_frames_has_what_lets_a_client_leave_in_the_middle_of_a_message() -> None:
    async def look() -> None:
        conn = protocol(ClientSocket).conn
        assert conn.current_size is None
        assert list(inspect.signature(type(conn).recv_frame).parameters) == ["self", "frame"]

    asyncio.run(look())


@pytest.mark.parametrize("kind", [ClientSocket, ClientHttp])
def test_what_is_used_is_there(kind: type) -> None:
    async def look() -> None:
        made = protocol(kind)
        for name in USED[kind]:
            assert hasattr(made, name), f"uvicorn's {BASES[kind].__name__} has no {name} any more"

    asyncio.run(look())


def test_the_protocol_within_has_what_is_used_of_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="uvicorn.error")

    async def look() -> None:
        conn = protocol(ClientSocket).conn
        assert conn.state is State.CONNECTING
        for name in ("logger", "debug", "handshake_exc", "parser_exc", "close_sent", "send_close", "data_to_send"):
            assert hasattr(conn, name), f"websockets has no {name} any more"
        assert conn.debug is False, "it would write down all frames"

    asyncio.run(look())


def protocol(kind: Callable[..., T]) -> T:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        """Nobody calls it."""

    config = uvicorn.Config(app, ws=ClientSocket, http=ClientHttp, log_config=None)
    config.load()
    return kind(config=config, server_state=ServerState(), app_state={})


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_a_frame_of_the_server_is_what_websockets_would_send(size: int) -> None:
    assert framed(b"x" * size) == Frame(Opcode.TEXT, b"x" * size, fin=True).serialize(mask=False)
    assert framed(b"x" * size).endswith(b"x" * size)


def test_a_websocket_that_came_another_way_is_refused() -> None:
    with pytest.raises(TypeError, match="without its own WebSocket protocol"):
        socket_of({"extensions": {"whisperer.socket": object()}})
