"""What kind of network an IP address belongs to, and every spelling of one that some program understands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from ai_whisperer.errors import InvalidInputError

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class AddressKind(StrEnum):
    """The network that an address belongs to."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    RESERVED = "reserved"


_IPV4 = [
    (IPv4Network(network), kind)
    for kind, networks in {
        AddressKind.LOOPBACK: ("127.0.0.0/8",),
        AddressKind.PRIVATE: ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"),
        AddressKind.LINK_LOCAL: ("169.254.0.0/16",),
        AddressKind.MULTICAST: ("224.0.0.0/4",),
        AddressKind.RESERVED: (
            "0.0.0.0/8",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "168.63.129.16/32",  # looks public, but is where virtual machines in Azure find their host
        ),
    }.items()
    for network in networks
]
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_IPV6 = [
    (IPv6Network(network), kind)
    for network, kind in (
        ("::1/128", AddressKind.LOOPBACK),
        ("fc00::/7", AddressKind.PRIVATE),
        ("fec0::/10", AddressKind.PRIVATE),
        ("fe80::/10", AddressKind.LINK_LOCAL),
        ("ff00::/8", AddressKind.MULTICAST),
        ("2001::/23", AddressKind.RESERVED),  # Teredo is in it
        ("2001:db8::/32", AddressKind.RESERVED),
        ("2002::/16", AddressKind.RESERVED),  # 6to4, which leads to any IPv4 address
        ("3fff::/20", AddressKind.RESERVED),
        (str(_PUBLIC_IPV6), AddressKind.PUBLIC),
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_MAX_DIGITS = 20


def kind_of(address: IPAddress) -> AddressKind:
    """The kind of an address; of one that stands for an IPv4 address, the kind of that one."""
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped
        if address in _NAT64:
            embedded = IPv4Address(int(address) & 0xFFFF_FFFF)
        if embedded is None:
            return next((kind for network, kind in _IPV6 if address in network), AddressKind.RESERVED)
        address = embedded
    return next((kind for network, kind in _IPV4 if address in network), AddressKind.PUBLIC)


def networks_of(kinds: Collection[AddressKind]) -> list[IPNetwork]:
    """The networks that are known to have addresses of these kinds, and no others."""
    of_ipv4: list[IPNetwork] = [network for network, kind in _IPV4 if kind in kinds]
    of_ipv6: list[IPNetwork] = [network for network, kind in _IPV6 if kind in kinds and network != _PUBLIC_IPV6]
    if AddressKind.PUBLIC in kinds:
        of_ipv4 += without(IPv4Network("0.0.0.0/0"), [network for network, _ in _IPV4])
        of_ipv6 += without(_PUBLIC_IPV6, [network for network, _ in _IPV6 if network != _PUBLIC_IPV6])
    translated = [
        IPv6Network((int(_NAT64.network_address) | int(each.network_address), 96 + each.prefixlen)) for each in of_ipv4
    ]
    return [*of_ipv4, *of_ipv6, *translated]


def without(network: IPNetwork, others: Iterable[IPNetwork]) -> list[IPNetwork]:
    """What is left of a network when the others are taken out."""
    left = [network]
    for other in others:
        left = [rest for each in left for rest in _without_one(each, other)]
    return left


def _without_one(network: IPNetwork, other: IPNetwork) -> Iterator[IPNetwork]:
    if not network.overlaps(other):
        yield network
    elif network.prefixlen < other.prefixlen:
        yield from network.address_exclude(other)  # type: ignore[arg-type]  # of one version, since they overlap


def address_in(host: str) -> IPAddress | None:
    """The address that a host is, in whatever spelling; None if it is a name.

    `2130706433`, `0x7f.1` and `0177.0.0.1` are all 127.0.0.1. Raises `InvalidInputError` for what looks like a number
    but is no address, since programs do not agree on what that means.
    """
    if ":" in host:
        try:
            address = ip_address(host)
        except ValueError as error:
            raise InvalidInputError(f"{host[:100]!r} is not an IPv6 address.") from error
        if isinstance(address, IPv6Address) and address.scope_id is None:
            return address.ipv4_mapped or address
        raise InvalidInputError(f"{host[:100]!r} names an interface of this machine. Leave out the part from '%' on.")
    parts = host.split(".")
    if not _NUMBER.fullmatch(parts[-1]):
        return None
    if len(parts) > 4 or any(not _NUMBER.fullmatch(part) or len(part) > _MAX_DIGITS for part in parts):
        raise InvalidInputError(f"{host[:100]!r} ends in a number but is not an IPv4 address.")
    *first, last = (_value(part, host) for part in parts)
    if any(number > 0xFF for number in first) or last >= 256 ** (5 - len(parts)):
        raise InvalidInputError(f"{host[:100]!r} has a number that is too large for an IPv4 address.")
    return IPv4Address(sum(number << 8 * (3 - place) for place, number in enumerate(first)) + last)


def _value(part: str, host: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part[2:] or "0", 16)
    try:
        return int(part, 8) if len(part) > 1 and part[0] == "0" else int(part)
    except ValueError as error:
        raise InvalidInputError(f"{host[:100]!r} is not an IPv4 address: {part!r} is not octal.") from error
