"""What a team did, in words, for the report of a test that failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from ai_whisperer.core.telling import told
from ai_whisperer.domain.notification import Notification
from ai_whisperer.secrets import redacted_data, redactor
from ai_whisperer.testing.reading import Call
from ai_whisperer.testing.team import Team

_WIDTH = 200
_LONGEST_VALUE = 60
_LONGEST_ARGUMENTS = 100


def story_of(team: Team, *, most: int) -> str:
    """The last events of the log, one in a line; empty if nothing can be told any more."""
    notes = team.last_notes()
    calls = {each.step_id: each for each in team.last_calls()}
    redact = redactor()
    lines = [line for note in notes if (line := _line_of(note, calls, redact))]
    left_out = len(lines) - most
    beginning = [f"… {left_out} before"] if left_out > 0 else []
    unused = [f"nobody asked for what {each.told()}" for each in team.left_words if not each.optional]
    return "\n".join([*beginning, *lines[-most:], *unused, f"seed {team.seed}"])


def _line_of(note: Notification, calls: Mapping[str, Call], redact: Callable[[str], str]) -> str | None:
    words = told(note.name, note.params)
    if words is None:
        return None
    who, what = words
    call = calls.get(str(note.params.get("stepId", "")))
    if call is not None and note.params.get("tool") == call.tool:
        what = what.replace(call.tool, f"{call.tool}({_arguments(call, redact)})", 1)
        if note.name == "step.finished" and call.failed:
            what += f": {_cut(redact(call.result), _LONGEST_VALUE)}"
    at = datetime.fromtimestamp(note.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return _cut(f"{at} {who} {what}".replace("\n", " "), _WIDTH)


def _arguments(call: Call, redact: Callable[[str], str]) -> str:
    """What it was called with, without secrets, and short."""
    arguments = redacted_data(call.arguments, redact)
    written = (
        f"{name}={_cut(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)}" for name, value in arguments.items()
    )
    return _cut(", ".join(written), _LONGEST_ARGUMENTS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
