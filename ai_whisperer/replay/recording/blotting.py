"""What must not be in a recording: secrets, and what whoever records it wants to leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ai_whisperer.replay.recording.asking import definition_digest, digest_of
from ai_whisperer.replay.recording.format import Recording, Result
from ai_whisperer.secrets import redacted_data, redactor

Scrub = Callable[[str], str]
"""Is given each text of a recording, and returns what is to be recorded. The same text must become the same."""

_T = TypeVar("_T", bound=msgspec.Struct)


def blotted(recording: Recording, scrub: Scrub | None = None) -> Recording:
    """The recording without secrets, and with what `scrub` makes of its texts."""
    redact = redactor()

    def clean(text: str) -> str:
        text = redact(text)
        return text if scrub is None else scrub(text)

    def cleaned(line: _T, *fields: str) -> _T:
        if not fields:
            return line
        changes = {}
        for field in fields:
            value = getattr(line, field)
            if value is None:
                continue
            plain = _cleaned(msgspec.to_builtins(value), clean)
            changes[field] = plain if isinstance(value, str | dict) else msgspec.convert(plain, type(value))
        return replace(line, **changes)

    agents = tuple(cleaned(agent, "definition") for agent in recording.agents)
    return replace(
        recording,
        agents=tuple(replace(agent, digest=definition_digest(agent.definition)) for agent in agents),
        tools=tuple(
            replace(cleaned(tool, "spec"), approved=tuple(sorted({digest_of(clean(each)) for each in tool.approved})))
            for tool in recording.tools
        ),
        inputs=tuple(cleaned(each, "arguments") for each in recording.inputs),
        replies=tuple(cleaned(each, "answer", "error") for each in recording.replies),
        results=tuple(_result(each, cleaned(each, "arguments", "result")) for each in recording.results),
        entries=tuple(cleaned(each, "params") for each in recording.entries),
    )


def _cleaned(value: Any, clean: Scrub) -> Any:
    """Texts of data, and those whose names say that they are secrets."""
    return redacted_data(value, clean)


def _result(before: Result, after: Result) -> Result:
    """The arguments become their digest only now: a call of the run has what was blotted out of its answer too."""
    del before
    return replace(after, arguments=digest_of(after.arguments))
