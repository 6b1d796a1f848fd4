"""How many and how large, in words."""

from __future__ import annotations


def counted(count: int, word: str) -> str:
    """So many of what the word names: `1 task`, `1,000 tasks`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def size(count: float) -> str:
    """So many bytes, in the unit that suits them."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
