"""One process has the data folder: a lock that ends with the process, and that nobody can delete."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import time
from pathlib import Path

from ai_whisperer.errors import StoreFullError, StoreInUseError, StoreReadOnlyError
from ai_whisperer.store.durable_folders import make_durable

ADDRESS_FILE = "server.json"
"""Tells where the server that has the folder can be reached."""
LOCK_NAME = "whisperer.lock"
_LOOKS = 5
_LOOK_SECONDS = 0.01
_CANNOT_LOCK_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EISDIR, errno.ENOSYS)
"""What file systems say that cannot lock a folder, such as NFS."""

_held: set[int] = set()
_log = logging.getLogger(__name__)


def _let_go_in_child() -> None:
    """A forked child has the locks too, and would keep them when we die: it lets go at once."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


class FolderLock:
    """The folder, for this process alone, until it is released or the process ends, however it ends.

    The folder itself is locked, so whoever deletes the lock file lets nobody in. The file says who has it, and is the
    lock where a folder cannot be locked.
    """

    def __init__(self, folder: Path) -> None:
        """Raises `StoreInUseError` if another live process has it."""
        self._folder = folder
        self._descriptors: list[int] = []
        try:
            self._lock_folder()
            self._lock_file()
        except BlockingIOError as error:
            self.release()
            raise _in_use(folder) from error
        except BaseException:
            self.release()
            raise

    @staticmethod
    def holder(folder: Path) -> str | None:
        """The id of the live process that has the folder; None if nobody has."""
        for path in (folder, folder / LOCK_NAME):
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _named_in(folder)
            except OSError:
                continue
            finally:
                os.close(descriptor)
        return None

    def keep(self) -> None:
        """Put the lock file back if somebody has deleted it; raises `StoreInUseError` if another process has it now."""
        path = self._folder / LOCK_NAME
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(self._descriptors[-1])):
                return
        self._close(self._descriptors.pop())
        try:
            self._lock_file()
        except BlockingIOError as error:
            raise _in_use(self._folder) from error
        _log.warning("somebody had deleted '%s'; it is back", path)

    def release(self) -> None:
        while self._descriptors:
            self._close(self._descriptors.pop())

    def _lock_folder(self) -> None:
        descriptor = self._opened(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _lock(descriptor)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno not in _CANNOT_LOCK_FOLDERS:
                raise

    def _lock_file(self) -> None:
        path = self._folder / LOCK_NAME
        for _ in range(_LOOKS):
            descriptor = self._opened(path, os.O_RDWR | os.O_CREAT)
            _lock(descriptor)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    break
            self._close(self._descriptors.pop())  # it was deleted while it was being locked
        else:
            raise StoreInUseError(f"Somebody keeps deleting '{path}'. Find out who, and start again.")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)

    def _opened(self, path: Path, flags: int) -> int:
        descriptor = os.open(path, flags, 0o600)
        self._descriptors.append(descriptor)
        _held.add(descriptor)
        return descriptor

    def _close(self, descriptor: int) -> None:
        _held.discard(descriptor)
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Take the lock; raises `BlockingIOError`. Whoever looks who holds it has it for a moment, which is waited for."""
    for _ in range(_LOOKS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_LOOK_SECONDS)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _named_in(folder: Path) -> str:
    with contextlib.suppress(OSError):
        return (folder / LOCK_NAME).read_bytes()[:32].decode(errors="replace").strip() or "unknown"
    return "unknown"


def _in_use(folder: Path) -> StoreInUseError:
    holder = _named_in(folder)
    is_ours = holder == str(os.getpid())
    who = "This process" if is_ours else f"The process with the id {holder}"
    what = "Close it first" if is_ours else "Stop it"
    return StoreInUseError(f"{who} has the data folder '{folder}' open. {what}, or choose another data folder.")


def lock_folder(folder: Path) -> FolderLock:
    """Make the folder and take it for this process; raises a `StoreError` that says what to do.

    An address that is left there of one that had the folder before, and was killed, is removed.
    """
    try:
        make_durable(folder)
        lock = FolderLock(folder)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError from error
        raise StoreReadOnlyError(
            f"The data folder '{folder}' cannot be written ({error.strerror}). "
            "Choose another or change its permissions."
        ) from error
    with contextlib.suppress(OSError):
        (folder / ADDRESS_FILE).unlink()
    return lock
