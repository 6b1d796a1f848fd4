"""Who is let in: those who come to an address of the server, and with what they show there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from starlette.requests import HTTPConnection

from ai_whisperer.server.gate import Gate
from ai_whisperer.settings import Settings


def coming_to(host: str, origin: str | None = None) -> HTTPConnection:
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    return HTTPConnection({"type": "http", "path": "/", "headers": headers})


def test_a_server_answers_at_the_address_that_it_advertises() -> None:
    settings = replace(Settings(), host="0.0.0.0", advertise="https://one.example.org:8642")  # noqa: S104
    gate = Gate({"local": "t"}, settings=settings, port=8642)
    assert gate.check_address(coming_to("one.example.org:8642", "https://one.example.org:8642")) is None
    denial = gate.check_address(coming_to("two.example.org:8642"))
    assert denial is not None
    assert denial.status == 421
    assert gate.check_address(coming_to("one.example.org:8642", "https://two.example.org")) is not None


@pytest.mark.parametrize(
    ("advertised", "hosts", "origin"),
    [
        ("https://One.Example.org:443/", ("one.example.org", "One.Example.org:443"), "https://one.example.org"),
        ("http://one.example.org:80", ("one.example.org", "one.example.org:80"), "http://one.example.org"),
        ("https://one.example.org", ("one.example.org", "one.example.org:443"), "https://one.example.org"),
        ("http://ONE:8642", ("one:8642", "One:8642"), "http://one:8642"),
        ("https://[FD00::443]:443", ("[fd00::443]", "[FD00::443]:443"), "https://[fd00::443]"),
    ],
)
def test_the_advertised_host_is_known_however_clients_write_it(
    advertised: str, hosts: tuple[str, ...], origin: str
) -> None:
    gate = Gate({"local": "t"}, settings=replace(Settings(), advertise=advertised), port=8642)
    for host in hosts:
        assert gate.check_address(coming_to(host, origin)) is None, host
    for other in ("one.example.org:8643", "two.example.org", "one.example.org:44", "one.example.org:443:443"):
        assert gate.check_address(coming_to(other)) is not None, other


def test_names_that_are_allowed_are_known_in_any_letters() -> None:
    gate = Gate({"local": "t"}, settings=replace(Settings(), allowed_hosts=("My.Example.org",)), port=8642)
    assert gate.check_address(coming_to("my.example.org", "http://my.example.org")) is None
