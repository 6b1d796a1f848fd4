"""What must not be in a recording: secrets, and what whoever records it wants to leave out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ai_whisperer.replay.recording.asking import definition_digest, digest_of, told_tools
from ai_whisperer.replay.recording.format import Recording, Tool
from ai_whisperer.secrets import redacted_data, redactor

Scrub = Callable[[str], str]
"""Is given each text of a recording, and returns what is to be recorded. The same text must become the same."""

_T = TypeVar("_T", bound=msgspec.Struct)


def blotted(recording: Recording, scrub: Scrub | None = None) -> Recording:
    """The recording without secrets, and with what `scrub` makes of its texts. Arguments of calls are digests then."""
    clean = cleaner(scrub)
    tools = (replace(tool, approved=tuple(clean(each) for each in tool.approved)) for tool in recording.tools)
    results = (replace(each, arguments=clean(each.arguments)) for each in recording.results)
    return _without(digested(replace(recording, tools=tuple(tools), results=tuple(results))), clean)


def redacted_again(recording: Recording) -> Recording:
    """A recording whose arguments are digests already, without the secrets that came into it since it was made."""
    return _without(recording, cleaner())


def digested(recording: Recording) -> Recording:
    """The recording with digests of the arguments of calls, which is what is kept of them."""
    return replace(
        recording,
        tools=tuple(
            replace(tool, approved=tuple(sorted({digest_of(each) for each in tool.approved})))
            for tool in recording.tools
        ),
        results=tuple(replace(each, arguments=digest_of(each.arguments)) for each in recording.results),
    )


def cleaner(scrub: Scrub | None = None) -> Scrub:
    """What makes a text clean. In one that is JSON, values whose names say that they are secrets are hidden too."""
    redact = redactor()

    def hide(text: str) -> str:
        return redact(_hidden_by_name(text, hide))

    return hide if scrub is None else lambda text: scrub(hide(text))


def _hidden_by_name(text: str, hide: Scrub) -> str:
    """A text that is a JSON object or list, with its secrets hidden; every other text as it is."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        data = json.loads(text)
        hidden = redacted_data(data, hide)
    except (ValueError, RecursionError):
        return text
    return text if hidden == data else json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))


def _without(recording: Recording, clean: Scrub) -> Recording:
    def cleaned(line: _T, *fields: str) -> _T:
        changes = {}
        for field in fields:
            value = getattr(line, field)
            if value is None:
                continue
            plain = redacted_data(msgspec.to_builtins(value), clean)
            changes[field] = plain if isinstance(value, dict) else msgspec.convert(plain, type(value))
        return replace(line, **changes)

    agents = tuple(cleaned(agent, "definition") for agent in recording.agents)
    return replace(
        recording,
        agents=tuple(replace(agent, digest=definition_digest(agent.definition)) for agent in agents),
        tools=tuple(_told(cleaned(tool, "spec")) for tool in recording.tools),
        inputs=tuple(cleaned(each, "arguments") for each in recording.inputs),
        replies=tuple(cleaned(each, "answer", "error") for each in recording.replies),
        results=tuple(cleaned(each, "result") for each in recording.results),
        entries=tuple(cleaned(each, "params") for each in recording.entries),
    )


def _told(tool: Tool) -> Tool:
    return tool if tool.spec is None else replace(tool, digest=digest_of(told_tools((tool.spec,))))
