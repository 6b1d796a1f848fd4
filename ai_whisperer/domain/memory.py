"""What agents keep in mind: files in a folder of their own folder, of which one is told to them as a task begins."""

from __future__ import annotations

from ai_whisperer.domain.record import Record

MEMORY = "memory"
"""The tool, and the folder that it works in."""

INDEX = "MEMORY.md"
"""The file that the agent is told when a task begins."""


class MemoryFile(Record, frozen=True, kw_only=True):
    """A file of an agent's memory; `path` is relative to the memory."""

    path: str
    size: int
    changed_at: float


class MemoryText(Record, frozen=True, kw_only=True):
    """A file of an agent's memory with its text. One that `is_cut` is longer."""

    path: str
    size: int
    changed_at: float
    text: str
    is_cut: bool = False
