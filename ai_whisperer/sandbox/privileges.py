"""As whom a program runs, and what it may do by that: without any capability, and where the server is root, as a user
of its own, so that nothing on this machine belongs to it but what is given to it.
"""

from __future__ import annotations

import ctypes
import os

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox.libc import checked, libc

JOB_USER = 65521
"""The user, and the group, that programs of a server run by root run as. No system gives this number to anybody."""

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 4, 24
_CAPABILITIES_VERSION = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def job_user() -> int:
    """The user that programs have to run as."""
    return JOB_USER if os.geteuid() == 0 else os.geteuid()


def become_job_user() -> None:
    """Give up all privileges for good; as root, become the user of programs. Raises `SandboxError` if it cannot be."""
    try:
        drop_bounding_set()
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(JOB_USER, JOB_USER, JOB_USER)
            os.setresuid(JOB_USER, JOB_USER, JOB_USER)
        drop_capabilities()
    except OSError as error:
        raise SandboxError(f"Programs cannot be kept from the privileges of the server: {error}.") from error


def be_closed_to_others() -> None:
    """Let no other process of the same user look into this one, or trace it."""
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def be_open_to_itself() -> None:
    """Let this process look into its own files in /proc: those of one that has changed its user are root's."""
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def drop_bounding_set() -> None:
    """Let no program that this process starts ever have a capability."""
    capability = 0
    while libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:  # until there are no more, or there is no right to
        capability += 1


def drop_capabilities() -> None:
    """Give up all capabilities that this process has."""
    none = (ctypes.c_uint32 * 6)()
    header = _Header(version=_CAPABILITIES_VERSION, pid=0)
    checked(libc.capset(ctypes.byref(header), ctypes.byref(none)))
