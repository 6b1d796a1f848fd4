"""What is known from outside about a session: its database as a killed process left it, read from a copy."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from ai_whisperer.domain.notification import Notification
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.readers import notification_reader
from ai_whisperer.store.sqlite.opening import migrate
from ai_whisperer.store.tables import OF_A_SESSION, SESSION, SHAPE, Table

_DATABASE = "whisperer.db"
_UNTIL_NOBODY_IS_THERE = """
DO $$ BEGIN
  FOR look IN 1..3000 LOOP
    EXIT WHEN NOT EXISTS (SELECT 1 FROM pg_stat_activity
      WHERE application_name LIKE 'whisperer %' AND datname=current_database());
    PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
  END LOOP;
END $$"""


class Agent(NamedTuple):
    id: str
    state: str
    sleep_until: float | None
    is_asleep: bool


class Task(NamedTuple):
    id: str
    agent: str
    kind: str
    prompt: str
    state: str
    mail_id: str | None
    attempts: int
    tokens: int
    final: str | None


class Step(NamedTuple):
    task_id: str
    number: int
    kind: str
    state: str
    attempt: int
    tool: str | None
    label: str | None
    tokens: int
    content: str
    """The answer or the result as it stands there."""

    @property
    def id(self) -> str:
        return f"{self.task_id}.{self.number}"


class Mail(NamedTuple):
    id: str
    sender: str
    sequence: int
    recipient: str
    reply_to: str | None
    state: str
    task_id: str | None
    awaited: bool
    body: str


class Wait(NamedTuple):
    """A call that waits; its id is that of its step."""

    id: str
    kind: str
    task_id: str
    target: str


class Lock(NamedTuple):
    name: str
    token: int
    task_id: str | None


class Note(NamedTuple):
    """A notification; `about` is the id of what it tells of, `agent` whose it is."""

    seq: int
    name: str
    about: str
    agent: str | None


class Database(NamedTuple):
    """All that the database says."""

    integrity: str
    agents: dict[str, Agent]
    tasks: dict[str, Task]
    steps: dict[str, Step]
    mails: dict[str, Mail]
    timers: list[str]
    trials: list[str]
    waits: dict[str, Wait]
    locks: dict[str, Lock]
    notes: list[Note]


class Request(NamedTuple):
    """What arrived at the witness: a model request, or the effect of a tool."""

    key: str
    tool: str | None
    label: str | None


class Evidence(NamedTuple):
    """What is known at one moment at which no process runs."""

    database: Database
    tried: frozenset[str]
    acknowledged: frozenset[str]
    requests: list[Request]


NOTHING = Database(
    integrity="ok", agents={}, tasks={}, steps={}, mails={}, timers=[], trials=[], waits={}, locks={}, notes=[]
)


def read_database(folder: Path) -> Database:
    """Read a copy, so that the original stays as the dead process left it."""
    with tempfile.TemporaryDirectory() as copy:
        for name in (_DATABASE, f"{_DATABASE}-wal"):
            if (folder / name).exists():
                shutil.copy(folder / name, copy)
        path = Path(copy, _DATABASE)
        if not path.exists():
            return NOTHING
        connection = apsw.Connection(str(path))
        try:
            return _read(connection)
        finally:
            connection.close()


async def read_postgresql(address: str) -> Database:
    """Read a database as a killed process left it, once the server has seen that it is gone."""
    from ai_whisperer.store.postgresql.connecting import connect
    from ai_whisperer.store.postgresql.migrating import version_of
    from ai_whisperer.store.postgresql.queries import columns_of

    connection = await connect(address, name="evidence")
    try:
        await connection.execute(_UNTIL_NOBODY_IS_THERE)
        if not await version_of(connection, address):
            return NOTHING
        copy = apsw.Connection(":memory:")
        migrate(copy)
        kept: tuple[Table[Any], ...] = (SESSION, SHAPE, *OF_A_SESSION)
        for table in kept:
            for row in await connection.fetch(f'SELECT {columns_of(table)} FROM "{table.name}"'):  # noqa: S608
                places = ",".join("?" for _ in row)
                copy.execute(f"INSERT INTO {table.name} VALUES ({places})", tuple(row))  # noqa: S608
        found = _read(copy)
        epochs = [row[0] for row in await connection.fetch("SELECT epoch FROM notification ORDER BY seq")]
        return found if epochs == sorted(epochs) else found._replace(integrity="a former writer wrote to the log")
    finally:
        await connection.close()


def _read(connection: apsw.Connection) -> Database:
    def rows(sql: str) -> Iterable[Any]:
        return connection.execute(sql)

    integrity = "; ".join(str(row[0]) for row in rows("PRAGMA integrity_check"))
    if not list(rows("SELECT 1 FROM sqlite_schema WHERE name='notification'")):
        return NOTHING._replace(integrity=integrity)
    agents = [Agent(*row) for row in rows("SELECT id, state, sleep->>'until', sleep IS NOT NULL FROM agent")]
    tasks = [
        Task(*row)
        for row in rows(
            "SELECT id, agent_id, kind, prompt, state, mail_id, attempts, "
            "coalesce(usage->>'input_tokens', 0) + coalesce(usage->>'output_tokens', 0), result->>'final' FROM task"
        )
    ]
    steps = [
        Step._make((*row[:6], _label(row[6]), *row[7:]))
        for row in rows(
            "SELECT task_id, number, kind, state, attempt, call->>'name', call->>'arguments', "
            "coalesce(answer->>'$.usage.input_tokens', 0) + coalesce(answer->>'$.usage.output_tokens', 0), "
            "coalesce(answer, result, '') FROM step ORDER BY task_id, number"
        )
    ]
    mails = [
        Mail(*row)
        for row in rows(
            "SELECT id, sender, sequence, recipient, reply_to, state, task_id, awaited, body FROM mail "
            "ORDER BY sequence"
        )
    ]
    packing = Packing(map(SHAPE.read, rows("SELECT * FROM shape")))
    notes = [_note(row) for row in map(notification_reader(packing), rows("SELECT * FROM notification ORDER BY seq"))]
    waits = [Wait(*row) for row in rows("SELECT id, kind, task_id, target FROM wait")]
    locks = [Lock(*row) for row in rows("SELECT name, token, task_id FROM lock")]
    return Database(
        integrity=integrity,
        agents={agent.id: agent for agent in agents},
        tasks={task.id: task for task in tasks},
        steps={step.id: step for step in steps},
        mails={mail.id: mail for mail in mails},
        timers=[str(row[0]) for row in rows("SELECT agent_id FROM timer WHERE kind = 'wake'")],
        trials=[str(row[0]).removeprefix("trial:") for row in rows("SELECT id FROM timer WHERE kind = 'trial'")],
        waits={wait.id: wait for wait in waits},
        locks={lock.name: lock for lock in locks},
        notes=notes,
    )


def _note(told: Notification) -> Note:
    params = told.params
    keys = ("mailId",) if told.name == "mail.sent" else ("stepId", "taskId", "mailId", "agentId")
    about = next((params[key] for key in keys if params.get(key) is not None), "")
    return Note(told.seq, told.name, about, params.get("agentId"))


def _label(arguments: str | None) -> str | None:
    return json.loads(arguments).get("label") if arguments else None
