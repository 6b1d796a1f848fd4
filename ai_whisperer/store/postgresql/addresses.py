"""The address of a PostgreSQL database: what it must look like, and how it is shown without its password."""

from __future__ import annotations

from urllib.parse import parse_qsl

from ai_whisperer.errors import StoreError

SCHEMES = ("postgresql", "postgres")
EXAMPLE = "postgresql://HOST:5432/DATABASE, with USER:PASSWORD@ before the host"
"""Not in one piece: what looks like a password in an address is hidden in messages."""
_LAST_PORT = 65_535


def is_address(given: str) -> bool:
    """Whether this is meant to be the address of such a database."""
    return given.partition("://")[0] in SCHEMES


def checked_address(given: str) -> str:
    """The address; raises a `StoreError` that says how one looks."""
    scheme, mark, rest = given.partition("://")
    if scheme not in SCHEMES or not mark or not rest:
        raise StoreError(
            f"'{shown(given)}' is no address of a PostgreSQL database. Write it like {EXAMPLE}; several hosts are "
            "HOST1:5432,HOST2:5432."
        )
    for host in _hosts(rest):
        port = host.rpartition("]")[2].partition(":")[2]
        if port and not (port.isdecimal() and 0 < int(port) <= _LAST_PORT):
            raise StoreError(
                f"'{shown(given)}' is no address of a PostgreSQL database: {port!r} is no port. Ports are the numbers "
                f"from 1 to {_LAST_PORT}; PostgreSQL's is 5432 if nobody has chosen another."
            )
    return given


def shown(address: str) -> str:
    """The address without what is secret in it, for messages."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address.rpartition("@")[2]
    before, slash, after = rest.partition("/")
    user, at, hosts = before.rpartition("@")
    name = user.partition(":")[0] + at if at else ""
    path, question, query = after.partition("?")
    kept = "&".join(f"{key}={value}" for key, value in parse_qsl(query) if key != "password")
    return f"{scheme}://{name}{hosts}{slash}{path}{question if kept else ''}{kept}"


def database_of(address: str) -> str:
    """The name of the database, as far as the address tells it."""
    return address.partition("://")[2].partition("/")[2].partition("?")[0]


def hosts_apart(address: str) -> list[str]:
    """The address of each of its hosts alone."""
    scheme, mark, rest = address.partition("://")
    before, slash, after = rest.partition("/")
    user, at, hosts = before.rpartition("@")
    return [f"{scheme}{mark}{user}{at}{host}{slash}{after}" for host in hosts.split(",")]


def _hosts(rest: str) -> list[str]:
    """The hosts of what stands after the scheme, with their ports."""
    return rest.partition("/")[0].partition("?")[0].rpartition("@")[2].split(",")
