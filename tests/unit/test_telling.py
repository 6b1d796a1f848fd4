"""What notifications say, in the words that stand beside their records; the page's tests tell the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import fields

from ai_whisperer.core.telling import told
from ai_whisperer.domain.limits import LIMIT_WORDS, EffectiveLimits, EffectiveSessionLimits
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.base import Told

TOLD: list[tuple[str, dict[str, Any], str | None]] = msgspec.json.decode(
    Path(__file__).with_name("told.json").read_bytes()
)


@pytest.mark.parametrize(("name", "params", "wanted"), TOLD)
def test_a_notification_is_told_as_on_the_page(name: str, params: dict[str, Any], wanted: str | None) -> None:
    words = told(name, params)
    assert (None if words is None else " ".join(words)) == wanted


def test_a_time_is_told_with_its_date() -> None:
    params = {"name": "disk", "holder": "ada", "expiresAt": 1_700_000_000.0}
    words = told("lock.acquired", params)
    assert words is not None
    assert re.fullmatch(r"has the lock disk until 2023-11-1\d \d\d:\d\d:\d\d", words[1])


def test_what_is_not_as_it_is_now_is_not_told() -> None:
    assert told("lock.acquired", {"name": "disk", "holder": "ada", "expiresAt": "soon"}) is None
    assert told("agent.taught_juggling", {"agentId": "ada"}) is None


@pytest.mark.parametrize("kind", NOTIFICATIONS.values(), ids=list(NOTIFICATIONS))
def test_words_tell_of_nothing_but_the_fields_of_their_record(kind: type[Told]) -> None:
    template = f"{kind.who} {kind.words}"
    paths = re.findall(r"\{@?([\w.]+)[:}]|[\[|]([\w.]+)(?:[=>]\w+)?\?", template)
    for path in ("".join(each) for each in paths):
        types: tuple[Any, ...] = (kind,)
        for key in path.split("."):
            known = {
                field.encode_name: field.type
                for each in types
                if hasattr(each, "__struct_fields__")
                for field in fields(each)
            }
            assert key in known, f"{path} of {kind.__name__}"
            types = get_args(known[key]) or (known[key],)


def test_every_limit_has_words() -> None:
    named = [name for members in LIMIT_WORDS.values() for name in members]
    assert sorted(named) == sorted((*EffectiveLimits.__struct_fields__, *EffectiveSessionLimits.__struct_fields__))
