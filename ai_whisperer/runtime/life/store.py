"""Which store a session is kept in. Nothing else in the runtime knows more of it than its contract."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

from ai_whisperer.domain.nodes import NodeCard
from ai_whisperer.errors import StoreError
from ai_whisperer.store.base import Store
from ai_whisperer.store.postgresql.addresses import checked_address
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.version import __version__

PATIENCE_SECONDS = 30.0
_programs = itertools.count(1)
"""A process may open several stores: each is a node of its own."""


async def open_store(
    data: str | Path | None,
    address: str | None = None,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    card: NodeCard | None = None,
    work: Path | None = None,
) -> Store:
    """The store at the address, or without one in the data folder, made if there is none; without both, in memory.

    Of a store elsewhere the data folder has the files, unless these are in `work`, and this process has the folder for
    itself. The store it has together with other nodes, to which `card` introduces it. Raises a `StoreError` that says
    what to do.
    """
    if address is None:
        return SqliteStore.in_memory() if data is None else SqliteStore.open(data)
    checked_address(address)
    try:
        from ai_whisperer.cluster.joining import join
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError(
            "A store in PostgreSQL needs the package asyncpg. Install it: pip install 'ai-whisperer[cluster]'"
        ) from error
    card = card or NodeCard(name=f"{socket.gethostname()}:{os.getpid()}.{next(_programs)}", version=__version__)
    return await join(address, card, folder=data, work=work, patience_seconds=patience_seconds)
