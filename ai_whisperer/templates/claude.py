"""Files written for Claude Code's `.claude/agents/`: read by its rules, so that they load unchanged.

Its fields that mean something here are translated, the others are ignored. What it would accept is not refused. A tool
that means something here is granted by the name that it has there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.anthropic_access import KEY, anthropic_access
from ai_whisperer.core.text import mended
from ai_whisperer.domain.definition import INHERIT
from ai_whisperer.errors import InvalidInputError, TemplateError
from ai_whisperer.templates.drafts import Draft, listed
from ai_whisperer.templates.front_matter import Fields, FrontMatter, fault, read_fields

_USED = ("name", "description", "tools", "disallowedTools", "model", "maxTurns")
_KNOWN = (
    *_USED,
    "permissionMode",
    "mcpServers",
    "hooks",
    "skills",
    "memory",
    "background",
    "effort",
    "isolation",
    "color",
    "initialPrompt",
)
"""The fields of that format. Only they begin a field where a file is not YAML: all else is text that goes on."""

OWN_NAMES = {
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "MultiEdit": "edit_file",
    "LS": "list_directory",
    "Glob": "list_directory",
    "Grep": "search_files",
    "Bash": "run_command",
    "WebFetch": "fetch_url",
    "Task": "delegate_task",
    "Agent": "delegate_task",
}
"""The tools of that format, and what does the same here."""

_PREFIX = "anthropic:"
"""The provider of the models that such files name."""
_ALL_TOOLS = "*"
_STEPS_PER_TURN = 2
"""A turn there is an answer and its tool calls; a step here is an answer or a tool call."""


def claude_draft(parts: FrontMatter, source: str, *, file_name: str) -> Draft:
    """Read a file of that format; raises `TemplateError` only if no name can be made for it.

    A file without a name has that of the file.
    """
    given = _read(parts.header, source)
    values = given.values
    written = _text(values.get("name")) or file_name
    name = _agent_name(written) or _agent_name(file_name)
    if not name:
        line = given.lines.get(("name",), 2)
        raise fault(source, line, f"{written!r} has no letter or digit that could name an agent. Rename it.")
    fields: dict[str, Any] = {"model": _model(_text(values.get("model")))}
    if name != written:
        fields["name"] = written
    if description := _text(values.get("description")):
        fields["description"] = description
    if parts.body:
        fields["prompt"] = parts.body
    turns = values.get("maxTurns")
    if type(turns) is int and turns >= 1:
        fields["limits"] = {"max_steps_per_task": turns * _STEPS_PER_TURN}
    return Draft(
        name=name,
        source=source,
        fields=fields,
        spots={place: (source, line) for place, line in given.lines.items()},
        outside_tools=_outside_tools(values.get("tools")),
        denied_tools=tuple(_tool_names(values.get("disallowedTools"))),
        ignored_fields=(
            *(key for key in values if key not in _USED),
            *_short_model(_text(values.get("model"))),
            *_restricted(values.get("tools")),
        ),
        is_outside=True,
    )


def granted_names(outside_tools: Iterable[str]) -> set[str]:
    """The tools that are granted by these names, ours and theirs.

    `Bash(git add:*)` grants nothing: it would be more than was meant, since calls are not restricted here.
    """
    return {*outside_tools, *(OWN_NAMES[name] for name in outside_tools if name in OWN_NAMES)}


def denied_names(denied_tools: Iterable[str]) -> set[str]:
    """The tools that are denied by these names, ours and theirs. `Bash(rm:*)` denies the whole tool."""
    plain = {name.partition("(")[0].strip() for name in denied_tools}
    return {*denied_tools, *(OWN_NAMES[name] for name in plain if name in OWN_NAMES)}


def _restricted(tools: Any) -> Iterator[str]:
    """What is said of the tools that would be granted if they were not restricted to some calls."""
    for written in _tool_names(tools):
        name, parenthesis, _ = written.partition("(")
        if parenthesis and name.strip() in OWN_NAMES:
            yield f"tools: {written}"


def _read(header: str, source: str) -> Fields:
    """The fields as YAML or, since unquoted colons are common in these files and no YAML, line by line."""
    try:
        given = read_fields(header, source)
    except TemplateError:
        return _read_lines(header)
    return given if isinstance(given.values.get("description", ""), str) else _read_lines(header)


def _read_lines(header: str) -> Fields:
    """A line `key: text` with a known key begins a field; all other lines go on with the one before."""
    texts: dict[str, list[str]] = {}
    lines: dict[tuple[str | int, ...], int] = {}
    current: list[str] | None = None
    for number, line in enumerate(header.split("\n"), 2):
        key, colon, rest = line.partition(":")
        if colon and key in _KNOWN and key not in texts:
            current = texts[key] = [rest]
            lines[key,] = number
        elif current is not None:
            current.append(line)
    return Fields(values={key: _value(key, "\n".join(text)) for key, text in texts.items()}, lines=lines)


def _value(key: str, text: str) -> Any:
    """What a field says: as YAML if it is that by itself, else the text as it stands."""
    try:
        alone = read_fields(f"{key}:{text}", key).values
        if list(alone) == [key] and (key != "description" or isinstance(alone[key], str)):
            return alone[key]
    except TemplateError:
        pass
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, list | dict) else mended(str(value)).strip()


def _agent_name(written: str) -> str:
    """A name that an agent can have: `Code Reviewer` becomes `code-reviewer`."""
    try:
        check_agent_id(written)
    except InvalidInputError:
        plain = unicodedata.normalize("NFKD", written.casefold()).encode("ascii", errors="ignore").decode()
        return re.sub(r"[^a-z0-9_.]+", "-", plain).strip("-_.")[:100]
    return written


def _model(written: str) -> str:
    """A full id is a model of that provider; `sonnet`, `opus` and the like mean the session's own default here."""
    if written.startswith("claude-"):
        return f"{_PREFIX}{written}"
    return INHERIT


def _short_model(written: str) -> Iterator[str]:
    """What is said of a model that is not the one that the file names."""
    if written != INHERIT and _model(written) == INHERIT and written:
        yield f"model: {written}"


def unusable_model(model: str, environment: Mapping[str, str]) -> str | None:
    """Why a model that such a file names cannot be used here; None if it can, as far as that is known beforehand."""
    if not model.startswith(_PREFIX) or anthropic_access(environment) is not None:
        return None
    return f"{model.removeprefix(_PREFIX)} (the session's model is used: {KEY} is not set)"


def _outside_tools(value: Any) -> tuple[str, ...] | None:
    if value is None or value == "":
        return None
    names = tuple(_tool_names(value))
    return None if _ALL_TOOLS in names else names


def _tool_names(value: Any) -> list[str]:
    if isinstance(value, str):
        return listed(value)
    return [str(each) for each in value] if isinstance(value, list) else []
