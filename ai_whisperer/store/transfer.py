"""Writing one session to a file, wherever it is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_whisperer.store.archive import Progress, TransferReport


def export_session(
    data: str | Path,
    session_id: str,
    file: str | Path,
    *,
    store: str | None = None,
    on_progress: Progress = lambda _: None,
) -> TransferReport:
    """Write one session of a data folder to a file that is not there yet, also while a server has the folder.

    With `store`, the address of a PostgreSQL database, the session is in that, and the folder has the files of its
    agents; it is not to be called within an event loop then. Raises `UnknownSessionError`, another `StoreError` or an
    `ArchiveError`.
    """
    if store is None:
        from ai_whisperer.store.sqlite import transfer

        return transfer.export_from(Path(data), session_id, Path(file), on_progress=on_progress)
    from ai_whisperer.store.postgresql import exporting

    return asyncio.run(exporting.export_from(store, session_id, Path(file), data=Path(data), on_progress=on_progress))


def copy_with_unlisted(data: Path, session_id: str, folder: Path) -> None:
    """Copy the database of a data folder, whoever has it open, if it has this session and lists it nowhere.

    A program that has a folder to itself makes such sessions. Nothing is changed in the folder. Raises
    `UnknownSessionError` or another `StoreError`.
    """
    from ai_whisperer.store.sqlite import transfer

    transfer.copy_with_unlisted(data, session_id, folder)
