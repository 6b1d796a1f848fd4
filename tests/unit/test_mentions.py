"""Who is meant by `@name` in a text."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_whisperer.core.mentions import Mentions, mentions_in

NAMES = {
    "alice": "alice",
    "debbie": "debbie",
    "Debbie the Debugger": "debugger",
    "d": "debugger",
    "code-reviewer": "reviewer",
    "v1.2": "v1.2",
    "Straße": "street",
    "O'Brien (QA)": "obrien",
    "trailing-": "trailing",
}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("@alice hello", ("alice",)),
        ("hello @alice", ("alice",)),
        ("@ALICE, @Alice and @alice", ("alice",)),
        ('(@alice) *@alice* "@alice" @alice\'s', ("alice",)),
        ("@alice.", ("alice",)),
        ("@alice... what now?", ("alice",)),
        ("@alice/@d", ("alice", "debugger")),
        ("@d and @alice", ("debugger", "alice")),
        ("@debbie look", ("debbie",)),
        ("@debbie the debugger look", ("debugger",)),
        ("@Debbie_The-Debugger, look", ("debugger",)),
        ("@debbie   the\tdebugger", ("debugger",)),
        ("@debbie        the debugger", ("debugger",)),
        ("@debbie         the debugger", ("debbie",)),
        ("@trailing- look", ("trailing",)),
        ("@trailing-- look", ("trailing",)),
        ("@debbie the debuggers", ("debbie",)),
        ("@debbie\nthe debugger", ("debbie",)),
        ("@code reviewer @code_reviewer", ("reviewer",)),
        ("@v1.2. Really?", ("v1.2",)),
        ("@STRASSE", ("street",)),
        ("@straße", ("street",)),
        ("@o'brien (qa) says", ("obrien",)),
        ("`code`@alice", ("alice",)),
        ("a ` b @alice", ("alice",)),
        ("\\`@alice`", ("alice",)),
        ("`a\n\n@alice b`", ("alice",)),
        ("```\n@d\n```\n@alice", ("alice",)),
        ("~~~ text\n```\n@d\n~~~\n@alice", ("alice",)),
    ],
)
def test_names_are_found_in_the_order_of_the_text(text: str, named: tuple[str, ...]) -> None:
    assert mentions_in(text, NAMES) == Mentions(named=named)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alice",
        "mail alice@example.com or a_@alice",
        "ünï@alice",
        "\\@alice",
        "`@alice`",
        "``@alice ` still``",
        "`over\n@alice lines`",
        "```\n@alice\n```",
        "```python\n@alice",
        "  ~~~~\n~~~\n@alice\n~~~~",
        "1. list\n   ```\n   @alice\n   ```",
        "https://example.com/@alice",
        "ftp://bob:secret@alice/",
        "@ alice, @, @! @(alice)",
        "@user you asked",
    ],
)
def test_what_only_looks_like_a_mention_is_none(text: str) -> None:
    assert mentions_in(text, NAMES) == Mentions()


@pytest.mark.parametrize(
    ("text", "strangers"),
    [
        ("@zed hello, @zed!", ("zed",)),
        ("@alice2", ("alice2",)),
        ("@alice_b", ("alice_b",)),
        ("@alice-b and @alice.b.", ("alice-b", "alice.b")),
        ("@user2 @allies", ("user2", "allies")),
        ("@code", ("code",)),
    ],
)
def test_a_longer_name_is_a_stranger_and_not_the_member_it_begins_with(text: str, strangers: tuple[str, ...]) -> None:
    assert mentions_in(text, NAMES) == Mentions(strangers=strangers)


@pytest.mark.parametrize("text", ["@all", "@everyone look", "hi @ALL!"])
def test_all_are_addressed_at_once(text: str) -> None:
    assert mentions_in(text, NAMES) == Mentions(everyone=True)


def test_a_member_called_all_is_meant_when_it_is_named() -> None:
    assert mentions_in("@all", {"all": "x"}) == Mentions(named=("x",))


@given(st.text(alphabet="@`~\\ \n_-.:/aldbtheur", max_size=60), st.text(alphabet=" \n`~@.", max_size=8))
def test_whatever_stands_around_it_a_text_is_read_without_fault(text: str, end: str) -> None:
    found = mentions_in(text + end, NAMES)
    assert set(found.named) <= set(NAMES.values())
    assert all(f"@{name}" in text for name in found.strangers)


def seconds_of_work(text: str, names: dict[str, str]) -> float:
    """The time that the processor takes to read the text, as far as nothing else comes in between."""
    mentions_in("@", names)  # the pattern is made once
    times = []
    for _ in range(3):
        begun = time.process_time()
        mentions_in(text, names)
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize("piece", ["@debbie the ", "`a``b```", "@", "a.", "\\", "@alice\n\n`", "://@"])
def test_the_work_grows_with_the_text_and_not_with_its_square(piece: str) -> None:
    def text(size: int) -> str:
        return "@ " + piece * (size // len(piece)) + "".join("`" * n + " " for n in range(1, math.isqrt(size)))

    assert seconds_of_work(text(260_000), NAMES) < 10 * seconds_of_work(text(65_000), NAMES)


@pytest.mark.parametrize(
    "piece",
    ["@agent" + "-" * 250_000, "@agent" + " " * 60, "@agent ", "@agent-", "@"],
    ids=["one with dashes", "many with blanks", "many in a row", "many joined", "none named"],
)
def test_a_text_is_read_in_about_the_same_time_however_many_members_there_are(piece: str) -> None:
    text = piece * (260_000 // len(piece))

    def seconds(members: int) -> float:
        return seconds_of_work(text, {f"agent-{number}": f"agent-{number}" for number in range(members)})

    assert seconds(100) < 8 * seconds(2)
