"""What is kept of the output of a job."""

from __future__ import annotations

from ai_whisperer.sandbox.capture import Capture


def test_little_output_is_kept_whole() -> None:
    capture = Capture(100)
    for piece in (b"one ", b"two ", b"three"):
        capture.add(piece)
    assert (capture.kept(), capture.cut_bytes, capture.total) == (b"one two three", 0, 13)


def test_of_much_output_head_and_tail_are_kept_however_it_came() -> None:
    written = bytes(range(256)) * 100
    for size in (1, 7, 1000, len(written)):
        capture = Capture(200)
        for start in range(0, len(written), size):
            capture.add(written[start : start + size])
        kept = capture.kept()
        assert kept.startswith(written[:100])
        assert kept.endswith(written[-100:])
        assert capture.cut_bytes == len(written) - 200


def test_a_piece_is_what_came_since_the_last_one() -> None:
    capture = Capture(10)
    capture.add(b"first")
    assert capture.take_piece() == b"first"
    assert capture.take_piece() == b""


def test_a_piece_that_would_be_large_says_how_much_went_by() -> None:
    capture = Capture(10)
    for _ in range(10):
        capture.add(b"x" * 10_000)
    piece = capture.take_piece()
    assert len(piece) < 10_000
    assert piece.startswith("[… 91808 bytes …]\n".encode())
