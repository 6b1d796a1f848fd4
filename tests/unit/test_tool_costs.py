"""What the description of tools costs in each request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from ai_whisperer.core import marks
from ai_whisperer.domain.conversation import ToolSpec, UserTurn
from ai_whisperer.domain.definition import DEFAULT_PROMPT
from ai_whisperer.errors import ToolArgumentsError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.untrusted import RULE, SAID_RULE, system_of
from ai_whisperer.tools.brief_schema import brief
from ai_whisperer.tools.mail_tools import CheckMail
from ai_whisperer.tools.parameters import ArgumentsParser
from ai_whisperer.tools.registry import COORDINATION_TOOLS, ToolRegistry

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "local-models.md"
CHARACTERS_FOR_A_TOKEN = 4
"""For compact JSON of this kind. The vocabularies of GPT-2 and of Mistral's Tekken take 4.2 and 4.1 of them: 930 here
are about 885 and 900 there."""


def tokens(specs: Iterable[ToolSpec], *, messages: Iterable[str] = ()) -> int:
    """About how many tokens a request in the form of chat completions has."""
    told = [{"name": each.name, "description": each.description, "parameters": each.parameters} for each in specs]
    tools = [{"type": "function", "function": each} for each in told]
    said = [{"role": "system", "content": each} for each in messages]
    return len(json.dumps([*said, *tools], separators=(",", ":"))) // CHARACTERS_FOR_A_TOKEN


def test_a_task_of_one_line_with_the_default_tools_takes_few_tokens() -> None:
    request = ModelRequest(
        step_id="t/1",
        agent_id="ann",
        system=DEFAULT_PROMPT,
        turns=(UserTurn(text="Say hi."),),
        tools=ToolRegistry().specs,
    )
    assert len(request.tools) == len(COORDINATION_TOOLS)
    assert tokens(request.tools, messages=[system_of(request), "Say hi."]) < 930


def test_a_task_of_one_line_with_the_tools_for_mail_takes_very_few() -> None:
    registry = ToolRegistry(granted=("send_mail", "check_mail", "reply_mail"))
    assert tokens(registry.specs, messages=[DEFAULT_PROMPT, "Say hi."]) < 270


def test_the_rules_about_marks_are_short() -> None:
    assert (len(RULE) // CHARACTERS_FOR_A_TOKEN, len(SAID_RULE) // CHARACTERS_FOR_A_TOKEN) < (75, 40)
    for rule, mark in ((RULE, marks.untrusted("T", "x")), (SAID_RULE, marks.said("NAME", "x"))):
        for tag in re.findall(r"<[^>]*>", mark):
            assert re.sub(r'id="\d+"', 'id="N"', tag).replace('"T"', '"TOOL"') in rule


def test_the_guide_says_what_each_tool_costs() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|$", PAGE.read_text(), re.MULTILINE))
    assert listed == {name: str(tokens([each.spec])) for name, each in COORDINATION_TOOLS.items()}


def test_a_brief_schema_keeps_names_kinds_and_what_is_required() -> None:
    told = COORDINATION_TOOLS["send_mail_with_switch"].spec.parameters
    assert told == {
        "type": "object",
        "properties": {
            "to_agent": {"type": "string"},
            "subject": {"type": "string"},
            "body": {"type": "string"},
            "timeout_seconds": {"type": "number"},
        },
        "required": ["to_agent", "subject", "body"],
    }


def test_a_brief_schema_keeps_the_values_that_a_model_may_choose_from() -> None:
    told = COORDINATION_TOOLS["send_mail"].spec.parameters
    assert told["properties"]["priority"] == {"enum": ["high", "low", "normal", "urgent"]}


def test_a_brief_schema_keeps_a_choice_between_kinds() -> None:
    either = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}], "default": None}
    assert brief({"properties": {"at": either}})["properties"] == {
        "at": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}
    }


def test_what_a_brief_schema_does_not_say_still_holds() -> None:
    parser = ArgumentsParser(CheckMail)
    assert parser.parse('{"limit": 3}').limit == 3, "though nobody is told of it"
    for wrong in ('{"limit": 101}', '{"limit": 0}', '{"sender": "user"}'):
        with pytest.raises(ToolArgumentsError, match="do not fit"):
            parser.parse(wrong)
