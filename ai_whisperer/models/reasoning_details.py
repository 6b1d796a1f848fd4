"""The parts of reasoning that a gateway wants to see again as they were, which come in pieces."""

from __future__ import annotations

from typing import Any

_TEXTS = ("text", "summary", "data")
"""The fields whose pieces are put together; of any other the last one counts."""
_MOST_PARTS = 1_000
_MOST_CHARACTERS = 4 << 20


class ReasoningDetails:
    """Puts the parts of one answer together."""

    __slots__ = ("_characters", "_parts")

    def __init__(self) -> None:
        self._characters = 0
        self._parts: list[dict[str, Any]] = []

    def take(self, pieces: Any) -> None:
        """Take the next pieces, whatever they are; raises `ValueError` if they are without end."""
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            self._characters += sum(len(value) for value in piece.values() if isinstance(value, str))
            if self._characters > _MOST_CHARACTERS:
                raise ValueError(f"its reasoning has more than {_MOST_CHARACTERS:,} characters to be kept")
            last = self._parts[-1] if self._parts else None
            if last is not None and all(last.get(name) == piece.get(name) for name in ("type", "index")):
                _add(last, piece)
            elif len(self._parts) < _MOST_PARTS:
                self._parts.append(_begun(piece))

    def whole(self) -> list[dict[str, Any]]:
        """The parts."""
        return [
            {name: "".join(value) if name in _TEXTS else value for name, value in part.items()} for part in self._parts
        ]


def _begun(piece: dict[str, Any]) -> dict[str, Any]:
    part: dict[str, Any] = {}
    _add(part, piece)
    return part


def _add(part: dict[str, Any], piece: dict[str, Any]) -> None:
    for name, value in piece.items():
        if name in _TEXTS:
            part.setdefault(name, []).append(value if isinstance(value, str) else "")
        elif value is not None:
            part[name] = value
