"""Ways to talk to others: sockets of every kind, and what connects without `connect`."""

from __future__ import annotations

import errno
import socket
import struct
from typing import Any

from ai_whisperer.sandbox.ways_out.attempts import own_file, way

SENDS_BY_UDP = "send by UDP"
_MPTCP, _SCTP, _UDPLITE = 262, 132, 136
_FAST_OPEN = 0x20000000
_SECONDS = 2.0


def _connected(family: int, kind: int, protocol: int, address: Any) -> None:
    with socket.socket(family, kind, protocol) as made:
        made.settimeout(_SECONDS)
        made.connect(address)


@way("connect by TCP")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", outside["tcp"]))


@way("connect by TCP to the address of nobody")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_INET, socket.SOCK_STREAM, 0, ("0.0.0.0", outside["tcp"]))  # noqa: S104 - as a target


@way("connect by TCP over IPv6")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_INET6, socket.SOCK_STREAM, 0, ("::ffff:127.0.0.1", outside["tcp"]))


@way("connect by MPTCP")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_INET, socket.SOCK_STREAM, _MPTCP, ("127.0.0.1", outside["tcp"]))


@way("connect by MPTCP over IPv6")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_INET6, socket.SOCK_STREAM, _MPTCP, ("::ffff:127.0.0.1", outside["tcp"]))


@way("connect while sending (TCP fast open)")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        return made.sendto(b"x", _FAST_OPEN, ("127.0.0.1", outside["tcp"]))


@way("connect while sending a message (TCP fast open)")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        return made.sendmsg([b"x"], [], _FAST_OPEN, ("127.0.0.1", outside["tcp"]))


@way("connect with the first bytes (TCP fast open)")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.settimeout(_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, 30, 1)
        made.connect(("127.0.0.1", outside["tcp"]))
        return made.send(b"x")


@way("connect by SCTP")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_INET, socket.SOCK_STREAM, _SCTP, ("127.0.0.1", outside["tcp"]))


@way(SENDS_BY_UDP)
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(outside["word"].encode(), ("127.0.0.1", outside["udp"]))
    return False


@way("listen on the network of the machine by TCP")
def _(outside: dict[str, Any]) -> Any:
    return _is_taken(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", outside["tcp"]))


@way("listen on the network of the machine by MPTCP")
def _(outside: dict[str, Any]) -> Any:
    return _is_taken(socket.AF_INET, socket.SOCK_STREAM, _MPTCP, ("127.0.0.1", outside["tcp"]))


@way("listen on the network of the machine by UDP")
def _(outside: dict[str, Any]) -> Any:
    return _is_taken(socket.AF_INET, socket.SOCK_DGRAM, 0, ("127.0.0.1", outside["udp"]))


@way("listen on the network of the machine without an address")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.listen()
        return not outside["is_alone"]


@way("send packets by another route")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as made:
        through = struct.pack("BBBBBBH", 0, 4, 4, 1, 1, 0, 0) + socket.inet_pton(socket.AF_INET6, "::1") * 2
        made.setsockopt(41, 57, through)
        return not outside["is_alone"]


@way("join a group of others")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        group = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        return not outside["is_alone"]


@way("take the name of an abstract socket of the machine")
def _(outside: dict[str, Any]) -> Any:
    return _is_taken(socket.AF_UNIX, socket.SOCK_STREAM, 0, "\0" + outside["abstract"])


def _is_taken(family: int, kind: int, protocol: int, address: Any) -> bool:
    """Whether somebody else has that address: then it is the same network in which one may have addresses."""
    with socket.socket(family, kind, protocol) as made:
        try:
            made.bind(address)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


@way("connect to an abstract socket")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_UNIX, socket.SOCK_STREAM, 0, "\0" + outside["abstract"])


@way("connect to a socket in a folder that it may only read")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_UNIX, socket.SOCK_STREAM, 0, outside["readable"] + "/socket")


@way("send to a socket in a folder that it may only read")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        return made.sendto(b"x", outside["readable"] + "/heard")


@way("connect to a socket in the data folder")
def _(outside: dict[str, Any]) -> Any:
    _connected(socket.AF_UNIX, socket.SOCK_STREAM, 0, outside["data"] + "/socket")


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
for _name, _kind in _KINDS.items():

    def _opened(outside: dict[str, Any], kind: tuple[int, int, int] = _kind) -> Any:  # noqa: ARG001
        socket.socket(*kind).close()

    way(f"open {_name}")(_opened)


@way("find out the addresses of the machine")
def _(outside: dict[str, Any]) -> Any:  # noqa: ARG001
    with open("/proc/net/route") as lines:
        return any(not line.startswith(("Iface", "lo")) for line in lines)


@way("send a descriptor to a process of others")
def _(outside: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made, open(own_file()) as file:
        made.connect("\0" + outside["abstract"])
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", file.fileno()))
        return made.sendmsg([b"x"], [rights])
