"""Where a server is: the address as people have it, with or without the token in it."""

from __future__ import annotations

import re
import ssl
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec.structs import replace

from ai_whisperer.errors import InvalidInputError, UnauthorizedError

_SCHEMES = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}
_TOKEN = re.compile(r"[!-~]+")
_BETWEEN = re.compile(r",(?=\s*[a-zA-Z]*://)|,\s*\Z")
"""What stands between two addresses: a token may have a comma in it."""


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a server's WebSocket, and the token to show there. `url` has no secrets and can be told.

    `certificate` is a file with a certificate to trust beside those that the machine trusts. `others` are servers that
    will do as well: the nodes of a cluster.
    """

    url: str
    token: str | None
    certificate: str | None = None
    others: tuple[ServerAddress, ...] = ()

    def __repr__(self) -> str:
        return f"ServerAddress({self.url!r})"

    @property
    def named(self) -> str:
        """The address as it is told, with those that will do as well."""
        return " or ".join(each.url for each in (self, *self.others))

    @property
    def headers(self) -> dict[str, str]:
        """What a request must have to be let in."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    @property
    def trust(self) -> ssl.SSLContext | None:
        """Whom to trust there; None for an address without TLS. Raises `InvalidInputError`."""
        return trusting(self.certificate) if self.url.startswith("wss:") else None


def trusting(certificate: str | None) -> ssl.SSLContext:
    """Trust what the machine trusts, and this certificate; raises `InvalidInputError` if it cannot be read."""
    context = ssl.create_default_context()
    if certificate is not None:
        try:
            context.load_verify_locations(cafile=certificate)
        except OSError as error:
            raise InvalidInputError(f"The certificate '{certificate}' cannot be read: {error}.") from error
    return context


def read_address(url: str, token: str | None = None, *, certificate: str | None = None) -> ServerAddress:
    """The server that is meant: its page or its WebSocket, as http(s) or ws(s), with `?token=` or without.

    A token that is given beside the address counts. Several addresses, with commas between them, are nodes of one
    cluster: a token in one of them is shown to all. Raises `InvalidInputError`, or `UnauthorizedError` for a token
    that cannot be one.
    """
    if not isinstance(url, str):
        raise InvalidInputError(f"The address of a server must be text, not {type(url).__name__}.")
    first, *others = [_read(each, token, certificate) for each in _BETWEEN.split(url)]
    shown = next((each.token for each in (first, *others) if each.token is not None), None)
    rest = tuple(each if each.token is not None else replace(each, token=shown) for each in others)
    return replace(first, token=first.token or shown, others=rest) if others else first


def _read(url: str, token: str | None, certificate: str | None) -> ServerAddress:
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in _SCHEMES:
        shown = url.partition("?")[0][:200]
        raise InvalidInputError(
            f"{shown!r} is not the address of a server. Use the one that `whisperer serve` printed, such as "
            "http://127.0.0.1:8642/."
        )
    given = token if token is not None else next(iter(parse_qs(parts.query).get("token", [])), None)
    if given is not None and (not isinstance(given, str) or not _TOKEN.fullmatch(given)):
        raise UnauthorizedError(
            "The token has characters that no token has, or none at all. Use the address with the token that "
            "`whisperer serve` printed."
        )
    at = f"[{host}]" if ":" in host else host
    folder = parts.path.removesuffix("/").removesuffix("/ws")
    return ServerAddress(
        url=f"{_SCHEMES[parts.scheme]}://{at}{'' if port is None else f':{port}'}{folder}/ws",
        token=given,
        certificate=certificate,
    )
