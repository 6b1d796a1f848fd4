"""Files and folders that an earlier version made get the names that they have now."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

_log = logging.getLogger(__name__)


def take_over(folder: Path, changes: Callable[[Iterable[str]], Mapping[str, str]]) -> None:
    """Rename what lies in the folder as `changes` wants it, if nothing has the new name yet.

    Names are compared letter by letter, as the folder lists them: a file system that ignores case would find what has
    another name. What cannot be renamed, or found, stays where it is and is told in the log.
    """
    try:
        found = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        _log.warning(
            "%s could not be read (%s), so nothing in it was renamed: let this program read it", folder, error.strerror
        )
        return
    for before, now in changes(found).items():
        if before not in found:
            continue
        try:
            if now in found:
                raise FileExistsError(17, "one with the same name already exists")
            (folder / before).rename(folder / now)
        except OSError as error:
            _log.warning(
                "%s is called %s by this version and could not be renamed (%s): move what is in it by hand",
                folder / before,
                now,
                error.strerror,
            )
