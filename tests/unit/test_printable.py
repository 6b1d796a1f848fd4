"""Nothing that is shown can steer the terminal."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_whisperer.cli.printable import as_json, one_line, printable, readable_arguments, shortened

ANYTHING = st.text(st.characters(codec=None, categories=None))


@given(ANYTHING)
def test_no_control_character_is_left_but_tab_and_line_end(text: str) -> None:
    shown = printable(text)
    assert {each for each in shown if unicodedata.category(each) in ("Cc", "Cs")} <= {"\n", "\t"}
    shown.encode()


def test_nothing_that_is_not_seen_is_left() -> None:
    formats = "".join(chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf")
    assert printable(formats).isascii()


@given(ANYTHING)
def test_a_line_is_one_line_and_not_too_long_for_a_table(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert len(shortened(text, width=10)) <= 10


@given(st.recursive(ANYTHING, lambda inner: st.lists(inner) | st.dictionaries(ANYTHING, inner), max_leaves=5))
def test_json_steers_nothing_and_means_the_same(value: object) -> None:
    line = as_json(value)
    assert printable(line) == line
    assert line.isascii()
    assert json.loads(line) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nover lines", "plain\ttext\nover lines"),
        ("Windows\r\nline", "Windows\nline"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("over\rwritten\x08", "over\\x0dwritten\\x08"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202ecba", "abc\\u202ecba"),
        ("abc\u061c\u206fcba", "abc\\u061c\\u206fcba"),
        ("unseen \U000e0041", "unseen \\U000e0041"),
        ("rm\u200b \u200d\u2060\u2064\ufeff\u00ad", "rm\\u200b \\u200d\\u2060\\u2064\\ufeff\\xad"),
        ("a\ufe0f\U000e0100\u3164", "a\\ufe0f\\U000e0100\\u3164"),
        ("half \ud83d", "half \\ud83d"),
        ("Grüße 🎉", "Grüße 🎉"),
    ],
)
def test_what_would_steer_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"path":"a.txt", "size": 5}', '{\n  "path": "a.txt",\n  "size": 5\n}'),
        ('{"path":"\\u001b[2J"}', '{\n  "path": "\\u001b[2J"\n}'),
        ('{"path":"a\u202e"}', '{\n  "path": "a\\u202e"\n}'),
        ('{"amount":5,"amount":5000}', '{"amount":5,"amount":5000}'),
        ('{"amount":1e999}', '{"amount":1e999}'),
        ("no JSON \x1b", "no JSON \\x1b"),
    ],
)
def test_arguments_are_laid_out_only_if_nothing_of_them_is_lost(arguments: str, shown: str) -> None:
    assert readable_arguments(arguments) == shown
