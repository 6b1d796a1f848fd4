"""Who may come in: the right Host, the right Origin, the right token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection

from ai_whisperer.cluster.membership import Membership
from ai_whisperer.errors import SettingsError
from ai_whisperer.server.gateway import wire
from ai_whisperer.server.guesses import Guesses
from ai_whisperer.settings import LOCAL, Settings

_LEAST_TOKEN = 16
_HOW_TO_COME_IN = (
    "Open the address that `whisperer serve` printed: it has the token in it. Programs give the token itself (--token, "
    "WHISPERER_TOKEN)."
)


class Denial(msgspec.Struct, frozen=True):
    """Why somebody is not let in, as an HTTP status and a sentence, and when to try again if that helps."""

    status: int
    message: str
    retry_after_seconds: int | None = None
    is_wrong_token: bool = False


class Gate:
    """Checks each HTTP request and each WebSocket before anything else happens.

    Names are compared as they are, in small letters: `localhost` can be made to mean any machine, so it is not trusted
    unless it is among the allowed hosts.
    """

    def __init__(self, tokens: Mapping[str, str], *, settings: Settings, port: int) -> None:
        """`tokens` leads from principals to their tokens."""
        scheme, usual_port = ("https", 443) if settings.tls_certificate else ("http", 80)
        shown_port = None if port == usual_port else port  # as browsers have it in Host and Origin
        own = own_host(settings)
        names = [] if own is None else [own]
        if own is not None and is_loopback(own):
            names += ["127.0.0.1", "::1"]
        self._tokens = {principal: token.encode() for principal, token in tokens.items()}
        self._hosts = {_with_port(name, shown_port) for name in names} | set(settings.allowed_hosts)
        self._origins = {f"{scheme}://{host}" for host in self._hosts} | set(settings.allowed_origins)
        if settings.advertise is not None:  # others were told to come there, perhaps to a proxy before this server
            advertised = _hosts_of(settings.advertise)
            self._hosts |= advertised
            self._origins |= {f"{urlsplit(settings.advertise).scheme}://{host}" for host in advertised}
        self._hosts = {host.lower() for host in self._hosts}
        self._origins = {origin.lower() for origin in self._origins}
        self._shown = f"{own_url(settings, port)}/"
        self._guesses = Guesses(settings.max_wrong_tokens)
        self.cookie = f"whisperer-{port}"

    def check_address(self, request: HTTPConnection) -> Denial | None:
        """None if the request is meant for this server and comes from its own page or from no page at all."""
        host = request.headers.get("host", "")
        if host.lower() not in self._hosts:
            return Denial(
                421, f"This server does not answer to the host {host[:100]!r}. Use {self._shown}, or allowed_hosts."
            )
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return Denial(403, f"Pages of {origin[:100]!r} may not use this server. See the setting allowed_origins.")
        return None

    def principal(self, request: HTTPConnection) -> str | Denial:
        """Who the request's token belongs to. An address that has shown too many wrong ones has to wait."""
        given = self._token_of(request)
        if not given:
            return Denial(401, f"A token is needed. {_HOW_TO_COME_IN}")
        address = request.client.host if request.client else None
        wait = self._guesses.seconds_to_wait(address)
        if wait is not None:
            return _too_many(wait)
        found = None
        for principal, token in self._tokens.items():
            if hmac.compare_digest(token, given):
                found = principal
        if found is not None:
            self._guesses.was_right(address)
            return found
        return self._wrong(address, f"The token is wrong. {_HOW_TO_COME_IN}")

    def _wrong(self, address: str | None, told: str) -> Denial:
        wait = self._guesses.was_wrong(address)
        return Denial(401, told, is_wrong_token=True) if wait is None else _too_many(wait)

    def check_node(self, request: HTTPConnection, membership: Membership) -> Denial | None:
        """None if the request comes from another node of the same cluster, and is meant for this one.

        The secret cannot be guessed: nodes need not wait, whoever else guesses.
        """
        given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        address = request.client.host if request.client else None
        if not hmac.compare_digest(membership.secret.encode(), given):
            return self._wrong(address, "Only nodes of the same cluster connect here. The WebSocket is at /ws.")
        self._guesses.was_right(address)
        meant = request.query_params.get(wire.TO, "")
        if meant != membership.name:
            return Denial(
                421,
                f"This is the node '{membership.name}', not {meant[:100]!r}. Give each node the address at which the "
                "others reach it (--advertise).",
            )
        return None

    def _token_of(self, request: HTTPConnection) -> bytes:
        """From the Authorization header, the query or, from the server's own page, the cookie."""
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and credentials:
            return credentials.strip().encode()
        query = QueryParams(request.scope.get("query_string", b"")).get("token")
        if query:
            return query.encode()
        if request.scope["type"] == "websocket" and "origin" not in request.headers:
            return b""
        return request.cookies.get(self.cookie, "").encode()


def _too_many(wait: int) -> Denial:
    message = f"Too many wrong tokens came from this address. Try again in {wait} seconds, with the right one."
    return Denial(429, message, retry_after_seconds=wait, is_wrong_token=True)


def own_host(settings: Settings) -> str | None:
    """The address that the server answers to beside its allowed hosts.

    One that listens on all addresses answers to the loopback address, unless it was told its names.
    """
    if not _is_any(settings.host):
        return settings.host
    if settings.allowed_hosts:
        return None
    return "::1" if ":" in settings.host else "127.0.0.1"


def own_url(settings: Settings, port: int) -> str:
    """Where the server can be reached, as it is told to people and kept for programs."""
    scheme = "https" if settings.tls_certificate else "http"
    own = own_host(settings)
    return f"{scheme}://{settings.allowed_hosts[0] if own is None else _with_port(own, port)}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. A name is not an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_binding(settings: Settings) -> None:
    """Raise `SettingsError` if the server could be reached from elsewhere without a token of its own and TLS.

    Or if one token would stand for two principals.
    """
    if settings.token in settings.tokens.values():
        raise SettingsError(
            "The setting token is one of [tokens] as well. Give the server a token of its own, or let it make one."
        )
    if is_loopback(settings.host):
        return
    if not settings.tls_certificate or not settings.tls_key:
        raise SettingsError(
            f"The host '{settings.host}' can be reached from other machines, so it needs TLS: give tls_certificate and "
            "tls_key, or use 127.0.0.1 and let a proxy or a tunnel do it."
        )
    if not settings.token and not settings.tokens:
        raise SettingsError(
            f"The host '{settings.host}' can be reached from other machines, so it needs a token that you choose: give "
            "--token, WHISPERER_TOKEN or [tokens] in whisperer.toml."
        )
    for principal, token in {**settings.tokens, LOCAL: settings.token}.items():
        if token and len(token) < _LEAST_TOKEN:
            raise SettingsError(
                f"The host '{settings.host}' can be reached from other machines, and the token of '{principal}' is "
                f"easily guessed: give it {_LEAST_TOKEN} characters or more, best at random."
            )


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _hosts_of(url: str) -> set[str]:
    """How clients write the host of an address: most leave out the port that its scheme has anyway."""
    parts = urlsplit(url.lower())
    usual = ":443" if parts.scheme == "https" else ":80"
    host = parts.netloc.rpartition("@")[2].removesuffix(usual)
    has_port = ":" in host.rpartition("]")[2]
    return {host} if has_port else {host, f"{host}{usual}"}


def _with_port(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"
