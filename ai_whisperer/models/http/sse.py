"""Server-sent events: the data of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def data_in(piece: bytes) -> Iterable[bytes]:
    """The data of each event in a piece of whole events. Comments, names and numbers of events are left out."""
    if (
        piece.startswith(b"data: ")
        and piece.endswith(b"\n\n")
        and piece.find(b"\n") == len(piece) - 2
        and b"\r" not in piece
    ):
        return (piece[6:-2],)  # one event of one line, as most are
    return _taken_apart(piece)


def _taken_apart(piece: bytes) -> Iterator[bytes]:
    data: list[bytes] = []
    for line in piece.splitlines():
        if line.startswith(b"data:"):
            data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line and data:
            yield data[0] if len(data) == 1 else b"\n".join(data)
            data = []
    if data:
        yield data[0] if len(data) == 1 else b"\n".join(data)
