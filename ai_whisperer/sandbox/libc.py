"""The C library of the system, and what its calls say when they fail."""

from __future__ import annotations

import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWUSER = 0x10000000


def checked(result: int) -> None:
    """Raise `OSError` if a call failed."""
    if result < 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, os.strerror(number))
