"""Images and files that go along with tasks and messages: what they are, and how their contents are kept."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from ai_whisperer import input_parts
from ai_whisperer.core.attachments import MAX_PARTS, attachment_of
from ai_whisperer.core.contexts import input_tokens, turn_bytes
from ai_whisperer.domain.attachments import InputFile
from ai_whisperer.domain.conversation import UserTurn
from ai_whisperer.errors import InvalidInputError, TooLargeError
from ai_whisperer.input_parts import files_of
from ai_whisperer.store.attachments import AttachmentFiles


def png(wide: int = 1, high: int = 1) -> bytes:
    """A PNG image of that size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"\0\xff\xff\xff" * min(high, 1))
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(wide: int, high: int) -> bytes:
    return b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08" + struct.pack(">HH", high, wide) + b"\x01\x11\x00rest"


def kind_of(data: bytes, name: str = "", media_type: str = "") -> str:
    return attachment_of(InputFile(data=data, name=name, media_type=media_type), max_bytes=1 << 20).media_type


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (png(), "", "image/png"),
        (png(), "chart.jpg", "image/png"),
        (jpeg(2, 3), "", "image/jpeg"),
        (b"GIF89a\1\0\1\0", "", "image/gif"),
        (b"RIFF0000WEBPVP8 ", "", "image/webp"),
        (b"%PDF-1.7", "", "application/pdf"),
        (b"a,b\n1,2\n", "data.csv", "text/csv"),
        (b'{"a": 1}', "data.json", "application/json"),
        ("äöü".encode(), "notes", "text/plain"),
        (b"<svg/>", "drawing.svg", "text/plain"),
        (b"\0\1\2", "x.zip", "application/zip"),
        (b"\0\1\2", "x.png", "application/octet-stream"),
    ],
)
def test_a_file_is_what_its_content_and_then_its_name_say(data: bytes, name: str, media_type: str) -> None:
    assert kind_of(data, name) == media_type


@pytest.mark.parametrize(
    ("data", "stated", "complaint"),
    [
        (b"hello", "image/png", "is said to be image/png, but its content is something else"),
        (png(), "image/jpeg", "but it is image/png"),
        (png(), "image/svg+xml", "but it is image/png"),
        (b"%PDF", "application/pdf", "but its content is something else"),
        (b"\xff\xfe", "text/plain", "no text in UTF-8"),
        (b"x", "nonsense", "is no media type"),
        (b"x", "text/html\r\nX: y", "is no media type"),
        (b"", "", "is empty"),
    ],
)
def test_a_file_that_is_not_what_it_is_said_to_be_is_refused(data: bytes, stated: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        kind_of(data, "x", stated)


def test_a_file_that_is_too_large_or_an_image_with_too_many_pixels_is_refused() -> None:
    with pytest.raises(TooLargeError, match="max_attachment_bytes"):
        attachment_of(InputFile(data=b"12345"), max_bytes=4)
    with pytest.raises(TooLargeError, match="9,000 pixels wide"):
        kind_of(png(9_000, 1))
    with pytest.raises(TooLargeError, match="9,000 high"):
        kind_of(jpeg(1, 9_000))


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\\b\n\x1b[2J", "x" * 999])
def test_a_name_is_one_line_and_no_path(name: str) -> None:
    found = attachment_of(InputFile(data=b"x", name=name), max_bytes=9).name
    assert "/" not in found
    assert "\\" not in found
    assert "\n" not in found
    assert len(found) <= 200


def test_an_image_counts_by_its_pixels_and_a_text_by_its_length() -> None:
    small, large = (attachment_of(InputFile(data=png(*size)), max_bytes=1 << 20) for size in ((100, 75), (4000, 3000)))
    text = attachment_of(InputFile(data=b"x" * 4_000), max_bytes=1 << 20)
    assert (small.tokens, large.tokens, text.tokens) == (95, 1_600, 1_001)
    turn = UserTurn(text="Look.", parts=(large,))
    assert input_tokens("", (), (turn,)) == 1_600 + 2
    assert turn_bytes(turn) == len("Look.") + large.size


def test_parts_are_paths_bytes_or_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    given = InputFile(data=b"x", name="b")
    read = files_of([tmp_path / "a.txt", str(tmp_path / "a.txt"), b"y", given])
    assert [(file.name, file.data) for file in read] == [
        ("a.txt", b"hello"),
        ("a.txt", b"hello"),
        ("file 3", b"y"),
        ("b", b"x"),
    ]


def test_parts_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    for part, complaint in [
        (tmp_path / "gone.png", "is not there"),
        (tmp_path, "is a folder"),
        (5, "Part 1 is int"),
        ("a\0b", "cannot be read|is not there"),
        (InputFile(data="text"), "has bytes as its data"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(InvalidInputError, match=complaint):
            files_of([part])
    with pytest.raises(InvalidInputError, match="must be a list"):
        files_of("a.txt")
    with pytest.raises(TooLargeError, match="at most 20"):
        files_of([b"x"] * (MAX_PARTS + 1))


def test_a_file_of_which_only_a_part_would_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_parts, "_MOST_READ_BYTES", 10)
    for name, size in (("most.txt", 10), ("more.txt", 11)):
        (tmp_path / name).write_bytes(b"x" * size)
    assert len(files_of([tmp_path / "most.txt"])[0].data) == 10
    with pytest.raises(TooLargeError, match="more than 10 bytes"):
        files_of([tmp_path / "more.txt"])


def test_a_content_is_kept_once_and_read_back(tmp_path: Path) -> None:
    files = AttachmentFiles(tmp_path / "kept")
    attachment = attachment_of(InputFile(data=b"hello"), max_bytes=9)
    for _ in range(2):
        files.keep(attachment.digest, b"hello")
    (kept,) = (tmp_path / "kept").iterdir()
    assert files.read(attachment.digest) == b"hello"
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_bytes(b"jello")
    assert files.read(attachment.digest) is None
    files.keep(attachment.digest, b"hello")
    kept.unlink()
    assert files.read(attachment.digest) is None


def test_what_nobody_names_is_swept(tmp_path: Path) -> None:
    files = AttachmentFiles(tmp_path)
    files.keep("a" * 64, b"named")
    files.keep("b" * 64, b"not named")
    (tmp_path / ".draft-1").write_bytes(b"half")
    assert sorted(files.sweep({"a" * 64})) == [".draft-1", "b" * 64]
    assert [each.name for each in tmp_path.iterdir()] == ["a" * 64]
    assert AttachmentFiles(tmp_path / "nothing").sweep(set()) == []
