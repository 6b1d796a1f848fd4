import re

import pytest

from ai_whisperer.models.event_bounds import (
    MAX_BARE_BYTES_IN_EVENT,
    MAX_CHOICES,
    MAX_EVENT_BYTES,
    MAX_EVENT_LINES,
    MAX_EVENT_VALUES,
    PIECE_BYTES,
    EventCutter,
    EventTooLargeError,
)

STREAM = b"".join(
    (
        b": hello\n\n",
        b"data: {}\n\n",
        b"event: a\r\ndata: b\r\n\r\n",
        b"data: c\rdata: d\r\r",
        b"\n\n\n",
        b'data: "' + b"x" * 5_000 + b'"\n\n',
        b"data: \xf0\x9f\x98\x80\n\n" * 1_000,
        b"data: no end",
    )
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 1_000, 1_000_000])
@pytest.mark.parametrize("lines", [False, True])
def test_nothing_is_lost_and_pieces_end_where_events_do(size: int, lines: bool) -> None:  # noqa: FBT001
    cutter = EventCutter(lines=lines)
    pieces = [piece for at in range(0, len(STREAM), size) for piece in cutter.feed(STREAM[at : at + size])]
    rest = b"".join(cutter.finish())
    assert b"".join(pieces) + rest == STREAM
    ends = re.compile(rb"\n\Z" if lines else rb"(\n\n|\r\n\r\n|\r\r)\Z")
    assert all(ends.search(piece) for piece in pieces if size > 3)
    assert rest == b"data: no end"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\r\n\n", b"\n\r"])
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_any_two_line_ends_end_an_event(end: bytes, size: int) -> None:
    cutter = EventCutter()
    body = b"".join(b"data: %d" % number + end for number in range(3))
    pieces = [piece for at in range(0, len(body), size) for piece in cutter.feed(body[at : at + size])]
    assert b"".join(pieces).count(b"data") == 3, "none is held back until the next one comes"


def test_small_events_come_together_and_no_piece_has_many() -> None:
    pieces = list(EventCutter().feed(b"data: {}\n\n" * 10_000))
    assert max(map(len, pieces)) < PIECE_BYTES + 20
    assert min(map(len, pieces[:-1])) >= PIECE_BYTES


def read(event: bytes) -> int:
    cutter = EventCutter()
    return sum(len(piece) for at in range(0, len(event), 60_000) for piece in cutter.feed(event[at : at + 60_000]))


def text(size: int) -> bytes:
    return b'data: {"choices": [{"delta": {"content": "' + b'[{,\\"' * (size // 5) + b'"}}]}\n\n'


def test_an_event_may_have_much_text_whatever_is_in_it() -> None:
    assert read(text(MAX_EVENT_BYTES - 200)) > MAX_EVENT_BYTES - 300


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (text(MAX_EVENT_BYTES), f"more than {MAX_EVENT_BYTES:,} bytes"),
        (b"x" * (MAX_EVENT_BYTES + 1), f"more than {MAX_EVENT_BYTES:,} bytes"),
        (b"data: [" + b"0," * MAX_EVENT_VALUES + b"0]\n\n", f"more than {MAX_EVENT_VALUES:,} values"),
        (b"data: " + b'{"a":' * (MAX_EVENT_VALUES + 1) + b"\n\n", f"more than {MAX_EVENT_VALUES:,} values"),
        (b"data: x\n" * MAX_EVENT_LINES + b"\n", f"more than {MAX_EVENT_LINES:,} lines"),
        (b"data: " + b'""' * MAX_BARE_BYTES_IN_EVENT + b"\n\n", f"more than {MAX_EVENT_VALUES:,} values"),
        (b"data: 1." + b"9" * MAX_BARE_BYTES_IN_EVENT + b"\n\n", f"more than {MAX_BARE_BYTES_IN_EVENT:,} bytes beside"),
        (
            b'data: {"choices": [' + b",".join([b"{}"] * (MAX_CHOICES + 200)) + b"]}\n\n",
            f"more than {MAX_CHOICES} answers",
        ),
    ],
)
def test_an_event_that_is_too_much_is_not_passed_on(event: bytes, words: str) -> None:
    with pytest.raises(EventTooLargeError, match=words):
        read(event)


def test_a_provider_may_repeat_the_tools_that_it_was_told_of() -> None:
    tool = b'{"type": "function", "name": "t", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}'
    event = b'data: {"response": {"tools": [' + b",".join([tool] * 200) + b"]}}\n\n"
    assert read(event) == len(event)
