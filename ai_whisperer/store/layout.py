"""What lies where in a data folder."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LOGS = "logs"
WORK = "work"
_GITIGNORE = """\
# What is kept here, the token among it, stays out of git. Agents, tools and settings beside it do not.
/whisperer.*
!/whisperer.toml
/token*
/server.json*
/page.html
/logs/
/work/
/replaced-*/
/.restoring/
/.replacing/
"""


def keep_out_of_git(folder: Path) -> None:
    """Write a `.gitignore` for a data folder; one that is there is left as it is, whatever it says."""
    with suppress(OSError):  # a folder that takes no file may still hold a database
        descriptor = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_GITIGNORE)


def place_aside(folder: Path) -> Path:
    """A new name in a data folder, for a folder with what something else takes the place of."""
    return folder / f"replaced-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def traces_in(folder: Path) -> Iterator[Path]:
    """The folders with what agents have left beside the database: their logs, and their files."""
    for name in (LOGS, WORK):
        above = folder / name
        if above.is_dir():
            yield from (each for each in sorted(above.iterdir()) if each.is_dir() and any(each.iterdir()))
