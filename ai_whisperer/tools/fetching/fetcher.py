"""Fetch a URL: follow redirects, each checked anew, and read the body up to a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import h11
from msgspec.structs import replace

from ai_whisperer.core.network import NetworkGrants
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.fetching.content import ContentType, content_type, looks_like_text
from ai_whisperer.tools.fetching.exchange import Connect, Decoder, Exchange, connect, connected
from ai_whisperer.tools.fetching.resolving import Resolver, granted_addresses, system_resolver
from ai_whisperer.tools.fetching.target import Target, redirected, target_of

_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_KEEPING_METHOD = (307, 308)
_BEGINNING_BYTES = 4_096
_PROGRESS_BYTES = 256 << 10
_OURS = {
    "user-agent": "ai-whisperer",
    "accept": "text/html, application/json, text/*;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip, deflate",
}
_REFUSED_HEADERS = (
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "upgrade",
    "expect",
    "te",
    "trailer",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
)


class Request(Record, frozen=True, kw_only=True):
    """What to ask, and what to take of the answer at most."""

    target: Target
    method: str = "GET"
    headers: Mapping[str, str] = {}
    body: bytes = b""
    max_bytes: int = 4 << 20


class Fetched(Record, frozen=True, kw_only=True):
    """What came. `body` is decoded, and empty for what is not text; `cut` says why it is not whole, or "".

    `size` is the number of bytes that the body has, as far as it was read or announced.
    """

    target: Target
    status: int
    kind: ContentType
    body: bytes
    size: int
    redirects: int = 0
    cut: str = ""

    @property
    def is_text(self) -> bool:
        return self.kind.is_text


class Fetcher:
    """Fetches for agents. How names become addresses and addresses connections can be given, for tests."""

    def __init__(self, *, resolve: Resolver = system_resolver, connect: Connect = connect) -> None:
        self._resolve = resolve
        self._connect = connect

    async def fetch(
        self,
        request: Request,
        grants: NetworkGrants,
        *,
        timeout_seconds: float,
        progress: Callable[[str], None],
    ) -> Fetched:
        """What the URL holds; raises `ToolError` that says why it cannot be had, and then nothing more is asked.

        Every address on the way, after each redirect too, is checked against the grants before it is talked to.
        """
        check_headers(request.headers)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._followed(request, grants, progress)
        except TimeoutError as error:
            raise ToolError(
                f"{request.target.url} took longer than {timeout_seconds:g} seconds. Try again later, or allow more "
                "time with timeout_seconds."
            ) from error

    async def _followed(self, request: Request, grants: NetworkGrants, progress: Callable[[str], None]) -> Fetched:
        for redirects in range(_MAX_REDIRECTS + 1):
            addresses = await granted_addresses(request.target, grants, self._resolve)
            exchange = Exchange(await connected(addresses, request.target, self._connect))
            try:
                response = await exchange.ask(
                    request.target, request.method, headers={**_OURS, **request.headers}, body=request.body
                )
                location = _header(response, b"location")
                if response.status_code not in _REDIRECTS or not location:
                    fetched = await _read(exchange, request, response, progress)
                    return replace(fetched, redirects=redirects)
            finally:
                exchange.close()
            request = _sent_on(request, response.status_code, location)
        raise ToolError(f"There were more than {_MAX_REDIRECTS} redirects, the last one to {request.target.url}.")


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise `ToolError` for a header, in small letters, that is not the caller's to set."""
    for name in headers:
        if name in _REFUSED_HEADERS:
            raise ToolError(f"The header {name!r} is set by the connection itself. Leave it out.")


def _sent_on(request: Request, status: int, location: str) -> Request:
    """The request after a redirect. Headers that were given may be secrets: another origin does not get them."""
    target = redirected(request.target, location)
    is_elsewhere = target.origin != request.target.origin
    if status in _KEEPING_METHOD or request.method in ("GET", "HEAD"):
        if is_elsewhere and request.method not in ("GET", "HEAD"):
            raise ToolError(
                f"{request.target.url} redirects the {request.method} request to {target.url}, another server, which "
                "is not sent what was meant for this one. Call that URL if you want it to have it."
            )
    else:
        request = replace(request, method="GET", body=b"")
    return replace(request, target=target, headers={} if is_elsewhere else request.headers)


async def _read(
    exchange: Exchange, request: Request, response: h11.Response, progress: Callable[[str], None]
) -> Fetched:
    kind = content_type(_header(response, b"content-type"))
    announced = _header(response, b"content-length")
    fetched = Fetched(
        target=request.target,
        status=response.status_code,
        kind=kind,
        body=b"",
        size=int(announced[:20]) if announced.isascii() and announced.isdigit() else 0,
    )
    if request.method == "HEAD" or (kind.name and not kind.is_text and fetched.size):
        return fetched
    body, cut = await _body(exchange, _header(response, b"content-encoding"), request.max_bytes, progress)
    if not kind.name and looks_like_text(bytes(body[:_BEGINNING_BYTES])):
        kind = ContentType(name="text/plain")
    return replace(fetched, kind=kind, body=bytes(body) if kind.is_text else b"", size=len(body), cut=cut)


async def _body(
    exchange: Exchange, encoding: str, max_bytes: int, progress: Callable[[str], None]
) -> tuple[bytearray, str]:
    """The decoded body, as much as may be had, and why it ends too early."""
    body, decoder, told = bytearray(), Decoder(encoding), 0
    try:
        async for chunk in exchange.chunks():
            for piece in decoder.pieces(chunk):
                body += piece
                if len(body) > max_bytes:
                    del body[max_bytes:]
                    return body, f"only its first {max_bytes:,} bytes were read"
            if len(body) - told >= _PROGRESS_BYTES:
                told = len(body)
                progress(f"{told:,} bytes so far\n")
    except EOFError as error:
        return body, f"it ended too early: {error}"
    return body, ""


def _header(response: h11.Response, name: bytes) -> str:
    return next((value.decode("latin-1") for each, value in response.headers if each == name), "")


DEFAULT = Fetcher()


def request_for(
    url: str, method: str, *, headers: Mapping[str, str] | None, body: str | None, max_bytes: int
) -> Request:
    """The request that a model wants; raises `ToolError`."""
    return Request(
        target=target_of(url),
        method=method,
        headers={name.strip().lower(): value for name, value in (headers or {}).items()},
        body=(body or "").encode(errors="replace"),
        max_bytes=max_bytes,
    )
