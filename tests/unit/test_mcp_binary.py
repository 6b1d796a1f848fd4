"""Binary data in what MCP servers return: it is found, kept under its digest, and told about."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.tools.mcp import received
from ai_whisperer.tools.mcp.binary import Binary, binary
from ai_whisperer.tools.mcp.results import result_of
from ai_whisperer.tools.workplace import OWN, Folder, Workplace

DATA = b"\x89PNG\r\n\x1a\n" + random.Random(7).randbytes(3_000)
DIGEST = hashlib.sha256(DATA).hexdigest()[:32]
ENCODED = base64.b64encode(DATA).decode()
SHOWN = f"3,008 bytes, sha256 {DIGEST}, kept"
JWT_LIKE = ".".join([ENCODED.rstrip("=")[:900]] * 3)


def shown(raw: dict[str, Any]) -> tuple[str, list[Binary]]:
    """The text that a model reads, and what was kept."""
    kept: list[Binary] = []

    def keep(found: Binary) -> str:
        kept.append(found)
        return "kept"

    return result_of("act", raw, keep).content, kept


@pytest.mark.parametrize(
    "structured",
    [
        {"result": ENCODED},
        {"pages": [{"picture": ENCODED}, {"picture": None}]},
        {"file": {"encoding": "base64", "content": base64.encodebytes(DATA).decode()}},
        {"file": {"mimeType": "image/png", "data": ENCODED}},
        {"page": f"<img src='data:image/png;base64,{ENCODED}'> and words"},
        {"result": base64.urlsafe_b64encode(DATA).decode().rstrip("=")},
        [ENCODED],
    ],
)
@pytest.mark.parametrize("repeats", ["not at all", "as text"])
def test_base64_in_structured_content_is_kept_and_described(structured: Any, repeats: str) -> None:
    content = [{"type": "text", "text": json.dumps(structured)}] if repeats == "as text" else []
    text, kept = shown({"content": content, "structuredContent": structured})
    assert ENCODED[100:140] not in text
    assert f"[data: image/png, {SHOWN}]" in text
    assert [each.data for each in kept] == [DATA]


@pytest.mark.parametrize(
    "plain",
    [
        {"contentType": "blogPost", "data": "open"},
        {"mimeType": "application/json", "data": "true"},
        {"mime_type": "image", "blob": "abcdefgh"},
    ],
)
def test_a_short_value_beside_a_kind_that_is_not_binary_stays(plain: dict[str, str]) -> None:
    text, kept = shown({"content": [], "structuredContent": plain})
    assert json.loads(text) == plain
    assert kept == []


@pytest.mark.parametrize(
    "stated",
    [
        {"mimeType": "image/gif", "data": "R0lGODlh"},
        {"contentType": "application/pdf", "blob": "JVBERi0x"},
        {"mimeType": "Application/Octet-Stream; name=x", "data": "AAECAw=="},
        {"contentType": "report", "encoding": "base64", "data": "AAECAw=="},
    ],
)
def test_a_short_value_that_is_called_binary_is_kept(stated: dict[str, str]) -> None:
    _, kept = shown({"content": [], "structuredContent": stated})
    assert len(kept) == 1


def test_base64_that_is_the_whole_text_is_told_once_though_the_server_returns_it_twice() -> None:
    raw = {"content": [{"type": "text", "text": ENCODED}], "structuredContent": {"result": ENCODED}}
    text, kept = shown(raw)
    assert text == f"[data: image/png, {SHOWN}]"
    assert len(kept) == 1


@pytest.mark.parametrize("encoding", ["base64", None])
def test_short_data_is_kept_if_it_says_that_it_is_base64(encoding: str | None) -> None:
    text, kept = shown({"structuredContent": {"encoding": encoding, "content": "QUJDRA=="}})
    assert ("QUJDRA==" in text) == (encoding is None)
    assert [each.data for each in kept] == ([b"ABCD"] if encoding else [])


@pytest.mark.parametrize(
    "value",
    [
        "word " * 1_000,
        "GATTACA" * 500,
        hashlib.sha256(DATA).hexdigest() * 40,
        "\n".join(f"Word{number}" for number in range(1_000)),
        JWT_LIKE,
        "https://web.example/a?b=" + "c" * 2_000,
        ENCODED[:400],
    ],
)
def test_what_only_looks_long_stays_text(value: str) -> None:
    text, kept = shown({"structuredContent": {"result": value}})
    assert json.loads(text) == {"result": value}
    assert kept == []


def test_what_leads_to_the_next_page_stays_text() -> None:
    text, kept = shown({"structuredContent": {"nextPageToken": ENCODED, "next_cursor": ENCODED}})
    assert json.loads(text) == {"nextPageToken": ENCODED, "next_cursor": ENCODED}
    assert kept == []


def test_text_that_is_json_without_data_is_shown_as_it_was_written() -> None:
    written = '{"a":   1, "words": "' + "word " * 400 + '"}'
    assert shown({"content": [{"type": "text", "text": written}]}) == (written, [])


def test_data_that_is_nested_without_end_is_not_shown() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    assert shown({"structuredContent": nested}) == ("[data that cannot be shown as JSON]", [])


def workplace(folder: Path, **limits: int) -> Workplace:
    granted = Folder(path=folder / "granted", access=Access.WRITE)
    folders = {OWN: Folder(path=folder / "own", access=Access.WRITE), received.FOLDER: granted}
    made = Workplace(folders=folders, network=(), limits=EffectiveLimits(**limits))
    granted.path.mkdir()
    made.own.path.mkdir()
    return made


def test_what_is_kept_lies_in_the_own_folder_under_its_digest_once(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    told = {received.keep(place, binary(DATA)) for _ in range(2)}
    assert told == {f"kept as received/{DIGEST}.png"}
    [file] = (tmp_path / "own" / "received").iterdir()
    assert file.read_bytes() == DATA
    assert list((tmp_path / "granted").iterdir()) == []


def test_what_cannot_be_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert received.keep(None, binary(DATA)) == "not kept"
    place = workplace(tmp_path, max_file_bytes=100)
    assert received.keep(place, binary(DATA)) == "not kept: at most 100 bytes are (max_file_bytes)"
    monkeypatch.setattr(received, "_MAX_BYTES", 5)
    assert received.keep(place, binary(b"123")).startswith("kept as received/")
    assert received.keep(place, binary(b"456")) == "not kept: 'received' is full, delete what is not needed there"
