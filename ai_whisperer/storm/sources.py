"""Which kind of file a team is in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ai_whisperer.errors import StormError
from ai_whisperer.replay.recording.files import is_recording
from ai_whisperer.storm.recorded import RecordedTeam
from ai_whisperer.storm.team import TeamSource
from ai_whisperer.storm.team_file import FileTeam


def team_in(path: Path, *, invariants: Iterable[Path] = ()) -> TeamSource:
    """The team in a conversation script, a Python file or a recording; raises `StormError`, or what these raise."""
    try:
        recorded = is_recording(path)
    except OSError as error:
        raise StormError(
            f"There is no team in {path}: {error.strerror}. Give a conversation script, a Python file that has one, "
            "or a recording."
        ) from error
    return (RecordedTeam if recorded else FileTeam)(path, invariants=tuple(invariants))
