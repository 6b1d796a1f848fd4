"""Ways to act on the kernel and the machine: privileges, mounts, namespaces, clocks, settings, calls of old and new."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import resource
import struct
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import called, called_by_number, in_a_child, server_of, way

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


@way("run as root of the machine")
def _(outside: dict[str, Any]) -> Any:
    return outside["is_root"] and os.getuid() == 0 and open("/proc/self/uid_map").read().split()[1] == "0"


@way("keep a capability")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    with open("/proc/self/status") as status:
        return any(int(line.split()[1], 16) for line in status if line.startswith(("CapEff", "CapPrm", "CapInh")))


@way("gain privileges by what it starts")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return "NoNewPrivs:\t0" in open("/proc/self/status").read()


@way("become another user")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return in_a_child(lambda: os.setuid(1 if os.getuid() != 1 else 2))


for _name, _flag in _NAMESPACES.items():

    def _entered(outside: dict[str, Any], flag: int = _flag) -> Any:
        return in_a_child(lambda: called(outside, "unshare", flag) == 0)

    way(f"make a {_name} namespace")(_entered)


@way("make a user namespace by clone")
def _(outside: dict[str, Any]) -> Any:
    return _was_forked(called(outside, "clone", 0x10000000 | 17, 0, 0, 0, 0))


@way("make a user namespace by clone3")
def _(outside: dict[str, Any]) -> Any:
    wanted = ctypes.create_string_buffer(struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
    return _was_forked(called(outside, "clone3", wanted, 64))


def _was_forked(pid: int) -> bool:
    if pid == 0:
        os._exit(0)
    return pid > 0 and bool(os.waitpid(pid, 0))


@way("enter the namespaces of the server")
def _(outside: dict[str, Any]) -> Any:
    descriptor = os.open(f"/proc/{server_of(outside)}/ns/net", os.O_RDONLY)
    return called(outside, "setns", descriptor, 0)


@way("mount a file system")
def _(outside: dict[str, Any]) -> Any:
    return in_a_child(lambda: _mounted(outside))


def _mounted(outside: dict[str, Any]) -> bool:
    os.mkdir("mounted")
    if called(outside, "mount", b"none", b"mounted", b"tmpfs", 0, None) != 0:
        return False
    called(outside, "umount2", b"mounted", 0)
    return True


@way("mount by the newer calls")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "fsopen", b"tmpfs", 0)


@way("make what is read-only writable")
def _(outside: dict[str, Any]) -> Any:
    unfollowed = ctypes.create_string_buffer(struct.pack("QQQQ", 0, 0x00200000, 0, 0))
    return called(outside, "mount_setattr", _AT_FDCWD, b"/usr", 0, unfollowed, 32) == 0


@way("copy a tree of mounts")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "open_tree", _AT_FDCWD, b"/usr", 1)


@way("take a mount away")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "umount2", _NOWHERE, 0)


@way("change its root")
def _(outside: dict[str, Any]) -> Any:
    return in_a_child(lambda: called(outside, "chroot", b".") == 0)


@way("set the clock")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "settimeofday", None, None)


@way("tune the clock")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "adjtimex", ctypes.create_string_buffer(struct.pack("I", 0x4000) + bytes(300)))


@way("tune the clock by its number")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "clock_adjtime", 0, ctypes.create_string_buffer(struct.pack("I", 0x4000) + bytes(300)))


@way("rename the machine")
def _(outside: dict[str, Any]) -> Any:
    name = os.uname().nodename.encode()
    return called(outside, "sethostname", name, len(name))


@way("restart the machine")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "reboot", 0, 0, 0, None)


@way("load another kernel")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "kexec_load", 0, 99_999, None, 0)


@way("load a module")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "init_module", None, 0, b"")


@way("remove a module")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "delete_module", b"no-such-module", 0)


@way("turn off swap")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "swapoff", _NOWHERE)


@way("turn on accounting")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "acct", _NOWHERE)


@way("set quotas")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "quotactl", 0, _NOWHERE, 0, None)


@way("read the log of the kernel")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "syslog", 10, None, 0)


@way("hold up what other processes open")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "fanotify_init", 0x4, 0)


@way("hear what other processes open")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "fanotify_init", 0x200, 0)


for _call in ("add_key", "request_key", "keyctl"):

    def _kept(outside: dict[str, Any], call: str = _call) -> Any:
        return called(outside, call, *((0, -3, 0) if call == "keyctl" else (b"user", b"x", b"x", 1, -3)))

    way(f"reach keys of the kernel by {_call}")(_kept)

for _call in ("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "memfd_create", "memfd_secret"):

    def _made(outside: dict[str, Any], call: str = _call) -> Any:
        arguments = {"memfd_create": (b"x", 0), "io_uring_setup": (4, ctypes.create_string_buffer(200))}
        return called(outside, call, *arguments.get(call, (0, 0, 0, 0, 0)))

    way(f"use {_call}")(_made)

for _call, _control in (("shmget", "shmctl"), ("msgget", "msgctl"), ("semget", "semctl")):

    def _shared(outside: dict[str, Any], call: str = _call, control: str = _control) -> Any:
        made = called(outside, call, _IPC_PRIVATE, *((0o1600,) if call == "msgget" else (1, 0o1600)))
        called(outside, control, made, *((0, _IPC_RMID) if control == "semctl" else (_IPC_RMID, None)))
        return made

    way(f"share memory or messages by {_call}")(_shared)


@way("open a queue of messages")
def _(outside: dict[str, Any]) -> Any:
    name = f"whisperer-{os.getpid()}".encode()
    made = called(outside, "mq_open", name, os.O_CREAT | os.O_RDWR, 0o600, None)
    called(outside, "mq_unlink", name)
    return made


@way("take the slots of asynchronous input and output")
def _(outside: dict[str, Any]) -> Any:
    context = ctypes.c_uint64(0)
    return called(outside, "io_setup", 1, ctypes.byref(context))


@way("move its pages between processors")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "move_pages", 0, 0, None, None, None, 0)


@way("reach ports of the machine")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "ioperm", 0x80, 1, 1)


@way("change its table of segments")
def _(outside: dict[str, Any]) -> Any:
    return called(outside, "modify_ldt", 0, ctypes.create_string_buffer(16), 16)


@way("call the kernel as a 32-bit program")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    if platform.machine() != "x86_64":
        return False
    return in_a_child(_called_in_32_bits)


def _called_in_32_bits() -> bool:
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # getpid, by its old number, through the old door
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return bool(function() > 0)


@way("call the kernel by its third set of numbers")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return platform.machine() == "x86_64" and in_a_child(lambda: called_by_number(0x40000000 + 39))


@way("make a call newer than the filter")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    return called_by_number(457, None, None, 0, 0)


for _file in ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/drop_caches", "fs/protected_hardlinks"):

    def _opened(outside: dict[str, Any], file: str = _file) -> Any:  # noqa: ARG001
        os.close(os.open(f"/proc/sys/{file}", os.O_WRONLY))

    way(f"write the setting {_file.replace('/', '.')}")(_opened)

for _file in ("/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs"):

    def _written(outside: dict[str, Any], file: str = _file) -> Any:  # noqa: ARG001
        os.close(os.open(file, os.O_WRONLY))

    way(f"write {_file}")(_written)

for _file in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/kernel/security"):

    def _seen(outside: dict[str, Any], file: str = _file) -> Any:  # noqa: ARG001
        return bool(os.listdir(file) if os.path.isdir(file) else open(file, "rb").read(16))

    way(f"read {_file}")(_seen)


@way("raise a limit of its own")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    return hard != resource.RLIM_INFINITY and in_a_child(
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard + 1))
    )
