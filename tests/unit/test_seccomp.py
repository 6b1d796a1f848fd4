"""The filter of calls: what it says of each call, by a machine that runs it as the kernel does."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import call_numbers, seccomp
from ai_whisperer.sandbox.seccomp import Sockets

ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000


def verdict(
    name: str | int, *arguments: int, sockets: Sockets = Sockets.LOCAL, architecture: int | None = None
) -> int | str:
    """What the filter says: "allowed", "killed", or the error that the call gets."""
    machine = call_numbers.this_machine()
    number = machine.numbers[name] if isinstance(name, str) else name
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture or machine.architecture, 0, *padded)
    code = seccomp.program(sockets=sockets)
    lines = [struct.unpack("=HBBI", code[at : at + 8]) for at in range(0, len(code), 8)]
    at = register = 0
    while True:
        operation, yes, no, value = lines[at]
        at += 1
        if operation == 0x06:
            return {ALLOW: "allowed", KILL: "killed"}.get(value) or value ^ ERROR
        if operation == 0x20:
            register = struct.unpack_from("=I", data, value)[0]
        elif operation == 0x54:
            register &= value
        else:
            holds = {0x15: register == value, 0x35: register >= value, 0x45: bool(register & value)}[operation]
            at += yes if holds else no


@pytest.fixture(params=["x86_64", "aarch64"], autouse=True)
def _machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: request.param)


def test_ordinary_calls_are_allowed() -> None:
    assert verdict("fcntl", 3, 2) == verdict("ioctl", 1, 0x5401) == verdict("openat", 0, 0, 0) == "allowed"
    assert verdict("clone", 0x01200011) == "allowed"


@pytest.mark.parametrize("name", ["mount", "unshare", "ptrace", "bpf", "io_uring_setup", "keyctl", "syslog", "acct"])
def test_calls_that_nobody_needs_are_refused(name: str) -> None:
    assert verdict(name) == errno.EPERM


def test_every_call_that_is_refused_has_a_number_on_every_kind_of_machine_that_has_it() -> None:
    known = {line.split()[0] for line in call_numbers._TABLE.strip().splitlines()}
    assert {*seccomp._DENIED, *seccomp.WATCHING, *seccomp._NOT_THERE, *seccomp._rules(Sockets.GRANTED)} <= known


@pytest.mark.parametrize("name", ["clone3", "openat2"])
def test_calls_whose_flags_lie_in_memory_are_told_not_to_exist(name: str) -> None:
    assert verdict(name) == errno.ENOSYS


@pytest.mark.parametrize("number", [450, 457, 999, 0x40000000 + 39])
def test_calls_that_are_not_known_are_told_not_to_exist(number: int) -> None:
    assert verdict(number) == errno.ENOSYS


def test_calls_of_another_architecture_kill() -> None:
    assert verdict("socket", architecture=0x40000003) == "killed"


@pytest.mark.parametrize(
    ("family", "kind", "protocol", "allowed_in"),
    [
        (socket.AF_UNIX, socket.SOCK_STREAM, 0, {Sockets.LOCAL, Sockets.GRANTED}),
        (socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, 0, {Sockets.ALONE, Sockets.GRANTED}),
        (socket.AF_INET6, socket.SOCK_STREAM, 6, {Sockets.ALONE, Sockets.GRANTED}),
        (socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 17, {Sockets.ALONE, Sockets.GRANTED}),
        (socket.AF_INET, socket.SOCK_STREAM, 262, set()),
        (socket.AF_INET, socket.SOCK_STREAM, 132, set()),
        (socket.AF_INET, socket.SOCK_DGRAM, 1, set()),
        (socket.AF_INET, socket.SOCK_DGRAM, 136, set()),
        (socket.AF_INET, socket.SOCK_RAW, 0, set()),
        (16, socket.SOCK_RAW, 0, set()),
        (17, socket.SOCK_RAW, 0, set()),
        (38, socket.SOCK_SEQPACKET, 0, set()),
        (40, socket.SOCK_STREAM, 0, set()),
    ],
)
def test_only_named_families_kinds_and_protocols_of_sockets_are_allowed(
    family: int, kind: int, protocol: int, allowed_in: set[Sockets]
) -> None:
    for sockets in (Sockets.LOCAL, Sockets.ALONE, Sockets.GRANTED):
        expected = "allowed" if sockets in allowed_in else errno.EACCES
        assert verdict("socket", family, kind, protocol, sockets=sockets) == expected


def test_who_may_talk_to_granted_hosts_can_have_no_address_there() -> None:
    for name in ("bind", "listen", "accept", "accept4"):
        assert verdict(name, sockets=Sockets.GRANTED) == errno.EACCES
        assert verdict(name, sockets=Sockets.ALONE) == "allowed"


def test_who_may_talk_to_granted_hosts_cannot_lead_packets_elsewhere() -> None:
    routing, membership, v6_only, nodelay = (41, 57), (0, 35), (41, 26), (6, 1)
    for level, option in (routing, membership, (17, 100), (255, 1)):
        assert verdict("setsockopt", 3, level, option, sockets=Sockets.GRANTED) == errno.EPERM
        assert verdict("setsockopt", 3, level, option, sockets=Sockets.ALONE) == "allowed"
    for level, option in (v6_only, nodelay, (1, 2)):
        assert verdict("setsockopt", 3, level, option, sockets=Sockets.GRANTED) == "allowed"


@pytest.mark.parametrize(("name", "flags"), [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)])
def test_nobody_connects_by_sending(name: str, flags: int) -> None:
    arguments = [0] * 6
    assert verdict(name, *arguments) == "allowed"
    arguments[flags] = 0x20000000
    assert verdict(name, *arguments) == errno.EOPNOTSUPP
    assert verdict("setsockopt", 3, 6, 30) == errno.EOPNOTSUPP
    assert verdict("setsockopt", 3, 1, 30) == verdict("setsockopt", 3, 6, 1) == "allowed"


def test_no_file_gets_a_setuid_or_setgid_bit() -> None:
    assert verdict("fchmod", 3, 0o755) == verdict("fchmodat", 0, 0, 0o1777) == "allowed"
    assert verdict("fchmod", 3, 0o4755) == verdict("fchmodat", 0, 0, 0o2755) == errno.EPERM
    assert verdict("openat", 0, 0, 0o101, 0o4755) == errno.EPERM
    assert verdict("openat", 0, 0, 0o20000000 | 2, 0o4700) == errno.EPERM
    assert verdict("openat", 0, 0, 0, 0o4755) == "allowed", "without O_CREAT that argument is anything"


def test_a_machine_that_is_not_known_cannot_be_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SandboxError, match="riscv64"):
        seccomp.program(sockets=Sockets.LOCAL)
