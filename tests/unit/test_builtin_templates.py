from pathlib import Path

import pytest

from ai_whisperer.templates.library import library_of
from tests.unit.template_files import BUILTIN_NAMES


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_each_is_named_like_its_file_and_says_what_it_does(name: str) -> None:
    template = library_of([]).get(name)
    assert Path(template.source).name == f"{name}.md"
    assert 40 < len(template.definition.description) < 120
    assert 500 < len(template.definition.prompt) < 2500


def test_their_names_do_not_clash() -> None:
    definitions = [library_of([]).get(name).definition for name in BUILTIN_NAMES]
    names = [*BUILTIN_NAMES, *(alias for definition in definitions for alias in definition.aliases)]
    assert len(names) == len(set(names))
    assert {"debbie the debugger", "d", "a", "p", "t", "e"} < set(names)


def test_debbie_looks_at_the_others_every_thirty_minutes() -> None:
    (round_,) = library_of([]).get("debbie").definition.schedule
    assert round_.interval_seconds == 30 * 60
    assert round_.prompt is not None
    assert "status" in round_.prompt
