"""W13, PostgreSQL: what a durable commit costs beside the raw statement that writes the same rows.

A server is started for each probe, with its disk synced. A lone commit alternates with the raw statement, so that both
see the same moods of the disk. The raw side has the same parts and arrays, but no fence, no numbers, no merging.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notifications.base import Told
from ai_whisperer.domain.snapshot import Link, LinkKind
from ai_whisperer.store.base import Unit
from bench.growth_stored import SESSION, agent_of
from bench.probe import Probe, Sample, Samples, in_fresh_process, values_of
from bench.report import Figure, Target
from tests.postgresql import running_server

TITLE = "W13"
COMMITS = 300
SENDERS = 200
ROUNDS = 40
ROWS_IN_UNIT = 3
AGENTS = 10_000
MAILS = 500_000
"""In the session that is opened, each with a notification."""
_BODY = "word " * 40
_IN_UNIT = 500
_OPENINGS = 3

_T = TypeVar("_T")


class MailSeen(Told, frozen=True, kw_only=True):
    """What is told of a mail."""

    wire_name = "mail.sent"
    mail_id: str
    sender: str
    recipient: str
    subject: str


def probes(*, quick: bool) -> list[Probe]:
    part = 10 if quick else 1
    return [
        Probe("lone", in_fresh_process(lone, commits=COMMITS // part)),
        Probe("senders", in_fresh_process(senders, rounds=max(ROUNDS // part, 2))),
        Probe("opened", in_fresh_process(opened, agents=AGENTS // part, mails=MAILS // part)),
    ]


def figures(samples: Samples) -> list[Figure]:
    ours, raw = (values_of(samples, "lone", name) for name in ("ours", "raw"))
    rows, raw_rows = (values_of(samples, "senders", name) for name in ("ours", "raw"))
    return [
        Figure("lone durable commit, median", "ms", ours, raw=raw, target=Target(1.5, of="raw")),
        Figure("200 senders", "rows/s", rows, raw=raw_rows, target=Target(0.5, at_least=True, of="raw")),
        Figure("a session opened", "s", values_of(samples, "opened", "seconds"), target=Target(1.5)),
    ]


def unit_of(number: int) -> Unit:
    """A mail, who reached whom, and what is told of it."""
    unit, sender = Unit(), f"agent-{number % SENDERS}"
    mail = MailRecord(
        session_id="s",
        id=f"mail-{number:08}",
        thread_id=f"mail-{number:08}",
        sender=sender,
        sequence=number,
        recipient="alice",
        subject="Hello",
        body=_BODY,
        arrival=number,
        cause="user:user",
        created_at=float(number),
    )
    unit.insert_mail(mail)
    unit.put_link("s", Link(kind=LinkKind.MAIL, sender=sender, recipient="alice", count=number + 1, last_at=1.0))
    seen = MailSeen(mail_id=mail.id, sender=sender, recipient="alice", subject="Hello")
    unit.notes.append(Note("s", "user:user", float(number), seen))
    return unit


class Raw:
    """The same rows, by one prepared statement and nothing else."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._statement: Any = None
        self._parts: Any = ()
        self.seconds = 0.0

    async def write(self, numbers: range) -> None:
        from ai_whisperer.store.operations import INSERT_NOTIFICATION
        from ai_whisperer.store.postgresql.merging import merged
        from ai_whisperer.store.postgresql.statements import arrays_of, statement_of, with_epoch

        changes = [change for number in numbers for change in unit_of(number).changes]
        told = [(INSERT_NOTIFICATION, ("s", number + 1, 1.0, 1, _PACKED)) for number in numbers]
        (wave,) = merged([*changes, *told])
        wave = {
            (written := with_epoch(part)): rows if written is part else [(*row, 1) for row in rows]
            for part, rows in wave.items()
        }
        if self._statement is None:
            self._parts = tuple(wave)
            self._statement = await self._connection.prepare(statement_of(self._parts, holds=False))
        values = arrays_of(self._parts, wave)
        begun = time.perf_counter()
        await self._statement.fetchval(*values)
        self.seconds = time.perf_counter() - begun


_PACKED = b"\x96\xc0\xadmail-00000000\xa9agent-100\xa5alice\xa5Hello\xc0"


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[tuple[Any, Raw]]:
    """Our store, and the raw side on a database of its own on the same server."""
    from ai_whisperer.store.postgresql.connecting import connect
    from ai_whisperer.store.postgresql.store import PostgresqlStore

    async with AsyncExitStack() as stack:

        async def entered(context: AbstractContextManager[_T]) -> _T:
            stack.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
            return await asyncio.to_thread(context.__enter__)

        server = await entered(running_server(durable=True, folder=folder))
        ours, raw = [await entered(server.database()) for _ in range(2)]
        store = await PostgresqlStore.open(ours)
        stack.push_async_callback(store.close)
        connection = await connect(raw, name="raw", writes=True)
        stack.push_async_callback(connection.close)
        yield store, Raw(connection)


async def lone(folder: Path, *, commits: int) -> Sample:
    ours, raw = [], []
    async with both(folder) as (store, raw_side):
        for number in range(commits + 20):
            unit = unit_of(number)
            begun = time.perf_counter()
            await store.submit(unit)
            took = time.perf_counter() - begun
            await raw_side.write(range(number, number + 1))
            if number >= 20:
                ours.append(took)
                raw.append(raw_side.seconds)
    return {"ours": 1000 * sorted(ours)[len(ours) // 2], "raw": 1000 * sorted(raw)[len(raw) // 2]}


async def senders(folder: Path, *, rounds: int) -> Sample:
    async with both(folder) as (store, raw_side):

        async def send(sender: int, first: int, last: int) -> None:
            for each in range(first, last):
                await store.submit(unit_of(each * SENDERS + sender))

        await asyncio.gather(*(send(sender, 0, 3) for sender in range(SENDERS)))
        begun = time.perf_counter()
        await asyncio.gather(*(send(sender, 3, 3 + rounds) for sender in range(SENDERS)))
        ours = time.perf_counter() - begun
        raw = 0.0
        for each in range(rounds + 3):
            await raw_side.write(range(each * SENDERS, (each + 1) * SENDERS))
            raw += raw_side.seconds if each >= 3 else 0.0
    rows = rounds * SENDERS * ROWS_IN_UNIT
    return {"ours": rows / ours, "raw": rows / raw}


def opened(folder: Path, *, agents: int, mails: int) -> Sample:
    """The least of a few: a session with so many agents and so much that was said long ago."""
    with running_server(durable=True, folder=folder) as server, server.database() as address:
        asyncio.run(_fill(address, agents, mails))
        return {"seconds": min(asyncio.run(_opening(folder / "data", address)) for _ in range(_OPENINGS))}


async def _fill(address: str, agents: int, mails: int) -> None:
    from ai_whisperer.store.postgresql.store import PostgresqlStore

    store = await PostgresqlStore.open(address)
    for first in range(0, agents, _IN_UNIT):
        unit = Unit()
        for number in range(first, min(first + _IN_UNIT, agents)):
            unit.insert_agent(agent_of(number))
        await store.submit(unit)
    for first in range(0, mails, _IN_UNIT):
        unit = Unit()
        for number in range(first, min(first + _IN_UNIT, mails)):
            _store_mail(unit, number, recipient=f"agent-{number % agents}")
        await store.submit(unit)
    await store.close()


async def _opening(folder: Path, address: str) -> float:
    manager = AsyncAgentSessionManager(folder, store=address, model="scripted")
    begun = time.perf_counter()
    await manager.open()
    took = time.perf_counter() - begun
    await manager.close()
    return took


def _store_mail(unit: Unit, number: int, *, recipient: str) -> None:
    mail = MailRecord(
        session_id=SESSION,
        id=f"mail-{number:08}",
        thread_id=f"mail-{number:08}",
        sender=USER,
        sequence=number + 1,
        recipient=recipient,
        subject="Hello",
        body=_BODY,
        arrival=number + 1,
        cause="user:user",
        state=MailState.ARCHIVED,
        created_at=float(number),
    )
    unit.insert_mail(mail)
    seen = MailSeen(mail_id=mail.id, sender=USER, recipient=recipient, subject="Hello")
    unit.notes.append(Note(SESSION, "user:user", float(number), seen))
