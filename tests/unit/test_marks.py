"""Marks around what others wrote: a text cannot contain its own, and what looks like a mark is made harmless."""

from __future__ import annotations

import json
import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_whisperer.core.marks import as_json, named, quoted, said, untrusted, without_marks
from ai_whisperer.core.text import one_line

PIECES = st.sampled_from(
    ["<", "</", "said", "SAID", "untrusted", ' by="user"', ' id="', '">', "\n", "\u2028", "&lt;", "'", "\\", "123456"]
)
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map("".join)


def sequence_of_all(digits: int) -> str:
    """A text that holds every number of so many digits."""
    return "".join(f"{number:0{digits}d}" for number in range(10**digits))


def test_the_marks_are_short_and_name_the_writer() -> None:
    number = str(int.from_bytes(sha256(b"hello").digest()))[:6]
    assert said("alice", "hello") == f'<said by="alice" id="{number}">\nhello\n</said id="{number}">'
    assert (
        untrusted("fetch_url", "hello")
        == f'<untrusted source="fetch_url" id="{number}">\nhello\n</untrusted id="{number}">'
    )


@given(HOSTILE)
def test_a_text_holds_neither_its_number_nor_anything_like_a_mark(text: str) -> None:
    found = re.fullmatch(r'<said by="bob" id="(\d+)">\n(.*)\n</said id="(\d+)">', said("bob", text), re.DOTALL)
    assert found is not None
    assert found[1] == found[3]
    assert found[1] not in text
    assert not re.search(r"<\W{0,8}(said\b|untrusted)", found[2], re.IGNORECASE)
    assert found[2].replace("&lt;", "<") == text.replace("&lt;", "<")


def test_a_text_with_every_number_of_six_digits_has_a_longer_one() -> None:
    text = sequence_of_all(6)
    found = re.match(r'<said by="bob" id="(\d+)">', said("bob", text))
    assert found is not None
    assert len(found[1]) > 6
    assert found[1] not in text


@given(st.text(max_size=40))
def test_a_name_cannot_end_the_mark_that_it_stands_in(name: str) -> None:
    assert re.match(r'<said by="[\w.:-]*" id="\d+">\nx\n', said(name, "x"))


@given(HOSTILE)
def test_words_within_a_sentence_stay_on_their_line_and_within_their_quotation_marks(text: str) -> None:
    shown = quoted(text)
    assert len(shown.splitlines()) == 1
    assert re.fullmatch(r"'(?:[^'\\]|\\.)*'", shown, re.DOTALL)
    assert not re.search(r"<\W{0,8}said\b", shown, re.IGNORECASE)


@given(HOSTILE)
def test_texts_in_data_stay_on_their_line_and_hold_no_marks(text: str) -> None:
    shown = as_json({"note": text})
    assert json.loads(shown) == {"note": text}
    assert len(shown.splitlines()) == 1
    assert not re.search(r"<\W{0,8}said\b", shown, re.IGNORECASE)


@pytest.mark.parametrize("name", ["alice", "a.b-c_d", "schedule:nightly"])
def test_what_can_only_be_a_name_is_not_quoted(name: str) -> None:
    assert named(name) == name


def test_other_names_are_quoted() -> None:
    assert named("bob. alice holds it") == "'bob. alice holds it'"


def test_without_the_marks_the_text_is_as_it_was() -> None:
    words = said("bob", "one\ntwo")
    shown = f"[1] bob: {words}\n\n{said('alice', '')} (from alice)"
    assert without_marks(shown) == "[1] bob: one\ntwo\n\n (from alice)"
    assert without_marks("<said> is a word") == "<said> is a word"


@pytest.mark.parametrize(
    "ending", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\0"]
)
def test_what_ends_a_line_becomes_a_space_in_a_line(ending: str) -> None:
    assert one_line(f"Plan{ending}From: user{ending}") == "Plan From: user"


@pytest.mark.parametrize("turn", ["\u202e", "\u202d", "\u2066", "\u2069", "\u200f", "\u061c"])
def test_what_changes_the_direction_of_text_is_left_out_of_a_line(turn: str) -> None:
    assert one_line(f"Plan {turn}resu") == "Plan resu"


@pytest.mark.parametrize("text", ["Plan  B", "פגישה מחר", "naïve 👩\u200d🔬", ""])
def test_other_text_is_kept_in_a_line(text: str) -> None:
    assert one_line(text) == text
