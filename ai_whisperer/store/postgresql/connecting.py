"""Connecting to PostgreSQL: to the one host of the address that takes writes, and what it means if that fails."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from typing import Any, Final

import asyncpg
from asyncpg import Connection, connect_utils

from ai_whisperer.errors import StoreError, StoreFullError, StoreInUseError, StoreReadOnlyError, StoreVersionError
from ai_whisperer.store.postgresql.addresses import checked_address, database_of, hosts_apart, shown

OLDEST: Final = 14
SCHEMA: Final = "whisperer"
CONNECT_SECONDS: Final = 5.0
_FIRST_SHARE: Final = 0.25
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}
"""A connection ends when nothing of the other machine was heard for about ten seconds. The last is in milliseconds."""

TAKES_NO_WRITES: Final = (asyncpg.ReadOnlySQLTransactionError, asyncpg.TargetServerAttributeNotMatched)
LOST: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has said goodbye, and its connection is not closed yet
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    *TAKES_NO_WRITES,
    OSError,
    EOFError,
    TimeoutError,
)
"""What happens to a connection and says nothing of what was sent: with another one it is sent again."""

_SPEAKS_OF_THE_ADDRESS: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ObjectNotInPrerequisiteStateError,
)
"""Errors in whose text PostgreSQL names hosts, users and databases."""

_log = logging.getLogger(__name__)

_SETTINGS: Final = {
    "search_path": SCHEMA,
    "timezone": "UTC",
    "jit": "off",
    "enable_seqscan": "off",  # a table may have grown a thousandfold since it was last counted
    "idle_in_transaction_session_timeout": "10s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_WRITING: Final = {"plan_cache_mode": "force_generic_plan", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""The plan of a statement that writes is always the same: each row is found by its key."""


async def connect(address: str, *, name: str, writes: bool = False, seconds: float = CONNECT_SECONDS) -> Connection:
    """A connection to the first host that takes writes; raises what `explained` explains.

    Each host has so many seconds: one that does not even refuse must not keep us from the next. At first it has less:
    what is in the way may have taken the connection as the server ended, and the next one is answered at once.
    """
    settings = {**_SETTINGS, **(_WRITING if writes else {}), "application_name": name}
    hosts = hosts_apart(checked_address(address))
    lost: BaseException | None = None
    for patience_seconds in (_FIRST_SHARE * seconds, seconds):
        silent = []
        for host in hosts:
            try:
                async with asyncio.timeout(patience_seconds):
                    found = await asyncpg.connect(host, target_session_attrs="read-write", server_settings=settings)
            except TimeoutError as error:
                lost = error
                silent.append(host)
            except LOST as error:
                lost = error
            else:
                _watch_over(found)
                return found
        hosts = silent
    raise lost or OSError("no host is named")


def _hear_of_upgrades(asking: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    """What asks a server for TLS, and hears how that ended if whoever connects is cancelled just then.

    asyncpg marks what it connects with as heard of when it is cancelled, but not this: the garbage collector would log
    an exception that was never retrieved.
    """

    class Upgrading(asking):  # type: ignore[misc, valid-type]
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.on_data.done() and not self.on_data.cancelled():
                self.on_data.exception()

    return Upgrading


if hasattr(connect_utils, "TLSUpgradeProto"):  # asyncpg does not promise it; without it there are lines in a log
    connect_utils.TLSUpgradeProto = _hear_of_upgrades(connect_utils.TLSUpgradeProto)


def _watch_over(connection: Connection) -> None:
    """Let the system find out that the server's machine is gone: who only reads would wait for it for ever."""
    opened: socket.socket | None = connection._transport.get_extra_info("socket")  # noqa: SLF001 - nobody else has it
    if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def check_server(connection: Connection, address: str) -> None:
    """Raise a `StoreError` unless this server can hold a store."""
    version = connection.get_server_version()
    if version.major < OLDEST:
        raise StoreVersionError(
            f"The PostgreSQL at {shown(address)} has version {version.major}.{version.minor}, and {OLDEST} or newer is "
            "needed. Upgrade it, or use another; nothing was changed."
        )
    encoding, pid = await connection.fetchrow("SELECT current_setting('server_encoding'), pg_backend_pid()")
    if encoding != "UTF8":
        raise StoreError(
            f"The database at {shown(address)} keeps text as {encoding}, and UTF8 is needed. Make another: CREATE "
            "DATABASE … ENCODING 'UTF8' TEMPLATE template0."
        )
    if pid != connection.get_server_pid():
        raise StoreError(
            f"A pooler such as PgBouncer stands before the database at {shown(address)}. Give the address of "
            "PostgreSQL itself: few connections are made, and each is kept."
        )


def explained(error: BaseException, address: str | None = None) -> StoreError:
    """The error of the database as one of ours, which says what to do.

    The address is for whoever gave it. Without it the error can be told to clients, who are not to know it: what
    PostgreSQL says of it is only logged.
    """
    if isinstance(error, StoreError):
        return error
    if address is None and isinstance(error, _SPEAKS_OF_THE_ADDRESS):
        _log.error("PostgreSQL refuses: %s", error)
    why = in_words(error, names_address=address is not None)
    where = "the address of the store" if address is None else shown(address)
    database = "NAME" if address is None else database_of(address)
    words = {"where": where, "database": database, "why": why}
    for kinds, ours, told in _MEANINGS:
        if isinstance(error, kinds):
            made = ours(told.format(**words))
            break
    else:
        made = StoreError(f"The database at {where} cannot be used: {why}.")
    made.__cause__ = error
    return made


_Kinds = tuple[type[BaseException], ...]
_MEANINGS: Final[tuple[tuple[_Kinds, type[StoreError], str], ...]] = (
    (
        (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError),
        StoreError,
        (
            "PostgreSQL does not let us in at {where} ({why}). Correct the user and the password in the address, or "
            "what pg_hba.conf allows."
        ),
    ),
    (
        (asyncpg.InvalidCatalogNameError,),
        StoreError,
        "There is no database '{database}' at {where}. Make it, as a user who may: createdb {database}",
    ),
    (
        (asyncpg.InsufficientPrivilegeError,),
        StoreReadOnlyError,
        (
            "The user of {where} lacks a right ({why}). As the owner of the database: GRANT CREATE ON DATABASE "
            f'"{{database}}" TO the user, or CREATE SCHEMA {SCHEMA} AUTHORIZATION the user.'
        ),
    ),
    (
        TAKES_NO_WRITES,
        StoreReadOnlyError,
        (
            "No PostgreSQL at {where} takes writes: what answers there is a standby, or is read-only. Name the host "
            "that takes them, or all hosts, with commas between them."
        ),
    ),
    (
        (asyncpg.UndefinedObjectError, asyncpg.UndefinedFunctionError),
        StoreVersionError,
        (
            "The PostgreSQL at {where} does not know what is asked of it ({why}): it is probably older than "
            f"{OLDEST}. Upgrade it, or use another; nothing was changed."
        ),
    ),
    (
        (asyncpg.ProtocolViolationError,),
        StoreError,
        (
            "What answers at {where} does not take our connection ({why}): a pooler, probably. Give the address "
            "of PostgreSQL itself."
        ),
    ),
    (
        (asyncpg.DiskFullError,),
        StoreFullError,
        "The disk of the PostgreSQL at {where} is full. Free some space and start again.",
    ),
    (
        (asyncpg.TooManyConnectionsError,),
        StoreInUseError,
        "PostgreSQL at {where} takes no more connections. Raise max_connections.",
    ),
    (
        (ssl.SSLError,),
        StoreError,
        (
            "There is no safe connection to the PostgreSQL at {where} ({why}). Correct its certificate, or sslmode and "
            "sslrootcert in the address (--store)."
        ),
    ),
    (
        (asyncpg.ClientConfigurationError, ValueError),
        StoreError,
        "'{where}' cannot be used as an address ({why}). Correct it (--store).",
    ),
    (
        (TimeoutError, OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError),
        StoreError,
        "No PostgreSQL answers at {where} ({why}). Start it, or correct the address (--store).",
    ),
)
"""What errors mean, the first that fits."""


def in_words(error: BaseException, *, names_address: bool = False) -> str:
    """What went wrong; without anything of the address at which it did, unless that is asked for."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        told, whole = _of_system(error)
        return f"{told}: {whole}" if names_address and whole else told
    if isinstance(error, _SPEAKS_OF_THE_ADDRESS) and not names_address:
        return f"its error {state_of(error)}, of which the log of this server has more"
    return str(error) or type(error).__name__


def _of_system(error: OSError) -> tuple[str, str]:
    """What went wrong, and what is told of it beside that, which may name the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the certificate is not accepted", getattr(error, "verify_message", str(error))
    if isinstance(error, ssl.SSLError):
        return "TLS does not work", str(error)
    if isinstance(error, socket.gaierror):
        is_unknown = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None))
        return "its name is not known" if is_unknown else "its name cannot be looked up", error.strerror or ""
    if error.errno:
        return os.strerror(error.errno).lower(), ""
    return "it cannot be reached", str(error)


def state_of(error: BaseException) -> str:
    """The five characters by which PostgreSQL names an error."""
    found: Any = getattr(error, "sqlstate", None)
    return found if isinstance(found, str) else ""
