"""Starts the worker, kills it, looks at what it left, starts it again, and collects what is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import msgspec

from .evidence import Evidence, Request, read_database, read_postgresql
from .invariants import always
from .outcome import in_the_end
from .worker import Order, Summary
from .workload import WORKLOADS
from .zygote import Start

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
    "PYTHONPATH": str(Path(__file__).parents[2]),
}
_LONGEST_START_SECONDS = 120.0
_AT_ONCE = 3
_MOST_FINDINGS = 200
_MOST_FINDINGS_TOLD = 20

Death = str | float
"""A point to die at, or the seconds after which the process is killed from outside."""


class Witness:
    """The witness process, and its log by run; beside it the process that starts workers."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "witness.log"
        self.zygote = folder / "zygote"
        self._processes: list[subprocess.Popen[str]] = []
        self._read_to = 0
        self._requests: dict[str, list[Request]] = {}
        self.model_url = ""
        self.effect_port = 0

    def __enter__(self) -> Witness:
        ports = json.loads(self._begin("tests.crash.witness", self._log))
        self.model_url, self.effect_port = ports["model_url"], ports["effect_port"]
        self._begin("tests.crash.zygote", self.zygote)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.communicate("", timeout=_LONGEST_START_SECONDS)

    def _begin(self, module: str, path: Path) -> str:
        """Start a process that runs until its input ends; returns the line that says that it is there."""
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_ENVIRONMENT,
            text=True,
        )
        self._processes.append(process)
        return process.stdout.readline() if process.stdout else ""

    def requests(self, run: str) -> list[Request]:
        """What has arrived from that run so far."""
        with self._log.open("rb") as log:
            log.seek(self._read_to)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read_to += len(line)
                entry = json.loads(line)
                if entry["event"] == "arrived":
                    request = Request(entry["key"].removesuffix(".summary"), entry.get("tool"), entry.get("label"))
                    self._requests.setdefault(entry["model"], []).append(request)
        return list(self._requests.get(run, ()))

    def forget(self, run: str) -> None:
        self._requests.pop(run, None)


class Run:
    """One session on one folder, from its first start to its end. `findings` says what is wrong with it."""

    def __init__(
        self,
        witness: Witness,
        folder: Path,
        *,
        workload: str = "team",
        planted_bug: str = "",
        provider: bool = False,
        set_aside: frozenset[str] = frozenset(),
        address: str = "",
    ) -> None:
        self._address = address
        self.name = folder.name
        self.deaths: list[Evidence] = []
        self.ended = False
        self.findings: list[str] = []
        self.summary: Summary | None = None
        self._witness = witness
        self._folder = folder
        self._workload = workload
        self._planted_bug = planted_bug
        self._provider = provider
        self._set_aside = set_aside
        self._tried: set[str] = set()
        self._acknowledged: set[str] = set()
        self.compactions = 0

    async def start(self, death: Death | None = None) -> None:
        """Start the worker; return when it has died or come to its end, and look at what it left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        reader, writer = await asyncio.open_unix_connection(self._witness.zygote)
        order = self._order(death if isinstance(death, str) else "")
        writer.write(msgspec.json.encode(Start(order=order, errors=str(self._folder / "stderr"))) + b"\n")
        worker = _Worker()
        try:
            async with asyncio.timeout(_LONGEST_START_SECONDS):
                await self._listen(reader, worker, death if isinstance(death, float) else None)
        except TimeoutError:
            self.findings.append(f"the worker did not come to its end in {_LONGEST_START_SECONDS:g} seconds")
            worker.kill()
            await self._listen(reader, worker, None)
        finally:
            worker.kill()
            writer.close()
        await self._look(worker.code)

    async def finish(self) -> None:
        """Start the worker once more and let it come to its end."""
        if not self.ended and not self.findings:
            await self.start()
        if not self.ended and not self.findings:
            self.findings.append("the worker died by itself")

    @property
    def told(self) -> str:
        """The findings, for a person to read."""
        return "\n".join(self.findings)

    def clear(self) -> None:
        """Forget the run; the folder is kept if something is wrong with it."""
        self._witness.forget(self.name)
        if not self.findings:
            shutil.rmtree(self._folder)

    async def _listen(self, lines: asyncio.StreamReader, worker: _Worker, kill_after: float | None) -> None:
        killing: asyncio.TimerHandle | None = None
        async for line in lines:
            word, _, rest = line.decode().strip().partition(" ")
            if word == "pid":
                worker.pid = int(rest)
            elif word == "up" and kill_after is not None:
                killing = asyncio.get_running_loop().call_later(kill_after, worker.kill)
            elif word == "tried":
                self._tried.add(rest)
            elif word == "acknowledged":
                self._acknowledged.add(rest)
            elif word.startswith("{"):
                self.summary = msgspec.json.decode(line, type=Summary)
            elif word == "ended":
                worker.code = int(rest)
                break
        if killing is not None:
            killing.cancel()

    def _order(self, die_at: str) -> Order:
        return Order(
            folder=str(self._folder / "data"),
            run=self.name,
            workload=self._workload,
            model_url=self._witness.model_url,
            effect_port=self._witness.effect_port,
            acknowledged=tuple(sorted(self._acknowledged)),
            die_at=die_at,
            planted_bug=self._planted_bug,
            provider=self._provider,
            address=self._address,
        )

    async def _look(self, code: int | None) -> None:
        folder = self._folder / "data"
        now = Evidence(
            database=await read_postgresql(self._address) if self._address else read_database(folder),
            tried=frozenset(self._tried),
            acknowledged=frozenset(self._acknowledged),
            requests=self._witness.requests(self.name),
        )
        self.compactions = sum(note.name == "context.compacted" for note in now.database.notes)
        workload = WORKLOADS[self._workload](self.name)
        self.findings.extend(always(now, self.deaths[-1] if self.deaths else None, workload))
        if code == 0 and self.summary is not None:
            self.ended = True
            self.findings.extend(
                in_the_end(self.deaths, now, workload, figures=self.summary.agents, set_aside=self._set_aside)
            )
        elif code == -signal.SIGKILL:
            self.deaths.append(now)
        else:
            said = (self._folder / "stderr").read_text("utf-8")[-3000:]
            self.findings.append(f"the worker ended with {code}: {said}")


class _Worker:
    """The process that is killed; its exit code is known when it has ended."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.code: int | None = None

    def kill(self) -> None:
        """Kill it, unless it has ended by itself."""
        if self.pid is not None and self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Campaign:
    """Many runs, some at the same time, and what came of them."""

    def __init__(
        self,
        witness: Witness,
        folder: Path,
        *,
        workload: str = "team",
        planted_bug: str = "",
        provider: bool = False,
        addresses: Iterable[str] = (),
    ) -> None:
        """`addresses` are those of databases in PostgreSQL, one for each run; without them runs are in folders."""
        self._addresses = iter(addresses)
        self.runs = 0
        self.deaths = 0
        self.findings: list[str] = []
        self._witness = witness
        self._folder = folder
        self._workload = workload
        self._planted_bug = planted_bug
        self._provider = provider

    def __str__(self) -> str:
        return f"{self.deaths} kills in {self.runs} runs, {len(self.findings)} things wrong"

    @property
    def told(self) -> str:
        """The first of the findings, for a person to read."""
        return "\n".join(self.findings[:_MOST_FINDINGS_TOLD])

    async def go(self, plans: Iterable[Sequence[Death]], *, until: str = "") -> None:
        """For each plan run a session that dies these deaths and is then left to finish.

        With `until` no further run begins once something is wrong that fits this pattern, without it once a great
        many things are.
        """
        numbered = enumerate(plans, 1)
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._go_on(numbered, until))

    async def _go_on(self, numbered: Iterator[tuple[int, Sequence[Death]]], until: str) -> None:
        for number, plan in numbered:
            name = f"{self._folder.name}-{number}"
            run = Run(
                self._witness,
                self._folder / name,
                workload=self._workload,
                planted_bug=self._planted_bug,
                provider=self._provider,
                address=next(self._addresses, ""),
            )
            for death in plan:
                if not (run.ended or run.findings):
                    await run.start(death)
            await run.finish()
            self.runs += 1
            self.deaths += len(run.deaths)
            self.findings.extend(f"{run.name} {list(plan)}: {finding}" for finding in run.findings)
            run.clear()
            if until and any(re.search(until, finding) for finding in self.findings):
                return
            if not until and len(self.findings) >= _MOST_FINDINGS:
                return
