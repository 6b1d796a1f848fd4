"""How many wrong tokens an address may show, and the whole server may be shown: who guesses is told to wait.

A token is looked at only while its address has tries left, so that nobody learns at any speed which one is right. The
one exception is an address from which a right one has come: there a right one is always taken, so that whoever shares
the address with somebody who guesses, as all programs of one machine do, is not locked out by it.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

_MOST_ADDRESSES = 10_000
_ALL_ADDRESSES = 20
"""The whole server may be shown so many times as many as one address."""

_MINUTE = 60.0
_IPV6_NETWORK = 64
"""Whoever has one IPv6 address has all of such a network."""

_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")


class Guesses:
    """Counts wrong tokens. A try that was used comes back after a while, so that a slip of the hand costs seconds.

    What it remembers is bounded: the addresses that were seen longest ago are forgotten.
    """

    def __init__(self, per_minute: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._now = now
        self._of_address: OrderedDict[str, _Tries] = OrderedDict()
        self._of_all = _Tries(per_minute * _ALL_ADDRESSES, now())
        self._proven: OrderedDict[str, None] = OrderedDict()
        self._wrong = 0
        self._told_at = -math.inf

    def seconds_to_wait(self, address: str | None) -> int | None:
        """How long nothing from this address is looked at; None if it is."""
        source = _source(address)
        wait = None if source in self._proven else self._wait(source)
        if wait is not None:
            self._tell(source, self._now())
        return wait

    def was_right(self, address: str | None) -> None:
        _remember(self._proven, _source(address), None)

    def was_wrong(self, address: str | None) -> int | None:
        """Count it. Returns how long the address has to wait if it has no try left for this one."""
        source, now = _source(address), self._now()
        self._wrong += 1
        wait = self._wait(source)
        if wait is not None:
            self._tell(source, now)
            return wait
        tries = self._of_address.get(source) or _Tries(self._per_minute, now)
        _remember(self._of_address, source, tries)
        tries.use(now)
        self._of_all.use(now)
        return None

    def _tell(self, source: str, now: float) -> None:
        """Not more than a line a minute: whoever guesses is not to fill the log."""
        if now - self._told_at >= _MINUTE:
            self._told_at = now
            _log.warning(
                "too many wrong tokens: %d since the server began, the last from %s, which has to wait now",
                self._wrong,
                source,
            )

    def _wait(self, source: str) -> int | None:
        now, tries = self._now(), self._of_address.get(source)
        wait = max(self._of_all.wait(now), 0.0 if tries is None else tries.wait(now))
        return math.ceil(wait) if wait > 0 else None


class _Tries:
    """So many at once; those that were used come back evenly, all within a minute."""

    __slots__ = ("_at", "_left", "_most")

    def __init__(self, most: int, now: float) -> None:
        self._most = most
        self._left = float(most)
        self._at = now

    def use(self, now: float) -> None:
        self._left, self._at = self._left_at(now) - 1, now

    def wait(self, now: float) -> float:
        """Seconds until there is one."""
        return max(1 - self._left_at(now), 0.0) * _MINUTE / self._most

    def _left_at(self, now: float) -> float:
        return min(self._left + (now - self._at) * self._most / _MINUTE, self._most)


def _remember(known: OrderedDict[str, _Value], source: str, value: _Value) -> None:
    known[source] = value
    known.move_to_end(source)
    if len(known) > _MOST_ADDRESSES:
        known.popitem(last=False)


def _source(address: str | None) -> str:
    """Whom the address stands for."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "an unknown address"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        if not found.is_loopback:
            return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found)
