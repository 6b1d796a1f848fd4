"""HTTP of one client: uvicorn's protocol, for clients that may be broken or take for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_SECONDS = 30.0
"""How long a request may take from its first byte to the last one of its answer. Pages and figures are small."""


class ClientHttp(H11Protocol):
    """Ends what takes too long. A WebSocket that is opened leaves this behind."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._begin()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._end()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._end()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True  # else what answers the request would fail for want of a connection
        super().send_400_response(msg)

    def _begin(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(_SECONDS, self.transport.abort)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
