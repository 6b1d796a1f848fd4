"""Who is let in: those who come to an address of the server, and with what they show there."""

from __future__ import annotations

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
