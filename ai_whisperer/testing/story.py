"""What a team did, in words, for the report of a test that failed."""

from __future__ import annotations

from datetime import UTC, datetime

from ai_whisperer.core.telling import told
from ai_whisperer.domain.notification import Notification
from ai_whisperer.testing.team import Team

_WIDTH = 160


def story_of(team: Team, *, most: int) -> str:
    """The last events of the log, one in a line; empty if nothing can be told any more."""
    notes = team.last_notes()
    lines = [line for line in map(_line_of, notes) if line]
    left_out = len(lines) - most
    beginning = [f"… {left_out} before"] if left_out > 0 else []
    unused = [f"{agent} was never asked for {count} of its answers" for agent, count in team.unused_words.items()]
    return "\n".join([*beginning, *lines[-most:], *unused, f"seed {team.seed}"])


def _line_of(note: Notification) -> str | None:
    words = told(note.name, note.params)
    if words is None:
        return None
    at = datetime.fromtimestamp(note.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    line = f"{at} {' '.join(words)}".replace("\n", " ")
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
