"""Where the code of this process comes from, which nobody may change who is to be held in a sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import NamespaceLoader, PathFinder
from pathlib import Path

import msgspec

PACKAGE = os.path.abspath(f"{__file__}/../..")
"""Where this package lies."""


def import_folders() -> tuple[Path, ...]:
    """The real paths that this process imports from. Some need not be there."""
    here = _current()
    return tuple(dict.fromkeys(Path(here, entry).resolve() for entry in sys.path))


def library_folders() -> tuple[str, ...]:
    """Where the packages lie that the process which starts sandboxes needs, beside the standard library and its own.

    The folder of the program that is run and the current folder are none, whatever lies in them.
    """
    folders = [os.path.dirname(os.path.dirname(os.path.abspath(msgspec.__file__)))]
    found = PathFinder.find_spec("sandlock", _installed())
    if found is not None and found.submodule_search_locations:
        folders.append(os.path.dirname(os.path.abspath(next(iter(found.submodule_search_locations)))))
    return tuple(dict.fromkeys(folders))


def imported_from(folder: Path, *, apart: Iterable[Path] = ()) -> Path | None:
    """The folder of imports for whose sake nobody should be able to write in this one; None if it is safe.

    It is one that lies in this folder, or this folder itself; or one in which this folder is a package, or could
    become one that is taken for another. What is `apart` cannot be written anyway.
    """
    kept = tuple(apart)
    for entry in import_folders():
        if entry.is_relative_to(folder):
            if not any(entry.is_relative_to(each) for each in kept):
                return entry
        elif folder.is_relative_to(entry) and _is_package(folder.relative_to(entry).parts[0], entry):
            return entry
    return None


def _is_package(name: str, entry: Path) -> bool:
    if not name.isidentifier():
        return False
    if name in sys.modules or name in sys.stdlib_module_names or (entry / name / "__init__.py").exists():
        return True
    others = [str(each) for each in import_folders() if each != entry]
    found = PathFinder.find_spec(name, others)
    return found is not None and found.loader is not None and not isinstance(found.loader, NamespaceLoader)


def _installed() -> list[str]:
    """The folders of imports without those of the program: its own and the current one."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    program = {_current()} | ({Path(main).resolve().parent} if main else set())
    return [str(each) for each in import_folders() if each not in program]


def _current() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")
