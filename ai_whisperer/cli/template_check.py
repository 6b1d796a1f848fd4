"""What is wrong with the files of templates, and what of them means nothing here. No server is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import msgspec

from ai_whisperer.core.addresses import normalized
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import DefinitionError, WhispererError
from ai_whisperer.models.catalog import resolve
from ai_whisperer.models.names import SCRIPTED
from ai_whisperer.runtime.agents.defining import check_approve, ignored_in, with_grants
from ai_whisperer.runtime.agents.folders import check_working_folder
from ai_whisperer.templates.all_faults import all_faults
from ai_whisperer.templates.claude import OWN_NAMES
from ai_whisperer.templates.folders import TemplateKind
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.machine import MACHINE_TOOLS
from ai_whisperer.tools.mcp.names import server_of
from ai_whisperer.tools.registry import COORDINATION_TOOLS, NAMED_TOOLS, ToolRegistry
from ai_whisperer.tools.workplace import SHARED

NEEDS_CLAUDE_FOLDER = (
    "it has tools for files, and sees only a folder of its own: to let it work in the project, grant the folder and "
    'name it, in whisperer.toml: [folders] project = "." and claude_folder = "project".'
)


class Surroundings(NamedTuple):
    """What there is for agents: tools of the project, and the names of MCP servers and of folders.

    `claude_folder` is the folder that agents of files for Claude Code work in.
    """

    tools: Sequence[Tool]
    servers: Collection[str]
    folders: Collection[str]
    claude_folder: str | None


class CheckedTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A file: `problems` keep agents from being made of it, `notes` say what of it means nothing, or something else."""

    name: str
    kind: TemplateKind
    path: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def checked_templates(library: TemplateLibrary, around: Surroundings) -> list[CheckedTemplate]:
    """All files of the library in the order of its search path."""
    found = library.files()
    owners: dict[str, list[str]] = {}
    for each in found:
        if each.template is not None and not each.hidden_by:
            for name in dict.fromkeys(map(normalized, (each.entry.name, *_further_names(each.template)))):
                owners.setdefault(name, []).append(each.entry.name)
    return [
        CheckedTemplate(
            name=each.entry.name,
            kind=each.entry.kind,
            path=each.entry.path,
            problems=tuple(_problems(each.entry.error, each.entry.path, each.template, around)),
            notes=tuple(_notes(each.hidden_by, each.template, around, owners)),
        )
        for each in found
    ]


def _problems(error: str | None, path: str, template: Template | None, around: Surroundings) -> Iterator[str]:
    if error is not None:
        yield error
        yield from (each for each in _further_faults(path) if each != error)
    if template is None:
        return
    for model in template.definition.models:
        yield from _problems_of_rules(model)
    definition = with_grants(template.definition, template, around.tools, around.servers, around.claude_folder)
    registry = ToolRegistry(around.tools, granted=definition.tools)
    yield from _missing_tools(definition, registry, around)
    for name in definition.folders:
        if name != SHARED and name not in around.folders:
            yield f"folders: there is no folder '{name}'.{_nearest(name, (SHARED, *around.folders))}"
    try:
        check_working_folder(template.name, definition)
    except DefinitionError as complaint:
        yield f"working_folder: {complaint.message}"
    try:
        outside = tuple(name for name in definition.approve if server_of(name) is None)
        check_approve(template.name, msgspec.structs.replace(definition, approve=outside), registry)
    except DefinitionError as complaint:
        yield f"approve: {complaint.message}"


def _missing_tools(definition: AgentDefinition, registry: ToolRegistry, around: Surroundings) -> Iterator[str]:
    known = {*COORDINATION_TOOLS, *NAMED_TOOLS, *MACHINE_TOOLS, *(each.name for each in around.tools)}
    for name in registry.missing_from(definition.tools or ()):
        server = server_of(name)
        if server is None:
            yield f"tools: there is no tool '{name}'.{_nearest(name, known)}"
        elif server not in around.servers:
            yield f"tools: there is no MCP server '{server}' ({name}).{_nearest(server, around.servers)}"


def _problems_of_rules(model: str) -> Iterator[str]:
    """What is wrong with the file of rules that a scripted model plays."""
    if model.startswith(f"{SCRIPTED}:"):
        try:
            resolve(model)
        except WhispererError as complaint:
            yield f"model: {complaint.message}"


def _further_faults(path: str) -> list[str]:
    """All that is wrong in the file itself: reading it has ended at the first."""
    try:
        return all_faults(Path(path).read_text(encoding="utf-8"), source=path)
    except (OSError, UnicodeDecodeError):
        return []  # that is what the error says


def _notes(
    hidden_by: str, template: Template | None, around: Surroundings, owners: dict[str, list[str]]
) -> Iterator[str]:
    if hidden_by:
        yield f"not used: {hidden_by} has the same name and comes first."
    if template is None:
        return
    ignored = ignored_in(template, around.tools, around.servers)
    if ignored:
        names = (name.removeprefix("tools: ") for name in ignored if name.startswith("tools: "))
        hints = dict.fromkeys(_nearest(name, OWN_NAMES, cutoff=0.74) for name in names)  # WebSearch is no WebFetch
        yield f"means nothing here: {', '.join(ignored)}.{''.join(hints)}"
    if hidden_by:
        return
    if template.is_outside and around.claude_folder is None and reads_files(template, around):
        yield NEEDS_CLAUDE_FOLDER
    for name in _further_names(template):
        others = [other for other in owners.get(normalized(name), ()) if other != template.name]
        if others:
            yield f"the name '{name}' is also that of {' and '.join(others)}: only one agent can have it."


def reads_files(template: Template, around: Surroundings) -> bool:
    """Whether an agent of the template has tools for files or programs."""
    granted = with_grants(template.definition, template, around.tools, around.servers, None).tools
    return granted is not None and not MACHINE_TOOLS.keys().isdisjoint(granted)


def _further_names(template: Template) -> list[str]:
    return [name for name in (template.definition.name, *template.definition.aliases) if name]


def _nearest(name: str, known: Collection[str], *, cutoff: float = 0.6) -> str:
    near = get_close_matches(name, known, n=1, cutoff=cutoff)
    return f" Did you mean '{near[0]}'?" if near else ""
