"""What requests cost, by the price list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ai_whisperer.models import prices

MODEL = ("openai", "gpt-4o")


@pytest.fixture(autouse=True)
def price_list() -> Iterator[None]:
    asyncio.run(prices.load())
    prices._unknown.clear()
    yield
    prices._unknown.clear()


def test_more_from_the_cache_than_was_sent_is_all_that_was_sent() -> None:
    whole = prices.cost_usd(*MODEL, input_tokens=5, output_tokens=1, cached_tokens=5)
    assert whole is not None
    assert prices.cost_usd(*MODEL, input_tokens=5, output_tokens=1, cached_tokens=9, written_tokens=9) == whole


def test_figures_without_a_price_do_not_make_the_model_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: int) -> None:
        raise ValueError("odd figures")

    with monkeypatch.context() as patch:
        patch.setattr(prices._library[0], "Usage", fail)
        assert prices.cost_usd(*MODEL, input_tokens=1, output_tokens=1) is None
    assert prices.cost_usd(*MODEL, input_tokens=1, output_tokens=1) is not None


@pytest.mark.parametrize("key", [("openai", "nobody-knows-this"), ("nobody", "gpt-4o")])
def test_a_model_that_the_list_does_not_have_is_looked_for_once(key: tuple[str, str]) -> None:
    assert prices.cost_usd(*key, input_tokens=1, output_tokens=1) is None
    assert prices._unknown == {key}
