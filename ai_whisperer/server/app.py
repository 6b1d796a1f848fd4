"""The HTTP side of the server: the page, health, metrics, and the door to the WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from ai_whisperer.clock import IdSource
from ai_whisperer.server.calls import ServerFacts
from ai_whisperer.server.connection import Connection
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.gate import Denial, Gate
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.server.socket import socket_of
from ai_whisperer.settings import Settings

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_ASSETS = {"page.js": "text/javascript", "page.css": "text/css"}

Endpoint = Callable[[Request], Awaitable[Response]]


class Application:
    """The routes of the server."""

    def __init__(
        self,
        *,
        gate: Gate,
        host: SessionHost,
        facts: ServerFacts,
        settings: Settings,
        ids: IdSource,
    ) -> None:
        self._gate = gate
        self._host = host
        self._facts = facts
        self._settings = settings
        self._ids = ids
        self._metrics = Metrics(lambda: host.open_sessions)
        self._frames = NotificationFrames()
        self._connected = 0
        self.asgi = Starlette(
            routes=[
                Route("/", self._with_token(self._page)),
                Route("/assets/{name}", self._with_token(self._asset)),
                Route("/healthz", self._checked(self._health)),
                Route("/metrics", self._with_token(self._show_metrics)),
                WebSocketRoute("/ws", self._connect),
            ],
            exception_handlers={404: self._not_found},
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "version": self._facts.version}, headers=_HEADERS)

    async def _page(self, request: Request) -> Response:
        page = HTMLResponse(_resource("index.html"), headers=_HEADERS)
        given = request.query_params.get("token")
        if given:
            page.set_cookie(
                self._gate.cookie,
                given,
                httponly=True,
                samesite="strict",
                secure=self._settings.tls_certificate is not None,
            )
        return page

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _ASSETS:
            return await self._not_found(request, None)
        return Response(_resource(name), media_type=_ASSETS[name], headers=_HEADERS)

    async def _show_metrics(self, _: Request) -> Response:
        return PlainTextResponse(self._metrics.text(), headers=_HEADERS)

    async def _not_found(self, request: Request, _: Exception | None) -> Response:
        message = f"There is nothing at {request.url.path[:200]}. There are /, /ws, /healthz and /metrics.\n"
        return PlainTextResponse(message, status_code=404, headers=_HEADERS)

    async def _connect(self, websocket: WebSocket) -> None:
        denial = self._gate.check_address(websocket)
        principal = denial or self._gate.principal(websocket)
        if self._connected >= self._settings.max_connections and not isinstance(principal, Denial):
            principal = Denial(503, f"There are {self._connected} clients, which is the limit. Try again later.")
        if isinstance(principal, Denial):
            self._metrics.refused.inc()
            await websocket.send_denial_response(_denied(principal))
            socket_of(websocket.scope).handshake_complete = True  # uvicorn forgets it, and complains of us
            return
        await websocket.accept()
        connection = Connection(
            socket_of(websocket.scope),
            connection_id=self._ids.new(),
            principal=principal,
            host=self._host,
            facts=self._facts,
            settings=self._settings,
            metrics=self._metrics,
            frames=self._frames,
        )
        self._connected += 1
        self._metrics.connections.inc()
        try:
            await connection.run(_messages(websocket))
        finally:
            self._connected -= 1
            self._metrics.connections.dec()

    def _checked(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint for those who use the right address."""

        async def checked(request: Request) -> Response:
            denial = self._gate.check_address(request)
            if denial is not None:
                self._metrics.refused.inc()
                return _denied(denial)
            return await endpoint(request)

        return checked

    def _with_token(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint for those who have a token."""

        async def with_token(request: Request) -> Response:
            principal = self._gate.principal(request)
            if isinstance(principal, Denial):
                self._metrics.refused.inc()
                return _denied(principal)
            return await endpoint(request)

        return self._checked(with_token)


async def _messages(websocket: WebSocket) -> AsyncIterator[str | bytes]:
    """What the client sends, until it has gone."""
    while True:
        event = await websocket.receive()
        if event["type"] == "websocket.disconnect":
            return
        text = event.get("text")
        yield event["bytes"] if text is None else text


def _denied(denial: Denial) -> Response:
    return PlainTextResponse(f"{denial.message}\n", status_code=denial.status, headers=_HEADERS)


def _resource(name: str) -> bytes:
    return (resources.files("ai_whisperer.server") / "page" / name).read_bytes()
