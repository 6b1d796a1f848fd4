"""Removing a folder that others could fill: however deep it is, whatever modes it has, and without following links."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from ai_whisperer.tools.files.beneath import DIRECTORY, Links, open_beneath, open_folder

_MOST_ROUNDS = 100
"""So often a folder is looked at again into which somebody still writes."""

_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC


def remove_beneath(root: Path, path: Path) -> None:
    """Remove the path, which lies beneath the root, with all that is in it; raises `OSError` if something is left.

    It need not be there. The root is a real path, and the way from it to the parent must have no links: otherwise the
    parent is not where it should be, and nothing is removed. If the path itself is a link, only the link is removed.
    """
    way = path.relative_to(root)
    if not way.parts or ".." in way.parts:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
    with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as stack:
        parent = open_folder(str(root))
        stack.callback(os.close, parent)
        if len(way.parts) > 1:
            parent = open_beneath(parent, str(way.parent), DIRECTORY, links=Links.REFUSED)
            stack.callback(os.close, parent)
        _remove(parent, way.name)


def _remove(parent: int, name: str) -> None:
    if not _is_folder(parent, name):
        os.unlink(name, dir_fd=parent)
        return
    folder = _opened(parent, name)
    try:
        _empty(folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=parent)


def _empty(top: int) -> None:
    """Remove all that is in the open folder. What lies deeper is moved up first, so that depth takes nothing."""
    for _ in range(_MOST_ROUNDS):
        names = os.listdir(top)
        if not names:
            return
        while names:
            name = names.pop()
            with contextlib.suppress(FileNotFoundError):
                if _is_folder(top, name):
                    names += _moved_up(top, name)
                else:
                    os.unlink(name, dir_fd=top)


def _moved_up(top: int, name: str) -> list[str]:
    """Remove a folder; the folders that were in it are in the top folder then, by the names that are returned."""
    moved: list[str] = []
    folder = _opened(top, name)
    try:
        for each in os.listdir(folder):
            if _is_folder(folder, each):
                os.close(_opened(folder, each))  # one that may not be written could not be moved
                moved.append(secrets.token_hex(16))
                os.rename(each, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(each, dir_fd=folder)
    finally:
        os.close(folder)
    with contextlib.suppress(OSError):  # somebody has put something into it: the next round finds it
        os.rmdir(name, dir_fd=top)
    return moved


def _is_folder(parent: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _opened(parent: int, name: str) -> int:
    """The folder, opened, with a mode that lets us do anything in it."""
    try:
        folder = os.open(name, DIRECTORY | _NO_FOLLOW, dir_fd=parent)
    except PermissionError:
        _permit(parent, name)
        folder = os.open(name, DIRECTORY | _NO_FOLLOW, dir_fd=parent)
    if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        try:
            os.fchmod(folder, stat.S_IRWXU)
        except OSError:
            os.close(folder)
            raise
    return folder


def _permit(parent: int, name: str) -> None:
    """Let us open a folder that we may not even read. Its mode is changed, never that of what a link leads to."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
    finally:
        os.close(place)
