"""Ways to act on the kernel and the machine: privileges, mounts, namespaces, clocks, settings, calls of old and new."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import (
    WAYS,
    Attempt,
    Outside,
    called,
    called_by_number,
    calling,
    in_a_child,
    is_read,
    on,
    opening,
    server_of,
    way,
)

_AT_FDCWD = -100
_NOWHERE = b"/nowhere-at-all"
_IPC_PRIVATE = _IPC_RMID = 0
_NAMESPACES = {
    "mount": 0x00020000,
    "control group": 0x02000000,
    "host name": 0x04000000,
    "message": 0x08000000,
    "user": 0x10000000,
    "process": 0x20000000,
    "network": 0x40000000,
}


def _keep_capability(_outside: Outside) -> bool:
    with open("/proc/self/status") as status:
        return any(int(line.split()[1], 16) for line in status if line.startswith(("CapEff", "CapPrm", "CapInh")))


def _calling_in_a_child(name: str, *arguments: Any) -> Attempt:
    return lambda outside: in_a_child(lambda: called(outside, name, *arguments) == 0)


def _forking(name: str, *arguments: Any) -> Attempt:
    return lambda outside: _was_forked(called(outside, name, *arguments))


def _was_forked(pid: int) -> bool:
    if pid == 0:
        os._exit(0)
    return pid > 0 and bool(os.waitpid(pid, 0))


def _enter_namespace(outside: Outside) -> int:
    descriptor = os.open(f"/proc/{server_of(outside)}/ns/net", os.O_RDONLY)
    return called(outside, "setns", descriptor, 0)


def _mount(outside: Outside) -> bool:
    os.mkdir("mounted")
    if called(outside, "mount", b"none", b"mounted", b"tmpfs", 0, None) != 0:
        return False
    called(outside, "umount2", b"mounted", 0)
    return True


def _unfollow(outside: Outside) -> bool:
    unfollowed = ctypes.create_string_buffer(struct.pack("QQQQ", 0, 0x00200000, 0, 0))
    return called(outside, "mount_setattr", _AT_FDCWD, b"/usr", 0, unfollowed, 32) == 0


_CLONED = ctypes.create_string_buffer(struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
_NAME = os.uname().nodename.encode()
_OFFSET = struct.pack("I", 0x4000) + bytes(300)

WAYS.update(
    {
        "run as root of the machine": lambda outside: (
            outside["is_root"] and os.getuid() == 0 and Path("/proc/self/uid_map").read_text().split()[1] == "0"
        ),
        "keep a capability": _keep_capability,
        "gain privileges by what it starts": lambda _: "NoNewPrivs:\t0" in Path("/proc/self/status").read_text(),
        "become another user": lambda _: in_a_child(lambda: os.setuid(1 if os.getuid() != 1 else 2)),
        **{f"make a {name} namespace": _calling_in_a_child("unshare", flag) for name, flag in _NAMESPACES.items()},
        "make a user namespace by clone": _forking("clone", 0x10000000 | 17, 0, 0, 0, 0),
        "make a user namespace by clone3": _forking("clone3", _CLONED, 64),
        "enter the namespaces of the server": _enter_namespace,
        "mount a file system": lambda outside: in_a_child(lambda: _mount(outside)),
        "mount by the newer calls": calling("fsopen", b"tmpfs", 0),
        "make what is read-only writable": _unfollow,
        "copy a tree of mounts": calling("open_tree", _AT_FDCWD, b"/usr", 1),
        "take a mount away": calling("umount2", _NOWHERE, 0),
        "change its root": _calling_in_a_child("chroot", b"."),
        "set the clock": calling("settimeofday", None, None),
        "tune the clock": calling("adjtimex", ctypes.create_string_buffer(_OFFSET)),
        "tune the clock by its number": calling("clock_adjtime", 0, ctypes.create_string_buffer(_OFFSET)),
        "rename the machine": calling("sethostname", _NAME, len(_NAME)),
        "restart the machine": calling("reboot", 0, 0, 0, None),
        "load another kernel": calling("kexec_load", 0, 99_999, None, 0),
        "load a module": calling("init_module", None, 0, b""),
        "remove a module": calling("delete_module", b"no-such-module", 0),
        "turn off swap": calling("swapoff", _NOWHERE),
        "turn on accounting": calling("acct", _NOWHERE),
        "set quotas": calling("quotactl", 0, _NOWHERE, 0, None),
        "read the log of the kernel": calling("syslog", 10, None, 0),
        "hold up what other processes open": calling("fanotify_init", 0x4, 0),
        "hear what other processes open": calling("fanotify_init", 0x200, 0),
        "reach keys of the kernel by add_key": calling("add_key", b"user", b"x", b"x", 1, -3),
        "reach keys of the kernel by request_key": calling("request_key", b"user", b"x", b"x", 1, -3),
        "reach keys of the kernel by keyctl": calling("keyctl", 0, -3, 0),
        "use bpf": calling("bpf", 0, 0, 0, 0, 0),
        "use perf_event_open": calling("perf_event_open", 0, 0, 0, 0, 0),
        "use userfaultfd": calling("userfaultfd", 0, 0, 0, 0, 0),
        "use io_uring_setup": calling("io_uring_setup", 4, ctypes.create_string_buffer(200)),
        "use memfd_create": calling("memfd_create", b"x", 0),
        "use memfd_secret": calling("memfd_secret", 0, 0, 0, 0, 0),
    }
)

for _call, _control in (("shmget", "shmctl"), ("msgget", "msgctl"), ("semget", "semctl")):

    def _shared(outside: Outside, call: str = _call, control: str = _control) -> Any:
        made = called(outside, call, _IPC_PRIVATE, *((0o1600,) if call == "msgget" else (1, 0o1600)))
        called(outside, control, made, *((0, _IPC_RMID) if control == "semctl" else (_IPC_RMID, None)))
        return made

    way(f"share memory or messages by {_call}")(_shared)


def _open_queue(outside: Outside) -> int:
    name = f"whisperer-{os.getpid()}".encode()
    made = called(outside, "mq_open", name, os.O_CREAT | os.O_RDWR, 0o600, None)
    called(outside, "mq_unlink", name)
    return made


def _called_in_32_bits() -> bool:
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # getpid, by its old number, through the old door
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return bool(function() > 0)


def _on_x86(act: Callable[[], Any]) -> Attempt:
    return lambda _: platform.machine() == "x86_64" and in_a_child(act)


def _see(path: str) -> bool:
    return bool(os.listdir(path)) if os.path.isdir(path) else is_read(path)


def _raise_limit(_outside: Outside) -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    return hard != resource.RLIM_INFINITY and in_a_child(
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard + 1))
    )


_SETTINGS = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/drop_caches", "fs/protected_hardlinks")
_ACTING = ("/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs")
_TELLING = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/kernel/security")

WAYS.update(
    {
        "open a queue of messages": _open_queue,
        "take the slots of asynchronous input and output": calling("io_setup", 1, ctypes.create_string_buffer(8)),
        "move its pages between processors": calling("move_pages", 0, 0, None, None, None, 0),
        "reach ports of the machine": calling("ioperm", 0x80, 1, 1),
        "change its table of segments": calling("modify_ldt", 0, ctypes.create_string_buffer(16), 16),
        "call the kernel as a 32-bit program": _on_x86(_called_in_32_bits),
        "call the kernel by its third set of numbers": _on_x86(lambda: called_by_number(0x40000000 + 39)),
        "make a call newer than the filter": lambda _: called_by_number(457, None, None, 0, 0),
        **{
            f"write the setting {name.replace('/', '.')}": opening(f"/proc/sys/{name}", os.O_WRONLY)
            for name in _SETTINGS
        },
        **{f"write {path}": opening(path, os.O_WRONLY) for path in _ACTING},
        **{f"read {path}": on(path, _see) for path in _TELLING},
        "raise a limit of its own": _raise_limit,
    }
)
