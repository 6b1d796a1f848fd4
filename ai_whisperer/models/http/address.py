"""Where a provider is asked: its address taken apart, and the proxy on the way to it."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.failures import told, wrong_address
from ai_whisperer.version import __version__

_PORTS = {"http": 80, "https": 443}
_PROXY_VARIABLES = tuple(
    name
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD")
    for name in (variable, variable.lower())
)
_OURS = frozenset({"connection", "content-length", "host", "transfer-encoding"})
"""What a request says of itself: two words on where it ends are two requests to somebody on the way."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\r\n\0\u0100-\U0010ffff]*")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Origin(NamedTuple):
    """Whom a connection leads to: all requests for the same one can share it."""

    host: str
    port: int
    is_secure: bool
    proxy: Origin | None = None
    proxy_authorization: str = ""


class Endpoint(NamedTuple):
    """What is asked: an address, with the head of a request to it as far as it is always the same."""

    origin: Origin
    line: bytes
    headers: Mapping[str, bytes]
    """The lines of the headers by their names in small letters."""
    start: bytes

    def request(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        """The whole request, with these headers in place of those of the same name.

        Raises `ModelRefusedError` for headers that are none, or that are not for others to say.
        """
        more = {name.lower(): _header(name, value) for name, value in headers.items()}
        for name in _OURS.intersection(more):
            raise ModelRefusedError(
                f"The request could not be made: the header {name!r} is set by the client itself. "
                "Take it out of extra_headers in the settings."
            )
        start = self.start
        if not self.headers.keys().isdisjoint(more):
            start = self.line + b"".join(line for name, line in self.headers.items() if name not in more)
        return b"".join((start, *more.values(), b"Content-Length: %d\r\n\r\n" % len(body), body))


def endpoint_of(base_url: str, path: str, headers: Mapping[str, str]) -> Endpoint:
    """The endpoint at that path under the address; raises `ModelRefusedError`.

    A name and a password in the address take the place of the authorization. The proxy is that of the environment,
    unless the provider is on this machine. Agents by the thousand share the endpoints.
    """
    proxies = tuple(os.environ.get(name, "") for name in _PROXY_VARIABLES)
    return _made(base_url, path, tuple(headers.items()), proxies)


@lru_cache(maxsize=256)
def _made(base_url: str, path: str, headers: tuple[tuple[str, str], ...], proxies: tuple[str, ...]) -> Endpoint:
    del proxies  # they are looked up by those who know how
    parts = _parts(base_url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    proxy, proxy_authorization = _proxy_of(parts)
    origin = Origin(host, parts.port or _PORTS[parts.scheme], is_secure, proxy, proxy_authorization)
    netloc = parts.netloc.rpartition("@")[2]
    target = f"{parts.path.rstrip('/')}{path}" + (f"?{parts.query}" if parts.query else "")
    every = {"Host": netloc, "User-Agent": f"ai-whisperer/{__version__}", **dict(headers)}
    if parts.username is not None:
        every["Authorization"] = _basic(parts)
    if proxy is not None and not is_secure:
        target = f"http://{netloc}{target}"
        every |= {"Proxy-Authorization": proxy_authorization} if proxy_authorization else {}
    if not target.isascii() or any(character.isspace() for character in target):
        raise wrong_address(told("It has characters that must be escaped"))
    line = f"POST {target} HTTP/1.1\r\n".encode()
    lines = {name.lower(): _header(name, value) for name, value in every.items()}
    return Endpoint(origin, line, lines, line + b"".join(lines.values()))


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
        (parts.hostname or "").encode("idna")  # as it is looked up
    except ValueError as error:
        raise wrong_address(told(str(error))) from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise wrong_address(told(f"'{url.strip().rpartition('@')[2]}' is none"))
    return parts


def _proxy_of(parts: SplitResult) -> tuple[Origin | None, str]:
    host = parts.hostname or ""
    if host in _LOOPBACK or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None, ""
    proxies = getproxies()
    url = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not url:
        return None, ""
    try:
        proxy = urlsplit(url if "://" in url else f"http://{url}")
        port = proxy.port
    except ValueError:
        proxy, port = urlsplit(""), None
    if proxy.scheme not in _PORTS or not proxy.hostname:
        raise ModelRefusedError(
            "The proxy that the environment names cannot be used: its address begins with http:// or https://. "
            "Correct it (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY)."
        )
    origin = Origin(proxy.hostname, port or _PORTS[proxy.scheme], proxy.scheme == "https")
    return origin, "" if proxy.username is None else _basic(proxy)


def _basic(parts: SplitResult) -> str:
    name = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(name.encode()).decode()}"


def _header(name: str, value: str) -> bytes:
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise ModelRefusedError(
            f"The request could not be made: the header {name[:100]!r} has characters that no header may have. "
            "Correct the key or extra_headers in the settings."
        )
    return f"{name}: {value}\r\n".encode("latin-1")
