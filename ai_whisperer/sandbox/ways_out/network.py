"""Ways to talk to others: sockets of every kind, and what connects without `connect`."""

from __future__ import annotations

import errno
import socket
import struct
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import WAYS, Attempt, Outside, on, own_file, way

SENDS_BY_UDP = "send by UDP"
_MPTCP, _SCTP, _UDPLITE = 262, 132, 136
_FAST_OPEN = 0x20000000
_SECONDS = 2.0
_HERE, _HERE_6 = "127.0.0.1", "::ffff:127.0.0.1"


def _connect(family: int, protocol: int, address: Any) -> None:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as made:
        made.settimeout(_SECONDS)
        made.connect(address)


def _connecting(family: int, protocol: int, host: str) -> Attempt:
    return lambda outside: _connect(family, protocol, (host, outside["tcp"]))


def _connect_within(path: str) -> None:
    _connect(socket.AF_UNIX, 0, path)


def _send_within(path: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        return made.sendto(b"x", path)


def _is_taken(family: int, kind: int, protocol: int, address: Any) -> bool:
    """Whether somebody else has that address: then it is the same network in which one may have addresses."""
    with socket.socket(family, kind, protocol) as made:
        try:
            made.bind(address)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _listening(kind: int, protocol: int, port: str) -> Attempt:
    return lambda outside: _is_taken(socket.AF_INET, kind, protocol, (_HERE, outside[port]))


WAYS.update(
    {
        "connect by TCP": _connecting(socket.AF_INET, 0, _HERE),
        "connect by TCP to the address of nobody": _connecting(socket.AF_INET, 0, "0.0.0.0"),  # noqa: S104 - as a target
        "connect by TCP over IPv6": _connecting(socket.AF_INET6, 0, _HERE_6),
        "connect by MPTCP": _connecting(socket.AF_INET, _MPTCP, _HERE),
        "connect by MPTCP over IPv6": _connecting(socket.AF_INET6, _MPTCP, _HERE_6),
    }
)


@way("connect while sending (TCP fast open)")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        return made.sendto(b"x", _FAST_OPEN, (_HERE, outside["tcp"]))


@way("connect while sending a message (TCP fast open)")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        return made.sendmsg([b"x"], [], _FAST_OPEN, (_HERE, outside["tcp"]))


@way("connect with the first bytes (TCP fast open)")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.settimeout(_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, 30, 1)
        made.connect((_HERE, outside["tcp"]))
        return made.send(b"x")


WAYS["connect by SCTP"] = _connecting(socket.AF_INET, _SCTP, _HERE)


@way(SENDS_BY_UDP)
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(outside["word"].encode(), (_HERE, outside["udp"]))
    return False


WAYS.update(
    {
        "listen on the network of the machine by TCP": _listening(socket.SOCK_STREAM, 0, "tcp"),
        "listen on the network of the machine by MPTCP": _listening(socket.SOCK_STREAM, _MPTCP, "tcp"),
        "listen on the network of the machine by UDP": _listening(socket.SOCK_DGRAM, 0, "udp"),
    }
)


@way("listen on the network of the machine without an address")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.listen()
        return not outside["is_alone"]


@way("send packets by another route")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as made:
        through = struct.pack("BBBBBBH", 0, 4, 4, 1, 1, 0, 0) + socket.inet_pton(socket.AF_INET6, "::1") * 2
        made.setsockopt(41, 57, through)
        return not outside["is_alone"]


@way("join a group of others")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        group = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        return not outside["is_alone"]


WAYS.update(
    {
        "take the name of an abstract socket of the machine": on(
            "\0{abstract}", lambda name: _is_taken(socket.AF_UNIX, socket.SOCK_STREAM, 0, name)
        ),
        "connect to an abstract socket": on("\0{abstract}", _connect_within),
        "connect to a socket in a folder that it may only read": on("{readable}/socket", _connect_within),
        "send to a socket in a folder that it may only read": on("{readable}/heard", _send_within),
        "connect to a socket in the data folder": on("{data}/socket", _connect_within),
    }
)

_KINDS = {
    "a raw socket": (socket.AF_INET, socket.SOCK_RAW, 1),
    "a raw socket of IPv6": (socket.AF_INET6, socket.SOCK_RAW, 58),
    "a socket for ping": (socket.AF_INET, socket.SOCK_DGRAM, 1),
    "a socket of UDP-Lite": (socket.AF_INET, socket.SOCK_DGRAM, _UDPLITE),
    "a socket of DCCP": (socket.AF_INET, 6, 33),
    "a packet socket": (17, socket.SOCK_DGRAM, 0),
    "a socket to the routes of the kernel": (16, socket.SOCK_RAW, 0),
    "a socket to the audit of the kernel": (16, socket.SOCK_RAW, 9),
    "a socket to the events of devices": (16, socket.SOCK_RAW, 15),
    "a socket between virtual machines": (40, socket.SOCK_STREAM, 0),
    "a socket to the ciphers of the kernel": (38, socket.SOCK_SEQPACKET, 0),
    "a socket of TIPC": (30, socket.SOCK_RDM, 0),
    "a socket of RDS": (21, socket.SOCK_SEQPACKET, 0),
    "a socket of CAN": (29, socket.SOCK_RAW, 1),
    "a socket of Bluetooth": (31, socket.SOCK_RAW, 1),
    "a socket of KCM": (41, socket.SOCK_DGRAM, 0),
    "a socket of XDP": (44, socket.SOCK_RAW, 0),
    "a socket of SMC": (43, socket.SOCK_STREAM, 0),
}


def _making(kind: tuple[int, int, int]) -> Attempt:
    return lambda _: socket.socket(*kind).close()


WAYS.update({f"open {name}": _making(kind) for name, kind in _KINDS.items()})


@way("find out the addresses of the machine")
def _(_outside: Outside) -> Any:
    with open("/proc/net/route") as lines:
        return any(not line.startswith(("Iface", "lo")) for line in lines)


@way("send a descriptor to a process of others")
def _(outside: Outside) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made, open(own_file()) as file:
        made.connect("\0" + outside["abstract"])
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", file.fileno()))
        return made.sendmsg([b"x"], [rights])
