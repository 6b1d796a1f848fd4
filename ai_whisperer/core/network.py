"""Whom an agent's tools may talk to: the hosts that its definition grants.

A grant is `example.com` (this host), `*.example.com` (every host below it, not itself) or `*` (every host), each with a
port after a colon or else the ports 80 and 443. A host that is named in full, or an address, may be anywhere, on this
machine too; what a grant with `*` covers must have a public address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

from ai_whisperer.core.address_kinds import AddressKind, IPAddress, address_in, kind_of
from ai_whisperer.domain.record import Record
from ai_whisperer.errors import DefinitionError, InvalidInputError

DEFAULT_PORTS = (80, 443)
_MAX_HOST = 253
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NO_HOSTS = (IPv4Address(0), IPv6Address(0), IPv4Address("255.255.255.255"))
_NEAR = (AddressKind.PUBLIC, AddressKind.LOOPBACK, AddressKind.PRIVATE)


class Reach(IntEnum):
    """How far a grant goes: nowhere, to public addresses, to addresses of this machine and its networks too."""

    NONE = 0
    PUBLIC = 1
    NEAR = 2


class Grant(Record, frozen=True, kw_only=True):
    """One granted host. `host` is a name or address, with `below` all names below it; "" and `below` means all."""

    host: str
    below: bool = False
    ports: tuple[int, ...] = DEFAULT_PORTS

    @property
    def written(self) -> str:
        """The grant as a definition has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = (f"*.{host}" if host else "*") if self.below else host
        return shown if self.ports == DEFAULT_PORTS else f"{shown}:{self.ports[0]}"

    def covers(self, host: str, port: int) -> bool:
        if port not in self.ports:
            return False
        if not self.below:
            return host == self.host
        return not self.host or host.endswith(f".{self.host}")


class NetworkGrants(Record, frozen=True, kw_only=True):
    """All that an agent is granted."""

    grants: tuple[Grant, ...] = ()

    def allows(self, host: str, port: int) -> bool:
        """Whether the host may be talked to at that port, as far as its name goes."""
        return self.reach(host, port) is not Reach.NONE

    def reach(self, host: str, port: int) -> Reach:
        """How far one may go to reach a host, given as `normal_host` has it."""
        covering = [grant for grant in self.grants if grant.covers(host, port)]
        if any(not grant.below for grant in covering):
            return Reach.NEAR
        return Reach.PUBLIC if covering else Reach.NONE

    def allows_address(self, host: str, port: int, address: IPAddress) -> bool:
        """Whether that address of the host may be talked to.

        An address that was granted as such may be of any kind. A name leads neither to link-local addresses, where
        clouds keep the keys of a machine, nor to any that no single host can have.
        """
        reach, kind = self.reach(host, port), kind_of(address)
        if reach is Reach.NEAR:
            return kind in _NEAR or host == str(address)
        return reach is Reach.PUBLIC and kind is AddressKind.PUBLIC


def grants_of(network: Iterable[str]) -> NetworkGrants:
    """The grants of a definition; raises `DefinitionError` that names the one that cannot be understood."""
    return NetworkGrants(grants=tuple(_grant(number, text) for number, text in enumerate(network)))


def normal_host(written: str) -> str:
    """The one spelling of a host: small letters, ASCII, an address in its usual form, no dot at the end.

    Raises `InvalidInputError` for what is neither a name nor an address.
    """
    is_bracketed = written.startswith("[") and written.endswith("]") and ":" in written
    host = written[1:-1] if is_bracketed else written
    try:
        host = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError as error:
        raise InvalidInputError(f"{written[:100]!r} is not a host name: {error}.") from error
    host = host.lower().removesuffix(".")
    address = address_in(host)
    if address is not None:
        return str(address)
    if not host or len(host) > _MAX_HOST or not all(map(_LABEL.fullmatch, host.split("."))):
        raise InvalidInputError(f"{written[:100]!r} is not a host name or an address.")
    return host


def _grant(number: int, text: str) -> Grant:
    try:
        host, port = _split(text)
        ports = DEFAULT_PORTS if port is None else (_port(port),)
        if host == "*":
            return Grant(host="", below=True, ports=ports)
        if host.startswith("*."):
            return Grant(host=_name(host[2:]), below=True, ports=ports)
        return Grant(host=_reachable(normal_host(host)), ports=ports)
    except InvalidInputError as error:
        raise DefinitionError(
            f"network[{number}]: {error.message} Grant a host as 'example.com', '*.example.com', 'example.com:8080', "
            "'127.0.0.1:8080' or '[::1]:8080', or all public ones as '*'."
        ) from error


def _split(text: str) -> tuple[str, str | None]:
    """The host and, if there is one, the port. An IPv6 address with a port is in brackets."""
    if text.startswith("[") or text.count(":") == 1:
        host, colon, port = text.rpartition(":")
        if colon and (not text.startswith("[") or host.endswith("]")):
            return host, port
    return text, None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65_535):
        raise InvalidInputError(f"{text[:100]!r} is not a port: use a number from 1 to 65535.")
    return int(text)


def _name(host: str) -> str:
    name = normal_host(host)
    if address_in(name) is not None:
        raise InvalidInputError(f"Nothing is below the address {name}.")
    return name


def _reachable(host: str) -> str:
    address = address_in(host)
    if address in _NO_HOSTS or (address is not None and kind_of(address) is AddressKind.MULTICAST):
        raise InvalidInputError(f"{host} is not the address of one host.")
    return host
