"""The floor: what these workloads cost in plain asyncio with one group-commit SQLite writer, and nothing else.

No lifecycle, no mailbox rules, no notifications, no retries: about as little as durable work can cost in Python.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

_SCHEMA = """
CREATE TABLE IF NOT EXISTS agent (id TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task (id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, prompt TEXT NOT NULL, result TEXT);
CREATE TABLE IF NOT EXISTS step (task_id TEXT, number INTEGER, result TEXT NOT NULL, PRIMARY KEY (task_id, number))
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS mail (
  id TEXT PRIMARY KEY, session_id TEXT, thread_id TEXT, sender TEXT, sequence INTEGER, recipient TEXT, subject TEXT,
  body TEXT, arrival INTEGER, cause TEXT, priority TEXT, reply_to TEXT, state TEXT, task_id TEXT, created_at REAL,
  read_at REAL);
"""
INSERT_AGENT = "INSERT INTO agent VALUES (?,?)"
INSERT_TASK = "INSERT INTO task VALUES (?,?,?,NULL)"
INSERT_STEP = "INSERT INTO step VALUES (?,?,?)"
END_TASK = "UPDATE task SET result=? WHERE id=?"
INSERT_MAIL = "INSERT INTO mail VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"

Row = tuple[Any, ...]
Step = Callable[[str], Awaitable[str]]
"""A model request or a tool call: gets the id of the step, returns its result."""


def open_database(folder: Path) -> apsw.Connection:
    """A database that syncs every commit to disk."""
    connection = apsw.Connection(str(folder / "floor.db"))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(_SCHEMA)
    return connection


class GroupCommit:
    """Commits all rows that wait in one transaction; the commit and its sync run on another thread."""

    def __init__(self, folder: Path) -> None:
        self.connection = open_database(folder)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: list[tuple[str, Row, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None

    def write(self, sql: str, row: Row) -> asyncio.Future[None]:
        """The future is done when the row is on disk."""
        loop = asyncio.get_running_loop()
        durable = loop.create_future()
        self._waiting.append((sql, row, durable))
        if self._flusher is None:
            self._flusher = loop.create_task(self._flush())
        return durable

    async def _flush(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            self.connection.execute("BEGIN IMMEDIATE")
            for sql, row, _ in group:
                self.connection.execute(sql, row)
            commit = self._thread.submit(self.connection.execute, "COMMIT")
            await asyncio.wrap_future(commit)
            for _, _, durable in group:
                durable.set_result(None)
        self._flusher = None


@dataclass(slots=True)
class FloorAgent:
    id: str
    definition: str
    tools: tuple[Callable[..., Any], ...] = ()
    queue: list[str] = field(default_factory=list)


async def run_task(task_id: str, plan: Sequence[Step], journal: GroupCommit | None, *, done: int = 0) -> str:
    """Do the steps of a task from the first that is not done, each result on disk before the next step begins."""
    result = ""
    for number, step in enumerate(plan[done:], done + 1):
        result = await step(f"{task_id}.{number}")
        if journal is not None:
            await journal.write(INSERT_STEP, (task_id, number, result))
    if journal is not None:
        await journal.write(END_TASK, (result, task_id))
    return result
