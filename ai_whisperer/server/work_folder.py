"""Where the files of agents are: in the data folder, or in one that all nodes share."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from ai_whisperer.errors import SettingsError
from ai_whisperer.settings import Settings

_MARK = ".whisperer-work"
"""In a folder that is shared: what only those read who have the same one."""


def work_folder(settings: Settings) -> Path:
    """The folder above those of the sessions."""
    return settings.work or settings.data


def check_work(settings: Settings) -> None:
    """Raise `SettingsError` unless the shared folder, if there is one, can be used; it is made if it is missing."""
    if settings.work is None:
        return
    if settings.store is None:
        raise SettingsError(
            "The setting work is for sessions in PostgreSQL (--store): the files of others are in their data folder."
        )
    try:
        settings.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = secrets.token_hex(8)
        draft = settings.work / f"{_MARK}.{made}"
        draft.write_text(made, encoding="ascii")
        try:
            with suppress(FileExistsError):
                os.link(draft, settings.work / _MARK)  # whole, or not at all
        finally:
            draft.unlink()
        mark_of(settings)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The folder '{settings.work}' of the setting work cannot be used ({error}). Mount it, let the user of the "
            "server write to it, or choose another."
        ) from error


def mark_of(settings: Settings) -> str:
    """The same for all nodes that have the same folder; empty for one that shares none."""
    return "" if settings.work is None else (settings.work / _MARK).read_text(encoding="ascii")
