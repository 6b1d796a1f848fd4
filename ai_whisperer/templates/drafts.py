"""A template as one file says it, before what it extends is added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.definitions import MERGED_FIELDS, merged, with_access
from ai_whisperer.core.fields import Complain, Place, check_fields, unknown_field
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.templates.front_matter import Fields, FrontMatter, fault, read_fields

_LISTS = ("tools", "aliases", "subscribes", "network", "approve")
_NOT_INHERITED = ("name", "aliases")
_IGNORED = ("color",)
_OWN_FIELDS = ("name", "display_name", "extends", *_IGNORED)
_KNOWN = (*_OWN_FIELDS, *(field for field in AgentDefinition.__struct_fields__ if field != "name"))

Spot = tuple[str, int]
"""A file and a line in it."""


class Draft(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The fields that a file states, those of `AgentDefinition`, each with the spot where it does.

    A file that `is_outside` was written for Claude Code.
    """

    name: str
    source: str
    fields: Mapping[str, Any]
    spots: Mapping[Place, Spot]
    extends: str | None = None
    outside_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    ignored_fields: tuple[str, ...] = ()
    is_outside: bool = False

    def spot(self, place: Place) -> Spot:
        """Where that is stated, or else what it is a part of; the first field of the file if it is not."""
        for length in range(len(place), 0, -1):
            if place[:length] in self.spots:
                return self.spots[place[:length]]
        return (self.source, 2)


def draft_of(parts: FrontMatter, source: str) -> Draft:
    """Read a template of this product; raises `TemplateError` that names the line."""
    given = _with_lists(read_fields(parts.header, source))

    def complain(place: Place, complaint: str) -> NoReturn:
        known = (place[:length] for length in range(len(place), 0, -1) if place[:length] in given.lines)
        raise fault(source, given.lines.get(next(known, ()), 2), complaint)

    for key in given.values:
        if key not in _KNOWN:
            complain((key,), unknown_field((key,), _KNOWN))
    fields = {key: value for key, value in given.values.items() if key not in _OWN_FIELDS}
    if fields.get("tools", ()) is None:
        complain(("tools",), "`tools` is empty. Leave the line out to grant all tools, or write [] to grant none.")
    check_fields(fields, AgentDefinition, complain=complain)
    if parts.body and "prompt" in fields:
        complain(("prompt",), "the prompt is there twice: in this field and below the fields. Remove one of them.")
    if parts.body:
        fields["prompt"] = parts.body
    if "display_name" in given.values:
        fields["name"] = _text("display_name", given, complain)
    return Draft(
        name=_checked_name(given, complain),
        source=source,
        fields=fields,
        spots={place: (source, line) for place, line in given.lines.items()},
        extends=_text("extends", given, complain) if "extends" in given.values else None,
        ignored_fields=tuple(key for key in _IGNORED if key in given.values),
    )


def _checked_name(given: Fields, complain: Complain) -> str:
    if "name" not in given.values:
        complain(("name",), "a template needs a name.")
    name = _text("name", given, complain)
    try:
        check_agent_id(name)
    except InvalidInputError as error:
        complain(("name",), error.message)
    return name


def _text(key: str, given: Fields, complain: Complain) -> str:
    value = given.values[key]
    if not isinstance(value, str) or not value.strip():
        complain((key,), f"`{key}` must be text, not {'empty' if value in (None, '') else repr(value)}.")
    return value.strip()


def extended(parent: Draft, child: Draft) -> Draft:
    """The child with what it does not say itself taken from the parent; the prompts follow each other."""
    inherited = {key: value for key, value in parent.fields.items() if key not in _NOT_INHERITED}
    fields = merged(inherited, child.fields)
    prompts = [each.fields["prompt"] for each in (parent, child) if "prompt" in each.fields]
    if prompts:
        fields["prompt"] = "\n\n".join(prompts)
    replaced = {key for key in child.fields if key not in MERGED_FIELDS}
    spots = {place: spot for place, spot in parent.spots.items() if not place or place[0] not in replaced}
    grants = child if "tools" in child.fields or child.outside_tools is not None else parent
    return msgspec.structs.replace(
        child,
        fields=fields,
        spots={**spots, **child.spots},
        outside_tools=grants.outside_tools,
        denied_tools=grants.denied_tools,
        ignored_fields=tuple(dict.fromkeys((*child.ignored_fields, *parent.ignored_fields))),
    )


def listed(text: str) -> list[str]:
    """The parts of a text between commas, apart from commas in parentheses: `Read, Bash(git add, git rm)`."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _lines_by_text(key: str, items: list[Any], lines: Mapping[Place, int]) -> dict[Place, int]:
    """The lines of the texts in a list, as those of fields of these names."""
    named = [(at, each) for at, each in enumerate(items) if isinstance(each, str)]
    return {(key, each): lines[key, at] for at, each in named if (key, at) in lines}


def _with_lists(given: Fields) -> Fields:
    """The fields that are lists, as lists: a text with commas, a single schedule."""
    values, lines = dict(given.values), given.lines
    for key in _LISTS:
        if isinstance(values.get(key), str):
            values[key] = listed(values[key])
    folders = values.get("folders")
    if isinstance(folders, list):
        lines = {**lines, **_lines_by_text("folders", folders, lines)}
    values = dict(with_access(values))
    if isinstance(values.get("schedule"), dict):
        values["schedule"] = [values["schedule"]]
        heading = lines["schedule",]
        lines = {_first_of_schedule(place): line for place, line in lines.items()}
        lines["schedule",] = heading
    return Fields(values=values, lines=lines)


def _first_of_schedule(place: Place) -> Place:
    return ("schedule", 0, *place[1:]) if place[:1] == ("schedule",) else place
