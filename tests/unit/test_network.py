"""Whom an agent may talk to: grants, spellings of hosts, kinds of addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address, ip_network

import pytest

from ai_whisperer.core.address_kinds import AddressKind, address_in, kind_of, networks_of, without
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.core.network import Reach, grants_of, normal_host
from ai_whisperer.errors import DefinitionError, InvalidInputError
from ai_whisperer.templates.parsing import parse_template

ANY = str(IPv4Address(0))
NOT_PUBLIC = {
    AddressKind.LOOPBACK: ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
    AddressKind.PRIVATE: [
        "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.100.100.200", "fc00::1",
        "fd00:ec2::254", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1",
    ],
    AddressKind.LINK_LOCAL: ["169.254.169.254", "169.254.0.1", "fe80::1", "::ffff:169.254.0.1", "64:ff9b::a9fe:a9fe"],
    AddressKind.MULTICAST: ["224.0.0.1", "239.255.255.255", "ff02::1", "::ffff:224.0.0.1"],
    AddressKind.RESERVED: [
        ANY, "0.1.2.3", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
        "240.0.0.1", "255.255.255.255", "168.63.129.16", "::", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::1",
        "100::1", "2001::1", "2001:0:7f00:1::", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1",
        "5f00::1",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "address"), [(kind, each) for kind, all_ in NOT_PUBLIC.items() for each in all_])
def test_an_address_that_is_not_public_is_known_as_such(kind: AddressKind, address: str) -> None:
    assert kind_of(ip_address(address)) is kind
    assert not grants_of(["*"]).allows_address("example.com", 80, ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "9.255.255.255", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "172.15.255.255",
     "172.32.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:1.1.1.1", "64:ff9b::101:101"],
)  # fmt: skip
def test_an_address_beside_those_is_public(address: str) -> None:
    assert kind_of(ip_address(address)) is AddressKind.PUBLIC
    assert grants_of(["*"]).allows_address("example.com", 443, ip_address(address))


@pytest.mark.parametrize(
    "written",
    ["127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1", "0177.0.0.1", "017700000001", "127.0.0.0x1",
     "127.0.0.1.", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "::ffff:127.0.0.1", "[::ffff:7f00:1]",
     "0x7f.0.0.01"],
)  # fmt: skip
def test_every_spelling_of_an_address_is_the_same_host(written: str) -> None:
    assert normal_host(written) == "127.0.0.1"


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("[2606:4700:0::1]", "2606:4700::1"),
        ("a_b.example", "a_b.example"),
    ],
)
def test_a_host_has_one_spelling(written: str, host: str) -> None:
    assert normal_host(written) == host


@pytest.mark.parametrize(
    "written",
    ["", ".", "..", "a..b", "a b", "a\nb", "a\0b", "-a.example", "a/b", "a@b", "a:b", "a%2eb", "[::1", "[a]", "[::1]]",
     "fe80::1%eth0", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "0x1ffffffff", "08.1.1.1", "1..1", "a.1",
     "9" * 5000, "x" * 64, "a." * 200, "\ud800", "é" * 100, "\uff11" * 300, "*", "*.a"],
)  # fmt: skip
def test_what_is_no_host_is_refused(written: str) -> None:
    with pytest.raises(InvalidInputError):
        normal_host(written)


def test_a_name_is_not_taken_for_an_address() -> None:
    assert address_in("example.com") is None
    assert address_in("1.example") is None


@pytest.mark.parametrize(
    ("grant", "host", "port", "reach"),
    [
        ("*", "example.com", 443, Reach.PUBLIC),
        ("*", "example.com", 80, Reach.PUBLIC),
        ("*", "example.com", 8080, Reach.NONE),
        ("*:8080", "example.com", 8080, Reach.PUBLIC),
        ("example.com", "example.com", 443, Reach.NEAR),
        ("example.com", "example.com", 22, Reach.NONE),
        ("example.com", "a.example.com", 443, Reach.NONE),
        ("example.com", "badexample.com", 443, Reach.NONE),
        ("example.com:8080", "example.com", 8080, Reach.NEAR),
        ("example.com:8080", "example.com", 443, Reach.NONE),
        ("EXAMPLE.com.", "example.com", 443, Reach.NEAR),
        ("*.example.com", "a.b.example.com", 443, Reach.PUBLIC),
        ("*.example.com", "example.com", 443, Reach.NONE),
        ("*.example.com", "badexample.com", 443, Reach.NONE),
        ("*.example.com:8443", "a.example.com", 8443, Reach.PUBLIC),
        ("127.0.0.1:8000", "127.0.0.1", 8000, Reach.NEAR),
        ("[::1]:8000", "::1", 8000, Reach.NEAR),
        ("::1", "::1", 80, Reach.NEAR),
    ],
)
def test_a_grant_covers_its_host_and_its_ports(grant: str, host: str, port: int, reach: Reach) -> None:
    assert grants_of([grant]).reach(host, port) is reach
    assert grants_of([grant]).allows(host, port) is (reach is not Reach.NONE)


def test_without_a_grant_nothing_is_allowed() -> None:
    assert not grants_of([]).allows("example.com", 443)


def test_the_widest_of_several_grants_counts() -> None:
    grants = grants_of(["*", "intranet.example"])
    assert grants.reach("intranet.example", 443) is Reach.NEAR
    assert grants.reach("example.com", 443) is Reach.PUBLIC


@pytest.mark.parametrize(
    ("grant", "host", "address", "allowed"),
    [
        ("intranet.example", "intranet.example", "10.0.0.1", True),
        ("intranet.example", "intranet.example", "127.0.0.1", True),
        ("intranet.example", "intranet.example", "169.254.169.254", False),
        ("intranet.example", "intranet.example", ANY, False),
        ("*.example", "intranet.example", "10.0.0.1", False),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254", True),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", "10.0.0.2", False),
    ],
)
def test_only_what_is_granted_in_full_may_be_near(grant: str, host: str, address: str, allowed: bool) -> None:  # noqa: FBT001
    assert grants_of([grant]).allows_address(host, 80, ip_address(address)) is allowed


@pytest.mark.parametrize(
    "grant",
    ["", " ", "http://example.com", "example.com/path", "user@example.com", "example.com:", "example.com:0",
     "example.com:65536", "example.com:http", "example.com:٣", "*example.com", "a.*.com", "**", "*.", "*.127.0.0.1",
     "10.0.0.0/8", ANY, "[::]:80", "255.255.255.255", "224.0.0.1", "fe80::1%eth0", "[::1]x", "999.1.1.1", "x y"],
)  # fmt: skip
def test_a_grant_that_cannot_be_understood_is_refused_with_its_place(grant: str) -> None:
    with pytest.raises(DefinitionError, match=r"^network\[1\]: .*Grant a host as 'example\.com'"):
        definition_from({"network": ["example.com", grant]})


@pytest.mark.parametrize("written", ["example.com, *.example.org", "[example.com, '*.example.org']"])
def test_a_template_can_grant_hosts_in_a_list_or_a_text(written: str) -> None:
    template = parse_template(f"---\nname: reader\nnetwork: {written}\n---\nRead.")
    assert template.definition.network == ("example.com", "*.example.org")


def test_a_bad_grant_in_a_template_is_told_with_its_line() -> None:
    with pytest.raises(DefinitionError, match=r"template, line 5: network\[1\]: 'no host' is not a host name"):
        parse_template("---\nname: reader\nnetwork:\n- example.com\n- no host\n---\nRead.")


@pytest.mark.parametrize("kind", AddressKind)
def test_the_networks_of_a_kind_have_addresses_of_that_kind_only(kind: AddressKind) -> None:
    for network in networks_of((kind,)):
        assert {kind_of(network[0]), kind_of(network[-1])} == {kind}


@pytest.mark.parametrize("address", ["8.8.8.8", "9.255.255.255", "11.0.0.0", "2606:4700::1", "64:ff9b::808:808"])
def test_every_public_address_is_in_a_public_network(address: str) -> None:
    assert any(ip_address(address) in network for network in networks_of((AddressKind.PUBLIC,)))


def test_what_is_taken_out_of_a_network_is_not_in_what_is_left() -> None:
    left = without(ip_network("169.254.0.0/16"), [ip_network("169.254.169.254"), ip_network("::1")])
    assert sum(each.num_addresses for each in left) == 65_535
    assert not any(ip_address("169.254.169.254") in each for each in left)
    assert without(ip_network("10.1.0.0/16"), [ip_network("10.0.0.0/8")]) == []
