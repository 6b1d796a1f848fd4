"""Recordings: any session becomes a test afterwards, since its database has all that came from outside.

`record` reads a store and makes a `Recording`, `write_recording` and `read_recording` are its file, `rerun` plays it on
virtual time with the recorded models and tools, and tells the first difference.
"""

from __future__ import annotations

from ai_whisperer.replay.recording.differences import Difference
from ai_whisperer.replay.recording.files import is_recording, read_recording, write_recording
from ai_whisperer.replay.recording.forking import calls_after, fork_points, needs_of, record_for_fork, write_fork
from ai_whisperer.replay.recording.format import Recording
from ai_whisperer.replay.recording.rerunning import UNPLAYED, Ignored, Rerun, replayed, rerun, updated
from ai_whisperer.replay.recording.rows import session_store
from ai_whisperer.replay.recording.side_by_side import compare, record_to_compare
from ai_whisperer.replay.recording.taking import Scrub, record

__all__ = [
    "UNPLAYED",
    "Difference",
    "Ignored",
    "Recording",
    "Rerun",
    "Scrub",
    "calls_after",
    "compare",
    "fork_points",
    "is_recording",
    "needs_of",
    "read_recording",
    "record",
    "record_for_fork",
    "record_to_compare",
    "replayed",
    "rerun",
    "session_store",
    "updated",
    "write_fork",
    "write_recording",
]
