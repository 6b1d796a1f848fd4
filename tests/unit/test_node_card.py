"""What a node tells the others of itself: they see where it differs, and nothing of what it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.sandbox.levels import ALL, STRONG, strength_of
from ai_whisperer.server.node_card import card_of
from ai_whisperer.settings import Settings
from ai_whisperer.tools.function import tool
from ai_whisperer.tools.toolbox import ToolBox


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    return word


def digest(*, tools: ToolBox | None = None, sandbox: str = "namespaces", **settings: Any) -> str:
    return card_of(Settings(**settings), port=1, tools=tools or ToolBox(()), sandbox=sandbox).settings


@pytest.mark.parametrize(
    "other",
    [
        {"token": "another-token"},
        {"tokens": {"ann": "a-token-of-anns"}},
        {"model": "scripted"},
        {"limits": SessionLimits(max_tokens=3)},
        {"session": "talks"},
        {"folders": {"docs": Path("docs")}},
        {"sandbox": "rlimits"},
        {"tools": ToolBox((look_up,))},
    ],
    ids=lambda each: next(iter(each)),
)
def test_what_a_session_would_find_otherwise_at_another_node_makes_its_settings_others(other: dict[str, Any]) -> None:
    assert digest() == digest(data=Path("elsewhere"), port=7, node="b", log_level="debug")
    assert digest(**other) != digest()


def test_levels_that_hold_everything_are_equally_strong_and_none_is_the_weakest() -> None:
    assert [strength_of(level) for level in ALL] == [3] * len(STRONG) + [2, 1]
    assert strength_of("none") == strength_of("untried") == 0
