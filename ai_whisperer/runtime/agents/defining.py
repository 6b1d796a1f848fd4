"""Which definition a new agent gets: what the caller gave, over the template that was named or is called like it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from ai_whisperer.core.addresses import AddressBook, normalized
from ai_whisperer.core.definitions import Config, definition_from, overridden
from ai_whisperer.domain.definition import INHERIT, Access, AgentDefinition
from ai_whisperer.errors import DefinitionError, InvalidInputError, ModelNameError
from ai_whisperer.models.catalog import NameCheck, out_of_reach
from ai_whisperer.templates.claude import OWN_NAMES, denied_names, granted_names
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.mcp.names import ALL_TOOLS, exposed_name, server_of, tool_of
from ai_whisperer.tools.registry import COORDINATION_TOOLS, ToolRegistry, machine_tools

_PLAIN = AgentDefinition()
"""Of which nothing is stated: one object for all such agents, as a template is for those that are made of it."""


def definition_for(
    agent_id: str,
    config: Config,
    template: str | Template | None,
    *,
    library: TemplateLibrary,
    book: AddressBook,
    offered: Iterable[Tool],
    servers: Collection[str] = (),
    claude_folder: str | None = None,
) -> AgentDefinition:
    """The definition of an agent that is made or defined anew; raises a `DefinitionError`, or `UnknownTemplateError`.

    A config without a template is the whole definition, and no file is looked at. `offered` are the tools that there
    are for the agent beside the coordination tools, `servers` the MCP servers, `claude_folder` the folder that agents
    of files for Claude Code work in.
    """
    if template is None and config is not None:
        return definition_from(config)
    chosen = _chosen(agent_id, template, library)
    if chosen is None:
        return _PLAIN
    named = _with_free_names(agent_id, chosen, book)
    return overridden(with_grants(named, chosen, offered, servers, claude_folder), config)


def with_grants(
    definition: AgentDefinition,
    template: Template,
    offered: Iterable[Tool],
    servers: Collection[str],
    claude_folder: str | None,
) -> AgentDefinition:
    """The definition with the tools that the template grants and, if it is for Claude Code, the folder for such."""
    granted = replace(definition, tools=granted_by(template, offered, servers))
    if claude_folder is None or not template.is_outside:
        return granted
    return replace(granted, folders={claude_folder: Access.WRITE}, working_folder=claude_folder)


def check_model(definition: AgentDefinition, check: NameCheck | None) -> None:
    """Raise `DefinitionError` if the agent is to have a model that there is not: its first task would fail.

    Of several, one at least must be within reach as far as is known: those without a key are passed over.
    """
    if check is None:
        return
    several = not isinstance(definition.model, str)
    named = [(f"model[{number}]" if several else "model", name) for number, name in enumerate(definition.models)]
    for field, name in (*named, ("context.model", definition.context.model)):
        try:
            if name != INHERIT:  # that of the session was checked with it
                check(name)
        except ModelNameError as error:
            raise DefinitionError(f"{field}: {error.message}") from error
    lacking = models_out_of_reach(definition)
    if lacking and len(lacking) == len(definition.models):
        told = " ".join(f"{name}: {why}" for name, why in lacking.items())
        raise DefinitionError(f"model: none of them can be asked. {told}")


def models_out_of_reach(definition: AgentDefinition) -> Mapping[str, str]:
    """Those of several models that cannot be asked, each with what is missing."""
    if len(definition.models) == 1:
        return {}
    found = {name: out_of_reach(name, os.environ) for name in definition.models if name != INHERIT}
    return {name: why for name, why in found.items() if why is not None}


def check_approve(agent_id: str, definition: AgentDefinition, registry: ToolRegistry) -> None:
    """Raise `DefinitionError` if a name in `approve` is no tool of the agent: then nobody would be asked."""
    for name in definition.approve:
        if name.endswith("*"):
            continue
        _check_mcp_name(agent_id, name)
        found = registry.find(name)
        if isinstance(found, Tool):
            continue
        why = "which has no effects outside the session" if found is not None else "which the agent does not have"
        raise DefinitionError(
            f"'{agent_id}' is to ask a person about the tool '{name}', {why}. Correct approve, or leave the name out."
        )


def _check_mcp_name(agent_id: str, name: str) -> None:
    """Raise unless the name, if it is of an MCP server, is one by which models call a tool."""
    server = server_of(name)
    if server is None:
        return
    called = f"mcp__{server}__*" if tool_of(name) == "*" else exposed_name(server, tool_of(name))
    if called != name:
        raise DefinitionError(
            f"'{agent_id}' is to ask a person about '{name}', but models do not call a tool so. Write '{called}'."
        )


def _chosen(agent_id: str, template: str | Template | None, library: TemplateLibrary) -> Template | None:
    if template is None:
        return library.called(agent_id)
    if isinstance(template, Template):
        return template
    if not isinstance(template, str):
        raise InvalidInputError(f"Give a template's name or a Template, not {type(template).__name__}.")
    return library.get(template)


def _with_free_names(agent_id: str, template: Template, book: AddressBook) -> AgentDefinition:
    """The template's definition with the further names that the agent can have.

    A name means one agent only: only the agent that is called like the template gets its names, and of those only the
    ones that are not taken.
    """

    def is_taken(name: str) -> bool:
        return book.knows(name) and book.resolve(name) != agent_id

    definition = template.definition
    if normalized(agent_id) != normalized(template.name):
        return replace(definition, name="", aliases=())
    return replace(
        definition,
        name="" if is_taken(definition.name) else definition.name,
        aliases=tuple(alias for alias in definition.aliases if not is_taken(alias)),
    )


def granted_by(template: Template, offered: Iterable[Tool], servers: Collection[str]) -> tuple[str, ...] | None:
    """The tools that the template grants; None for all but those that reach the machine.

    Of a file for Claude Code all coordination tools, which it could not know of, and those of the tools that it grants
    which somebody has provided or which there are here: what it does not grant it does not get.
    """
    stated, denied = template.outside_tools, denied_names(template.denied_tools)
    names = [*COORDINATION_TOOLS, *(each.name for each in offered)]
    if stated is not None:
        granted = granted_names(stated).union(COORDINATION_TOOLS)
        names = [name for name in dict.fromkeys((*names, *machine_tools())) if name in granted]
        names += [name for name in stated if server_of(name) in servers and not _denies_of_server(name, denied)]
    elif denied.isdisjoint(names):
        return template.definition.tools
    return tuple(name for name in names if name not in denied)


def ignored_in(template: Template, offered: Iterable[Tool], servers: Collection[str]) -> tuple[str, ...]:
    """What the template's file says that means nothing here: fields, and tools that there are not."""
    known = {*OWN_NAMES, *COORDINATION_TOOLS, *machine_tools(), *(each.name for each in offered)}
    stated = template.outside_tools or ()
    missing = (f"tools: {name}" for name in stated if name not in known and server_of(name) not in servers)
    return tuple(dict.fromkeys((*template.ignored_fields, *missing)))


def _denies_of_server(grant: str, denied: Iterable[str]) -> bool:
    """Whether something that is denied is part of that grant of an MCP server, which then is more than was meant."""
    of_server = {tool_of(name) for name in denied if server_of(name) == server_of(grant)}
    return not of_server.isdisjoint((ALL_TOOLS, tool_of(grant))) or (tool_of(grant) == ALL_TOOLS and bool(of_server))
