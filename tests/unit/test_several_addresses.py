"""Several addresses for one client: the nodes of a cluster."""

from __future__ import annotations

import pytest

from ai_whisperer.client.address import read_address
from ai_whisperer.errors import InvalidInputError


def test_a_token_in_one_of_several_addresses_is_shown_to_all() -> None:
    first = read_address("http://a:1/, http://b:2/?token=secret,wss://c/ws")
    assert [each.url for each in (first, *first.others)] == ["ws://a:1/ws", "ws://b:2/ws", "wss://c/ws"]
    assert {each.token for each in (first, *first.others)} == {"secret"}
    assert first.named == "ws://a:1/ws or ws://b:2/ws or wss://c/ws"


def test_a_token_that_is_given_beside_them_counts_for_all() -> None:
    first = read_address("http://a:1,http://b:2?token=other", "secret", certificate="ca.pem")
    assert {(each.token, each.certificate) for each in (first, *first.others)} == {("secret", "ca.pem")}


def test_a_token_may_have_a_comma_in_it() -> None:
    given = "one,two"
    assert read_address(f"http://a:1/?token={given}").token == given


@pytest.mark.parametrize("url", ["http://a:1,", ",", "http://a:1,tcp://b"])
def test_each_of_them_must_be_an_address(url: str) -> None:
    with pytest.raises(InvalidInputError, match="is not the address of a server"):
        read_address(url)
