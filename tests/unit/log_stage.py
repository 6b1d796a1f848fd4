"""Notifications to be logged, and what a log then has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from ai_whisperer.domain.notification import Notification
from ai_whisperer.server.agent_logs import AgentLogs

_numbers = count(1)


def note(
    name: str, *, session: str = "s", at: float = 1_700_000_000.25, seq: int | None = None, **params: Any
) -> Notification:
    number = next(_numbers) if seq is None else seq
    return Notification(seq=number, session_id=session, name=name, cause="task:t", at=at, params=params)


def of_agent(agent: str = "ada", name: str = "async.task.started", **more: Any) -> Notification:
    return note(name, **{"agentId": agent, **more})


@contextmanager
def logs_in(data: Path, **settings: Any) -> Iterator[AgentLogs]:
    logs = AgentLogs(data, **settings)
    try:
        yield logs
    finally:
        logs.close()


def log(data: Path, notes: Sequence[Notification], **settings: Any) -> None:
    with logs_in(data, **settings) as logs:
        logs.write(notes)


def lines_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
