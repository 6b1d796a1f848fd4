"""Where a request goes: an address that a model or a server wrote, taken apart and checked."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin, urlsplit

from ai_whisperer.core.network import normal_host
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import InvalidInputError, ToolError

_PORTS = {"http": 80, "https": 443}
_MAX_URL = 8_000
_ODD = re.compile(r"[\x00-\x20\x7f\\]")
_KEPT = "/%:@!$&'()*+,;=~-._?"


class Target(Record, frozen=True, kw_only=True):
    """A host, a port and what is asked for there. `host` is as `core.network.normal_host` has it."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return (self.scheme, self.host, self.port)

    @property
    def authority(self) -> str:
        """The host as it stands in a URL, with the port unless it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def target_of(url: str) -> Target:
    """The target of a URL; raises `ToolError` for all but plain `http` and `https`.

    What programs read in different ways (control characters, backslashes, a user before the host) is refused.
    """
    if len(url) > _MAX_URL:
        raise ToolError(f"The URL has {len(url):,} characters, at most {_MAX_URL:,} are allowed.")
    if _ODD.search(url.strip(" ")):
        raise ToolError(f"The URL {url[:200]!r} holds a space, a backslash or a control character. Encode it as %XX.")
    try:
        parts = urlsplit(url.strip(" "))
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{url[:200]!r} is not a URL: {error}.") from error
    if parts.scheme not in _PORTS:
        raise ToolError(f"Only http:// and https:// URLs can be fetched, not {url[:200]!r}.")
    if "@" in parts.netloc:
        raise ToolError("A URL with a user or password before the host is not fetched. Leave out the part before '@'.")
    try:
        host = normal_host(_written_host(parts.netloc))
    except InvalidInputError as error:
        raise ToolError(f"The URL has no host that can be talked to: {error.message}") from error
    path = quote(parts.path or "/", safe=_KEPT, errors="replace")
    query = f"?{quote(parts.query, safe=_KEPT, errors='replace')}" if parts.query else ""
    return Target(
        scheme=parts.scheme, host=host, port=_PORTS[parts.scheme] if port is None else port, path=path + query
    )


def redirected(target: Target, location: str) -> Target:
    """Where a server sends one on to; raises `ToolError` if that is no place to go."""
    try:
        return target_of(urljoin(target.url, location))
    except (ToolError, ValueError) as error:
        raise ToolError(f"{target.url} redirects to a place that is not fetched: {error}") from error


def _written_host(netloc: str) -> str:
    """The host as it was written: `urlsplit().hostname` would change some of them."""
    if netloc.startswith("["):
        return netloc[: netloc.find("]") + 1]
    return netloc.partition(":")[0]
