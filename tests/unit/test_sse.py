"""Server-sent events: one event of one line is read like any other."""

from __future__ import annotations

import pytest

from ai_whisperer.models.http.sse import data_in


@pytest.mark.parametrize(
    ("piece", "data"),
    [
        (b'data: {"a":1}\n\n', [b'{"a":1}']),
        (b"data: \n\n", [b""]),
        (b"data:x\n\n", [b"x"]),
        (b"data: x\r\n\r\n", [b"x"]),
        (b"data: x\ry\n\n", [b"x"]),
        (b"data: x\rdata: y\n\n", [b"x\ny"]),
        (b"data: x\n\ndata: y\n\n", [b"x", b"y"]),
        (b"data: x\ndata: y\n\n", [b"x\ny"]),
        (b"id: 1\ndata: x\n\n", [b"x"]),
        (b": alive\n\n", []),
        (b"data: x\nd", [b"x"]),
        (b"", []),
    ],
)
def test_the_data_of_each_event_is_found_however_its_lines_end(piece: bytes, data: list[bytes]) -> None:
    assert list(data_in(piece)) == data
