"""The HTTP side of the server: the page, health, metrics, and the door to the WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import SystemRandom
from typing import TYPE_CHECKING

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from ai_whisperer.domain.clock import SystemClock, TimedIds
from ai_whisperer.errors import NodeFencedError
from ai_whisperer.protocol.jsonrpc import INVALID_REQUEST, RpcError, error_frame
from ai_whisperer.protocol.subscriptions import EXPLICIT, NOTIFICATIONS
from ai_whisperer.server import page
from ai_whisperer.server.audience import Audiences
from ai_whisperer.server.connection import Connection
from ai_whisperer.server.denied import denied
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.gate import Denial, Gate
from ai_whisperer.server.gateway import wire
from ai_whisperer.server.gateway.door import ChannelSocket, Door
from ai_whisperer.server.host import SessionHost
from ai_whisperer.server.metrics import Metrics, NodeFigures
from ai_whisperer.server.outbox import CLOSED_AS_FENCED, Socket
from ai_whisperer.server.socket import ClientSocket, socket_of
from ai_whisperer.settings import Settings
from ai_whisperer.version import __version__

if TYPE_CHECKING:
    from ai_whisperer.server.gateway.gateway import Gateway

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
_ANSWERS = ("http.response.start", "websocket.http.response.start")
_HEALTH = "/healthz"
_SOCKET = "/ws"
_WRONG_ADDRESS = 4404
"""The code with which a WebSocket at another address is closed: of those for applications, 404 for not found."""
_SHOWN_PATH = 200
_ANY_NUMBER = 1 << 30
_PRINCIPAL = "whisperer.principal"


class Application:
    """The routes of the server."""

    def __init__(
        self,
        host: SessionHost,
        tokens: Mapping[str, str],
        *,
        settings: Settings,
        port: int,
        gateway: Gateway | None = None,
    ) -> None:
        """Those who have one of the tokens, by principal, are answered what they ask of the sessions of the host.

        With a gateway also of those that other nodes have, and these are answered too.
        """
        self._gate = Gate(tokens, settings=settings, port=port)
        self._host = host
        self._settings = settings
        self._ids = TimedIds(SystemClock(), SystemRandom())
        self._gateway = gateway
        self._metrics = Metrics(lambda: host.open_sessions, self._node_figures)
        self._audiences = Audiences(NotificationFrames(), self._metrics)
        self._sockets: set[ClientSocket] = set()
        host.failed.add_done_callback(self._send_away)
        self._routes = Starlette(
            routes=[
                *(Route(path, self._page) for path in page.PATHS),
                Route("/assets/{name}", self._asset),
                Route(page.ICON, self._asset),
                Route(_HEALTH, self._health),
                Route("/metrics", self._show_metrics),
                WebSocketRoute(_SOCKET, self._connect),
                *([] if gateway is None else [WebSocketRoute(wire.PATH, self._connect_node)]),
                WebSocketRoute("/{path:path}", self._direct),
            ],
            exception_handlers={404: self._not_found},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Everything passes here first: what is not let in reaches no route, not even one that does not exist."""
        send = _sealed(send)
        request = HTTPConnection(scope)
        if (scope["type"], scope["path"]) == ("websocket", wire.PATH) and self._gateway is not None:
            denial = self._gate.check_node(request, self._host.membership)
        else:
            denial = self._gate.check_address(request)
            if denial is None and (scope["type"], scope["path"]) != ("http", _HEALTH):
                denial = self._known(request)
        if denial is None:
            await self._routes(scope, receive, send)
            return
        self._metrics.count_refusal(is_wrong_token=denial.is_wrong_token)
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(denied(request, denial))
        else:
            await denied(request, denial)(scope, receive, send)

    def _known(self, request: HTTPConnection) -> Denial | None:
        """None if it is known who asks, which is kept with the request."""
        principal = self._gate.principal(request)
        if isinstance(principal, Denial):
            return principal
        request.scope[_PRINCIPAL] = principal
        return None

    def _node_figures(self) -> NodeFigures:
        own = self._host.membership.figures()
        return own if self._gateway is None else {**own, **self._gateway.figures()}

    async def _health(self, _: Request) -> Response:
        """Whether what is asked for is done and kept: a server that cannot commit is not well."""
        told: dict[str, str] = {"version": __version__}
        trouble = self._host.trouble()
        if trouble is not None:
            return JSONResponse({"status": "failed", "reason": trouble, **told}, status_code=503)
        if self._host.is_closing:
            return JSONResponse({"status": "leaving", **told}, status_code=503)
        if self._host.warning is not None:
            told["warning"] = self._host.warning
        return JSONResponse({"status": "ok", **told})

    async def _page(self, request: Request) -> Response:
        answer = HTMLResponse(page.document())
        given = request.query_params.get("token")
        if given and "authorization" not in request.headers:  # then it is what the gate has looked at
            answer.set_cookie(
                self._gate.cookie,
                given,
                httponly=True,
                samesite="strict",
                secure=self._settings.tls_certificate is not None,
            )
        return answer

    async def _asset(self, request: Request) -> Response:
        found = page.asset(request.url.path)
        if found is None:
            return await self._not_found(request, None)
        return Response(found.content, media_type=found.media_type, headers={"Cache-Control": found.cache})

    async def _show_metrics(self, _: Request) -> Response:
        return PlainTextResponse(self._metrics.text())

    async def _direct(self, websocket: WebSocket) -> None:
        """Tell a client that opened its WebSocket at another address, such as that of the page, which one is right.

        It is let in for that: most clients show nothing of an answer that refuses them.
        """
        host = websocket.headers.get("host", "")
        scheme = "wss" if self._settings.tls_certificate is not None else "ws"
        wrong = websocket.url.path[:_SHOWN_PATH]
        message = f"There is no WebSocket at {wrong}. Connect to {scheme}://{host}{_SOCKET}, with the same token."
        error = RpcError(INVALID_REQUEST, message, {"path": _SOCKET})
        await websocket.accept()
        await websocket.send_text(error_frame(None, error).decode())
        await websocket.close(_WRONG_ADDRESS, f"The WebSocket is at {_SOCKET}.")

    async def _not_found(self, request: Request, _: Exception | None) -> Response:
        if request.url.path == _SOCKET:
            told = (
                f"{_SOCKET} is the address of the WebSocket: connect to it with a WebSocket client. The page is at /."
            )
            return PlainTextResponse(f"{told}\n", status_code=404)
        message = f"There is nothing at {request.url.path[:_SHOWN_PATH]}. There are /, /ws, /healthz and /metrics.\n"
        return PlainTextResponse(message, status_code=404)

    def _send_away(self, failed: asyncio.Future[BaseException]) -> None:
        """Let the clients of a node that was taken for dead ask another at once, in place of telling them an error.

        What they asked may have taken effect, or the node that took over may do it: a lost connection says just that.
        """
        if not failed.cancelled() and isinstance(failed.result(), NodeFencedError):
            for socket in self._sockets:
                socket.drop(CLOSED_AS_FENCED, "This node was taken for dead. Ask another.")

    async def _refuse_if_stopped(self, websocket: WebSocket) -> bool:
        """Refuse a client if nothing goes on here, so that it asks another node, or comes again; returns whether."""
        if not self._host.failed.done():
            return False
        stopped = Denial(503, "This server has stopped. Ask another node, or try again when it is back.")
        await websocket.send_denial_response(denied(websocket, stopped))
        return True

    async def _let_in(self, websocket: WebSocket, socket: ClientSocket) -> None:
        """Accept a client; one that came while the node was taken for dead is sent away as the others were."""
        await websocket.accept()
        self._sockets.add(socket)
        if self._host.failed.done():
            self._send_away(self._host.failed)

    async def _connect(self, websocket: WebSocket) -> None:
        if await self._refuse_if_stopped(websocket):
            return
        connected = self._metrics.connections
        if connected >= self._settings.max_connections:
            full = Denial(503, f"There are {connected} clients, which is the limit. Try again later.")
            await websocket.send_denial_response(denied(websocket, full))
            return
        self._metrics.connections += 1
        socket = socket_of(websocket.scope)
        try:
            await self._let_in(websocket, socket)
            connection = self._connection(
                socket,
                websocket.scope[_PRINCIPAL],
                settings=self._settings,
                gateway=self._gateway,
                follows=websocket.query_params.get(NOTIFICATIONS) != EXPLICIT,
            )
            await connection.run(socket.arrivals())
        except WebSocketDisconnect:
            pass  # it left before it was let in
        finally:
            self._sockets.discard(socket)
            self._metrics.connections -= 1

    async def _connect_node(self, websocket: WebSocket) -> None:
        """Serve the clients of another node, which has counted and checked them."""
        if await self._refuse_if_stopped(websocket):
            return
        settings = replace(self._settings, max_requests_per_second=_ANY_NUMBER)

        async def serve(socket: ChannelSocket, principal: str) -> None:
            connection = self._connection(socket, principal, settings=settings, gateway=None, follows=False)
            await connection.run(socket.arrivals())

        socket = socket_of(websocket.scope)
        socket.conn.max_message_size = self._settings.max_frame_bytes + wire.OVERHEAD_BYTES
        try:
            await self._let_in(websocket, socket)
            await Door(socket, serve).run(socket.arrivals())
        except WebSocketDisconnect:
            pass  # it left before it was let in
        finally:
            self._sockets.discard(socket)

    def _connection(
        self, socket: Socket, principal: str, *, settings: Settings, gateway: Gateway | None, follows: bool
    ) -> Connection:
        return Connection(
            socket,
            connection_id=self._ids.new(),
            principal=principal,
            host=self._host,
            settings=settings,
            metrics=self._metrics,
            audiences=self._audiences,
            gateway=gateway,
            follows=follows,
        )


def _sealed(send: Send) -> Send:
    """Whatever is answered, and whoever answers it, says what a browser may do with it, unless it says so itself."""

    async def seal(message: Message) -> None:
        if message["type"] in _ANSWERS:
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return seal
