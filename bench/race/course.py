"""The course that every entrant runs: the work itself, the fake model's plan, and what is measured.

An entrant is a script that is run by the Python of its own environment, so that nothing may be imported here that is
not in the standard library:

    python -m bench.race.peer_NAME WORKLOAD SIZE FOLDER [PIPE]

It prints one line of JSON: seconds, processor seconds, memory, how much was done, and how many model requests and tool
calls were really made, which tells lost and repeated work.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.probe import Stopwatch
from bench.witness import Teller

WORKLOADS = (
    "messages-memory",
    "messages-durable",
    "bare-memory",
    "bare-durable",
    "tasks-memory",
    "tasks-durable",
    "agents-made",
    "agents-used",
    "restart-begin",
    "restart-again",
)
LATENCY_SECONDS = 0.05
TOOL_CALLS = 2
STEPS = 2 * TOOL_CALLS + 1
IDEAL_SECONDS = (TOOL_CALLS + 1) * LATENCY_SECONDS
WARM_UP_TASKS = 20
PAIRS = 100
"""Pairs of agents that pass messages to each other at the same time."""
BODY = "The build of the second module is green. Take the next one from the list and say when it is done. " * 2
USED_PROMPT = "first Say that it is done."
FINAL = "Both facts are known."

_TOOL_NAMES = ("read_page", "write_page", "find_page", "list_pages", "drop_page")
_BYTES_IN_PAGE = os.sysconf("SC_PAGE_SIZE")

Tool = Callable[..., Awaitable[str]]


class Course:
    """One workload of one entrant: its size, its folder, and the meters."""

    def __init__(self, workload: str, size: int, folder: Path, *, pipe: int | None = None) -> None:
        self.size = size
        self.folder = folder
        kind, _, how = workload.partition("-")
        self.bare = kind == "bare"
        """Messages go from handler to handler, and no model is asked with them."""
        self.used = how == "used"
        """Each agent does one task once it is made."""
        self.durable = how in ("durable", "begin", "again")
        self.fresh = how != "again"
        self._at_once = kind in ("messages", "agents")
        self.hops = size // PAIRS
        self._teller = None if pipe is None else Teller(pipe)
        self._asked = self._called = 0
        self._result: dict[str, float] = {}

    @property
    def tasks(self) -> list[str]:
        return [f"task-{number}" for number in range(self.size)]

    @property
    def warm_up(self) -> list[str]:
        """Tasks that are done before the measured ones."""
        return [f"warm-{number}" for number in range(min(WARM_UP_TASKS, self.size))]

    async def next_fact(self, prompt: str, called: int) -> str | None:
        """The fake model: what to look up next for the task that the prompt begins with, or None if all is known.

        It takes 50 ms, or tells a witness of itself and takes 25 to 75 ms. Where messages or agents are counted it
        answers at once that all is known.
        """
        self._asked += 1
        if self._at_once:
            return None
        task = prompt.split()[0]
        if self._teller is None:
            await asyncio.sleep(LATENCY_SECONDS)
        else:
            self._tell_processor_time()
            await self._teller.ask(f"{task}.{2 * called}")
        return f"{task}.{2 * called + 1}" if called < TOOL_CALLS else None

    async def look_up(self, fact: str) -> str:
        """The trivial tool: what it is given says of which task and step it is."""
        self._called += 1
        if self._teller is not None:
            self._tell_processor_time()
            await self._teller.look_up(fact)
        return f"fact {fact}"

    def _tell_processor_time(self) -> None:
        """What the process has taken until its first step, with all imports."""
        if self._asked + self._called == 1:
            self.tell("processor", f"{time.process_time():.6f}")

    def asked(self) -> None:
        """Count a request to a fake model that answers at once."""
        self._asked += 1

    def tell(self, what: str, key: str = "-") -> None:
        """Tell the witness, if there is one, that the data is being opened or a task was accepted."""
        if self._teller is not None:
            self._teller.tell(what, key)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """The part that counts; what comes before is warm-up."""
        gc.collect()
        resident = _resident_bytes()
        self._asked = self._called = 0
        watch = Stopwatch()
        yield
        wall, cpu = watch.read()
        gc.collect()
        self._result = {
            "wall_seconds": wall,
            "cpu_seconds": cpu,
            "grown_kb": (_resident_bytes() - resident) / 1024,
            "model_calls": self._asked,
            "tool_calls": self._called,
        }

    def result(self, done: int) -> dict[str, float]:
        """What the entrant prints."""
        return {**self._result, "done": done, "peak_kb": _peak_kb()}


Workload = Callable[[Course], Awaitable[int]]
"""Runs the course and returns how much was done: messages, tasks or agents."""


def prompt_of(task: str) -> str:
    return f"{task} Look up both facts and say what they are."


def tools_of(number: int) -> list[Tool]:
    """Five functions of one agent, each a closure of its own."""

    def make(name: str) -> Tool:
        async def page_tool(page: str, lines: int = 10) -> str:
            """Work on a page of the handbook."""
            return f"{name} of agent {number}: {page}, {lines} lines"

        page_tool.__name__ = page_tool.__qualname__ = name
        return page_tool

    return [make(name) for name in _TOOL_NAMES]


def main(**workloads: Workload) -> None:
    """Run the workload that the command line names; the arguments are `messages`, `tasks`, `agents` and `restart`.

    `messages` is run for `bare` messages too.
    """
    name, size, folder, *pipe = sys.argv[1:]
    if name not in WORKLOADS:
        sys.exit(f"There is no workload {name!r}. There are: {', '.join(WORKLOADS)}.")
    course = Course(name, int(size), Path(folder), pipe=int(pipe[0]) if pipe else None)
    kind = name.partition("-")[0]
    done = asyncio.run(_awaited(workloads["messages" if kind == "bare" else kind], course))
    print(json.dumps(course.result(done)), flush=True)
    # What a framework keeps running in threads must not keep the process from its end.
    os._exit(0)


async def _awaited(workload: Workload, course: Course) -> int:
    return await workload(course)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _BYTES_IN_PAGE


def _peak_kb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0])
