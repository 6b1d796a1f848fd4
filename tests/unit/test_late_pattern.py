"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.late_pattern import late_pattern

PACKAGE = Path(__file__).parents[2] / "ai_whisperer"
WITH_PATTERNS = [
    f"ai_whisperer.{'.'.join(file.relative_to(PACKAGE).with_suffix('').parts)}"
    for file in sorted(PACKAGE.rglob("*.py"))
    if "import late_pattern" in file.read_text(encoding="utf-8")
]


def late_patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    if type(value).__name__ == "_LatePattern":
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from late_patterns_in(each)


def test_a_late_pattern_finds_what_a_compiled_one_does() -> None:
    late, compiled = late_pattern(r"(a+)b", re.IGNORECASE), re.compile(r"(a+)b", re.IGNORECASE)
    for text in ("xAAB", "ab", "ba", ""):
        assert late.sub("-", text) == compiled.sub("-", text)
        assert (late.search(text) is None) is (compiled.search(text) is None)
        assert late.findall(text) == compiled.findall(text)


def test_a_mistake_in_a_late_pattern_shows_when_it_is_used() -> None:
    wrong = late_pattern("(")
    with pytest.raises(re.error):
        wrong.search("x")


@pytest.mark.parametrize("module", WITH_PATTERNS)
def test_all_late_patterns_can_be_compiled(module: str) -> None:
    found = [pattern for value in vars(import_module(module)).values() for pattern in late_patterns_in(value)]
    assert found
    assert all(isinstance(re.compile(pattern.pattern, pattern.flags), re.Pattern) for pattern in found)


def test_the_garbage_collector_works_again_after_the_manager_was_loaded() -> None:
    told = "import gc, ai_whisperer; ai_whisperer.AsyncAgentSessionManager; print(gc.isenabled()); gc.disable()"
    told += "; ai_whisperer.Client; print(gc.isenabled())"
    ended = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "False"], "and stays off for who has switched it off"
