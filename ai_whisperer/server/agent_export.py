"""The logs of all agents in one file as well, for those who set one: an entry a line, as JSON."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from ai_whisperer.runtime.api.agent_log import AGENTS
from ai_whisperer.server.log_file import LogFile
from ai_whisperer.settings import Settings

_log = logging.getLogger(__name__)


def export_agents(path: Path, settings: Settings) -> Callable[[], None]:
    """Write what agents do from now on to the file; returns what ends it."""
    file = LogFile(path, max_bytes=settings.log_max_bytes, backups=settings.log_backups, on_failure=_log.warning)
    file.setFormatter(_Entries())
    before = AGENTS.level
    AGENTS.setLevel(settings.log_level.upper())
    AGENTS.addHandler(file)

    def end() -> None:
        AGENTS.removeHandler(file)
        AGENTS.setLevel(before)
        file.close()

    return end


class _Entries(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return msgspec.json.encode(record.__dict__["entry"]).decode()
