"""What requests cost, by the price list of the provider library: read beside the event loop when first wanted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import Any

_UNPRICED = (ValueError, TypeError, AttributeError, ArithmeticError, AssertionError, ImportError)
_MOST_UNKNOWN = 1_000

_library: list[Any] = []
"""The price list, once it was read."""
_unknown: set[tuple[str, str]] = set()
"""Models that it does not have, so that they are looked for once only."""
_windows: dict[tuple[str, str], int | None] = {}


async def load() -> None:
    """Read the price list, if that was not done before."""
    if not _library:
        await asyncio.to_thread(_read)


def cost_usd(
    provider: str, model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0
) -> float | None:
    """What a request costs; None if the list does not know the model, or was not read.

    `input_tokens` are all that were sent: those that the provider took from its cache, and wrote to it, among them.
    If these are more than all, as some providers count, they are all.
    """
    key = (provider, model)
    if not _library or key in _unknown or min(input_tokens, output_tokens, cached_tokens, written_tokens) < 0:
        return None
    cached_tokens = min(cached_tokens, input_tokens)
    written_tokens = min(written_tokens, input_tokens - cached_tokens)
    used = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    used |= {"cache_read_tokens": cached_tokens} if cached_tokens else {}
    used |= {"cache_write_tokens": written_tokens} if written_tokens else {}
    try:
        price = _library[0].calc_price(_library[0].Usage(**used), model_ref=model, provider_id=provider)
        return float(price.total_price)
    except LookupError:
        if len(_unknown) < _MOST_UNKNOWN:
            _unknown.add(key)
    except _UNPRICED:
        pass  # it knows the model, and has no price for this request
    return None


def context_window(provider: str, model: str) -> int | None:
    """How many tokens the model can take with its answer; None if the list does not say, or was not read."""
    key = (provider, model)
    if not _library:
        return None
    if key not in _windows:
        if len(_windows) >= _MOST_UNKNOWN:
            _windows.clear()
        _windows[key] = _listed_window(provider, model)
    return _windows[key]


def _listed_window(provider: str, model: str) -> int | None:
    try:
        price = _library[0].calc_price(_library[0].Usage(input_tokens=1), model_ref=model, provider_id=provider)
        window = price.model.context_window
    except (LookupError, *_UNPRICED):
        return None
    return window if type(window) is int and window > 0 else None


def _read() -> None:
    library = import_module("genai_prices")
    with suppress(LookupError, *_UNPRICED):
        library.calc_price(library.Usage(input_tokens=1), model_ref="any", provider_id="openai")  # reads its tables
    _library.append(library)
