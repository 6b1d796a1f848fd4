"""Notifications to be logged, and what a log then has."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from ai_whisperer.domain.notification import Notification

_numbers = count(1)


def note(
    name: str, *, session: str = "s", at: float = 1_700_000_000.25, seq: int | None = None, **params: Any
) -> Notification:
    number = next(_numbers) if seq is None else seq
    return Notification(seq=number, session_id=session, name=name, cause="task:t", at=at, params=params)


def of_agent(agent: str = "ada", name: str = "async.task.started", **more: Any) -> Notification:
    return note(name, **{"agentId": agent, **more})


def lines_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
