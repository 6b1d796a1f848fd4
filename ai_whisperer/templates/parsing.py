"""A template: what its file and the files that it extends say, as the definition of an agent."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ai_whisperer.core.definitions import definition_from
from ai_whisperer.core.fields import places_in
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import DefinitionError
from ai_whisperer.templates.drafts import Draft, draft_of, extended
from ai_whisperer.templates.front_matter import fault, split


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A template: its name, and the definition of the agents that are made of it.

    `source` is the file that it is from. The other fields are for files that were written for Claude Code:
    `outside_tools` are the tools that it grants (None: it does not say), `denied_tools` those that it denies, and
    `ignored_fields` the fields that mean nothing here, and grants for some calls of a tool only, which grant nothing;
    `is_outside` says that it is such a file.
    """

    name: str
    definition: AgentDefinition
    source: str = ""
    outside_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    ignored_fields: tuple[str, ...] = ()
    is_outside: bool = False


def parse_template(text: str, *, source: str = "template") -> Template:
    """Read a template's text; raises `TemplateError` that names the line.

    What a template extends stands in other files, so one that does is read by a `TemplateLibrary`.
    """
    draft = draft_of(split(text.replace("\r\n", "\n"), source), source)
    if draft.extends is not None:
        where, line = draft.spot(("extends",))
        raise fault(where, line, f"'{draft.name}' extends '{draft.extends}'. Read it with load_template or a library.")
    return template_of((draft,))


@lru_cache(maxsize=1024)
def template_of(chain: tuple[Draft, ...]) -> Template:
    """The template that the first draft is, which extends the second, which extends the third …

    Raises `TemplateError` that names the file and the line.
    """
    whole = chain[-1]
    for draft in reversed(chain[:-1]):
        whole = extended(whole, draft)
    try:
        definition = definition_from(whole.fields)
    except DefinitionError as error:
        complaint = error.message.partition(" Known fields:")[0]
        culprit = next((place for place in places_in(complaint) if place in whole.spots), ())
        raise fault(*whole.spot(culprit), error.message) from error
    return Template(
        name=whole.name,
        definition=definition,
        source=whole.source,
        outside_tools=whole.outside_tools,
        denied_tools=whole.denied_tools,
        ignored_fields=whole.ignored_fields,
        is_outside=whole.is_outside,
    )
