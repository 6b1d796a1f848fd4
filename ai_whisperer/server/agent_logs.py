"""Per-agent logs: one file for each agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer.records import Notification

LOGS_FOLDER = "logs"


class LogPage(msgspec.Struct, frozen=True):
    entries: list[dict[str, Any]]
    next: int


class AgentLogs:
    def __init__(self, folder: Path, *, max_bytes: int, backups: int, level: str) -> None:
        self._folder = folder

    def write(self, notes: Sequence[Notification]) -> None:
        pass

    def close(self) -> None:
        pass


def read_log(folder: Path, session_id: str, agent_id: str, *, after: int | None, limit: int) -> LogPage:
    raise NotImplementedError
