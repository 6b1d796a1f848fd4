"""Tool calls in answers of providers: ids that tell them apart, and calls that were cut off."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator


def ids_of(given: Iterable[str], *, step_id: str, prefix: str) -> Iterator[str]:
    """An id for each call of a step: its own if it has one that no call before it has, else one that is made up."""
    seen: set[str] = set()
    for number, own in enumerate(given):
        call_id = own if own and own not in seen else _made_id(step_id, number, prefix)
        seen.add(call_id)
        yield call_id


def is_cut(arguments: str, *, finish: str) -> bool:
    """Whether the last call of an answer was cut off before its arguments, so that it is none that has no arguments."""
    return finish == "length" and not arguments.strip()


def _made_id(step_id: str, number: int, prefix: str) -> str:
    digest = hashlib.blake2b(f"{step_id} {number}".encode(), digest_size=12)
    return f"{prefix}_{digest.hexdigest()}"
