"""Which name was probably meant by one that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that begins like it, as `max_steps_per_task` does for `max_steps`, else one with nearly the same
    letters; None if there is none."""
    names = list(known)
    begun = [each for each in names if each.startswith(f"{name}_")]
    return next(iter(begun or difflib.get_close_matches(name, names, n=1)), None)
