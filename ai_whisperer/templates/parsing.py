"""Reads a template: front matter between two lines `---`, then the system prompt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.definitions import definition_from
from ai_whisperer.definition import AgentDefinition
from ai_whisperer.errors import DefinitionError, InvalidInputError, TemplateError

_FENCE = "---"


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A template: the id that an agent made from it gets by default, and its definition."""

    name: str
    definition: AgentDefinition


def load_template(path: str | Path) -> Template:
    """Read a template file; raises `TemplateError` that names the file and the line."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"{path}: cannot be read as text ({error}). Check the path and the encoding.") from error
    return parse_template(text, source=str(path))


def parse_template(text: str, *, source: str = "template") -> Template:
    """Read a template's text; raises `TemplateError` that names the line."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE:
        raise TemplateError(f"{source}, line 1: a template begins with a line '---' and its fields after it.")
    try:
        end = next(number for number, line in enumerate(lines[1:], 1) if line.strip() == _FENCE)
    except StopIteration:
        raise TemplateError(
            f"{source}, line {len(lines)}: the second line '---', which ends the fields, is missing."
        ) from None
    header = lines[1:end]
    fields = _fields(header, source)
    body = "\n".join(lines[end + 1 :]).strip()
    if body:
        fields["prompt"] = body
    name = fields.pop("name", None)
    if not isinstance(name, str):
        raise TemplateError(f"{source}, line {_line_of('name', header)}: a template needs a name, as text.")
    try:
        check_agent_id(name)
    except InvalidInputError as error:
        raise TemplateError(f"{source}, line {_line_of('name', header)}: {error.message}") from error
    if isinstance(fields.get("tools"), str):
        fields["tools"] = [tool.strip() for tool in fields["tools"].split(",") if tool.strip()]
    try:
        return Template(name=name, definition=definition_from(fields))
    except DefinitionError as error:
        complaint = error.message.partition(" Known fields:")[0]
        culprit = next((key for key in fields if re.search(rf"\b{re.escape(key)}\b", complaint)), "")
        raise TemplateError(f"{source}, line {_line_of(culprit, header)}: {error.message}") from error


def _fields(header: list[str], source: str) -> dict[str, Any]:
    try:
        fields = yaml.safe_load("\n".join(header))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 2
        raise TemplateError(f"{source}, line {line}: {error.problem or 'not valid YAML'}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise TemplateError(f"{source}: the fields are not valid YAML ({error}).") from error
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise TemplateError(f"{source}, line 2: the fields must be lines like 'name: analyzer'.")
    return fields


def _line_of(key: str, header: list[str]) -> int:
    """The line of the file on which a field stands; the first line of the fields if it does not."""
    return next((number for number, line in enumerate(header, 2) if key and line.startswith(f"{key}:")), 2)
