"""A template as people are shown it: the definition that it gives an agent here, and what of its file means nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ai_whisperer.protocol.sessions import TemplateDetails
from ai_whisperer.runtime.agents.defining import ignored_in, with_grants
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import Tool


def details_of(
    template: Template, *, offered: Iterable[Tool], servers: Collection[str], claude_folder: str | None
) -> TemplateDetails:
    tools = tuple(offered)
    return TemplateDetails(
        name=template.name,
        source=template.source,
        definition=with_grants(template.definition, template, tools, servers, claude_folder),
        ignored=ignored_in(template, tools, servers),
    )
