"""What is hidden from a job in a folder that it may see: something empty is mounted over it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox.mounting import Attribute, Flag, mount, put, tree


def cover(base: str, hidden: Sequence[str], *, writable: Sequence[str]) -> None:
    """Mount something empty over what is hidden, in a root that is laid out at `base`.

    A folder that leads there becomes a mount of its own: nobody can rename one.
    """
    for above in leading_to(hidden, writable):
        put(base + above, tree(base + above, 0))
    for path in filter(os.path.lexists, outermost(hidden)):
        if os.path.isdir(path):
            mount("tmpfs", base + path, "tmpfs", Flag.NOSUID | Flag.NODEV, "mode=755,size=1m")
        else:
            put(base + path, tree(os.devnull, Attribute.READ_ONLY | Attribute.NOSUID | Attribute.NODEV))


def seal(base: str, hidden: Sequence[str]) -> None:
    """Let nothing be made any more in the folders that are mounted over what is hidden."""
    for path in filter(os.path.isdir, outermost(hidden)):
        mount(None, base + path, None, Flag.REMOUNT | Flag.BIND | Flag.READ_ONLY | Flag.NOSUID | Flag.NODEV)


def check_can_be_hidden(hidden: Iterable[str], writable: Sequence[str]) -> None:
    """Raise `SandboxError` if something hidden could be made or swapped by the job: a mount needs a place, no link."""
    for path in hidden:
        if os.path.realpath(path) != path:
            raise SandboxError(f"'{path}' is, or leads through, a symbolic link, so programs cannot be kept from it.")
        if os.path.isfile(path) and os.stat(path).st_nlink > 1:
            raise SandboxError(f"'{path}' has another name (a hard link), so programs cannot be kept from it.")
        if not os.path.lexists(path) and lies_in(path, writable):
            raise SandboxError(f"'{path}' is not there, so programs cannot be kept from making it.")


def leading_to(hidden: Iterable[str], writable: Sequence[str]) -> list[str]:
    """The folders above what is hidden that lie in one that may be written, the outer ones first."""
    return sorted({above for path in hidden for above in _between(path, writable)})


def outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie in none of the others."""
    return [path for path in sorted(set(paths)) if not lies_in(os.path.dirname(path), paths)]


def lies_in(path: str, folders: Iterable[str]) -> bool:
    """Whether the path is one of these folders or lies in one; all of them are without links."""
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _between(path: str, folders: Iterable[str]) -> Iterator[str]:
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and lies_in(os.path.dirname(above), folders):
        yield above
        above = os.path.dirname(above)
