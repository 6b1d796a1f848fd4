"""What this machine has to hold tools that run code."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import sys
from pathlib import Path

import msgspec

_LANDLOCK_CREATE_RULESET = 444
_ASK_FOR_VERSION = 1


class SandboxMeans(msgspec.Struct, frozen=True, kw_only=True):
    """The means of the operating system. `landlock` is the version of its interface, 0 if there is none."""

    landlock: int
    seccomp: bool
    bubblewrap: bool
    rlimits: bool


def probe_sandbox() -> SandboxMeans:
    """Look what there is; nothing is restricted by looking."""
    return SandboxMeans(
        landlock=_landlock_version(),
        seccomp=Path("/proc/sys/kernel/seccomp/actions_avail").exists(),
        bubblewrap=shutil.which("bwrap") is not None,
        rlimits=importlib.util.find_spec("resource") is not None,
    )


def _landlock_version() -> int:
    if sys.platform != "linux":
        return 0
    answer = ctypes.CDLL(None, use_errno=True).syscall(_LANDLOCK_CREATE_RULESET, None, 0, _ASK_FOR_VERSION)
    return max(0, int(answer))
