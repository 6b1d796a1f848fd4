"""Real nodes: `whisperer serve` processes on one PostgreSQL database, and what must be true of what they did."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ai_whisperer.client import Client
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import ConnectionLostError, SessionElsewhereError, StoreError
from tests.acceptance.command_stage import Process, running
from tests.postgresql import Server

TOKEN = "a-token-of-the-tests"  # noqa: S105
PATIENCE_SECONDS = 60.0
STEPS = 6
RULES = f"""
rules:
  - {{prompt_match: work, turn: {STEPS}, text: done}}
  - {{prompt_match: work, latency_seconds: 0.15, tools: [
      {{name: send_mail, arguments: {{to_agent: user, subject: "a step of {{prompt}}", body: "."}}}}]}}
  - {{prompt_match: slowly, turn: 0, latency_seconds: 0.6, text: done}}
  - {{text: done}}
"""
"""Each task that is to work sends so many mails to the person, one a step."""


class Node:
    """One node, and how it is reached."""

    def __init__(self, name: str, process: Process, url: str) -> None:
        self.name = name
        self.process = process
        self.url = url

    def client(self, session_id: str = "default") -> Client:
        return Client(self.url, TOKEN, session_id=session_id, reconnect_seconds=0)

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)
        self.process.process.wait()

    def freeze(self) -> None:
        self.process.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.signal(signal.SIGCONT)


@contextmanager
def nodes(
    database: str,
    folder: Path,
    *names: str,
    rules: str = RULES,
    tags: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[list[Node]]:
    """So many nodes that have joined, some with tags; their model answers by these rules."""
    file = folder / "rules.yaml"
    file.write_text(rules, encoding="utf-8")
    with ExitStack() as stack:
        flags = ("--port", "0", "--store", database, "--token", TOKEN, "--model", f"scripted:{file}", "--json")
        begun = []
        for name in names:
            (folder / name).mkdir(exist_ok=True)
            own = ["--data", str(folder / name), "--node", name, "--shutdown-grace-seconds", "5"]
            own += [flag for tag in (tags or {}).get(name, ()) for flag in ("--tags", tag)]
            begun.append(stack.enter_context(running("serve", *flags, *own, folder=folder / name)))
        found = []
        for name, process in zip(names, begun, strict=True):
            line = process.line()
            assert line, process.errors
            found.append(Node(name, process, json.loads(line)["url"]))
        yield found


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """What it finds, once it finds something. A node that has nothing, or is gone, is asked again."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                found = await look()
            except (SessionElsewhereError, ConnectionLostError, StoreError):
                found = None
            if found:
                return found
            await asyncio.sleep(0.05)


async def set_to_work(node: Node, session_id: str, *, tasks: int = 2) -> None:
    """Make a session with an agent that has something to do."""
    async with node.client(session_id) as client:
        await client.create_session(session_id)
        await client.create_agent("ann")
        for number in range(tasks):
            await client.send_task("ann", f"work {number}", task_id=f"t{number}")


def lost_and_repeated(found: Evidence, *, tasks: int = 2) -> tuple[int, int]:
    """How many tasks and mails that they were to send are missing, and how many mails are there more than once."""
    differences = [found.mails[f"a step of work {number}"] - STEPS for number in range(tasks)]
    missing = tasks - sum(state == TaskState.COMPLETED for state in found.states.values())
    return missing + sum(max(-each, 0) for each in differences), sum(max(each, 0) for each in differences)


class Evidence(NamedTuple):
    """What is in the database of a session."""

    states: dict[str, str]
    mails: Counter[str]
    log: list[tuple[int, int]]
    holder: str | None

    @property
    def is_over(self) -> bool:
        return all(TaskState(state).ended for state in self.states.values())

    def check(self, *, tasks: int = 2) -> None:
        """Nothing is lost, nothing was done twice, and no stale writer wrote."""
        assert self.states == {f"t{number}": TaskState.COMPLETED for number in range(tasks)}
        assert self.mails == {f"a step of work {number}": STEPS for number in range(tasks)}
        assert [seq for seq, _ in self.log] == list(range(1, len(self.log) + 1)), "the log has a gap"
        epochs = [epoch for _, epoch in self.log]
        assert epochs == sorted(epochs), "a stale writer wrote"


async def evidence(server: Server, database: str, session_id: str) -> Evidence:
    async def rows(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await server._run(sql, database.rpartition("/")[2])]

    where = f"WHERE session_id='{session_id}'"
    holders = await rows(
        f"SELECT host.name FROM whisperer.placement JOIN whisperer.host ON host.id=writer_id {where}"  # noqa: S608
    )
    return Evidence(
        states=dict(await rows(f"SELECT id, state FROM whisperer.task {where}")),  # noqa: S608
        mails=Counter(subject for (subject,) in await rows(f"SELECT subject FROM whisperer.mail {where}")),  # noqa: S608
        log=await rows(f"SELECT seq, epoch FROM whisperer.notification {where} ORDER BY seq"),  # noqa: S608
        holder=holders[0][0] if holders else None,
    )
