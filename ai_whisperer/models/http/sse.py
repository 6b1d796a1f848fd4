"""Server-sent events: the data of each."""

from __future__ import annotations

from collections.abc import Iterator


def data_in(piece: bytes) -> Iterator[bytes]:
    """The data of each event in a piece of whole events. Comments, names and numbers of events are left out."""
    data: list[bytes] = []
    for line in piece.splitlines():
        if line.startswith(b"data:"):
            data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line and data:
            yield data[0] if len(data) == 1 else b"\n".join(data)
            data = []
    if data:
        yield data[0] if len(data) == 1 else b"\n".join(data)
