"""The course that every entrant runs: the work itself, the fake model's plan, and what is measured.

An entrant is a script that is run by the Python of its own environment, so that nothing may be imported here that is
not in the standard library:

    python -m bench.race.peer_NAME WORKLOAD SIZE FOLDER [PIPE]

The script says how something is made and how it is done; in which order, what is warm-up and what is measured is
decided here, the same for all. It prints one line of JSON: seconds, processor seconds, memory, how much was done, and
how many model requests and tool calls were really made, which tells lost and repeated work.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

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
WARM_UP = 20
"""So many tasks, or pairs of agents, are run before those that are measured."""
PAIRS = 100
"""Pairs of agents that pass messages to each other at the same time."""
BODY = "The build of the second module is green. Take the next one from the list and say when it is done. " * 2
USED_PROMPT = "first Say that it is done."
FINAL = "Both facts are known."

_TOOL_NAMES = ("read_page", "write_page", "find_page", "list_pages", "drop_page")
_AT_ONCE = 20
_BYTES_IN_PAGE = os.sysconf("SC_PAGE_SIZE")

Tool = Callable[..., Awaitable[str]]
Doing = Callable[[], Awaitable[int]]
"""Does what was made for it and returns how much was done: messages, or 1 for a task that ended as it should."""


class Course:
    """One workload of one entrant: its size, its folder, and the meters."""

    def __init__(self, workload: str, size: int, folder: Path, *, pipe: int | None = None) -> None:
        self.workload = workload
        self.size = size
        self.folder = folder
        kind, _, how = workload.partition("-")
        self.bare = kind == "bare"
        """Messages go from handler to handler, and no model is asked with them."""
        self.durable = how in ("durable", "begin", "again")
        self.fresh = how != "again"
        self.looks_up = kind in ("tasks", "restart")
        """The agents have the tool that looks facts up."""
        self.passes_messages = kind in ("messages", "bare")
        self._at_once = not self.looks_up
        self.hops = size // PAIRS
        self._teller = None if pipe is None else Teller(pipe)
        self._asked = self._called = 0
        self._result: dict[str, float] = {}

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
        """Tell the witness, if there is one."""
        if self._teller is not None:
            self._teller.tell(what, key)

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        """The part that counts; what comes before is warm-up."""
        await self._let_go()
        resident = _resident_bytes()
        self._asked = self._called = 0
        watch = Stopwatch()
        yield
        wall, cpu = watch.read()
        await self._let_go()
        self._result = {
            "wall_seconds": wall,
            "cpu_seconds": cpu,
            "grown_kb": (_resident_bytes() - resident) / 1024,
            "model_calls": self._asked,
            "tool_calls": self._called,
        }

    async def _let_go(self) -> None:
        """Free what nobody needs: until its next turn the event loop itself holds the asyncio tasks that have ended."""
        await asyncio.sleep(0)
        gc.collect()

    def result(self, done: int) -> dict[str, float]:
        """What the entrant prints."""
        return {**self._result, "done": done, "peak_kb": _peak_kb()}


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


class Script:
    """How an entrant does the work; each method is that of its documentation.

    What `make_pair` and `make_worker` return is measured, they themselves are not: agents, tools, models, runners,
    sessions, graphs and connections are made in them.
    """

    def __init__(self, course: Course) -> None:
        self.course = course

    async def open(self) -> None:
        """Open what all agents share, such as the database."""

    async def make_pair(self, pair: str) -> Doing:
        """Two agents that pass `course.hops` messages to each other, and what has them do so."""
        raise NotImplementedError

    async def make_worker(self, task: str) -> Doing:
        """An agent with the tool, and what has it do the task."""
        raise NotImplementedError

    async def ready(self) -> None:
        """All pairs or workers are made."""

    async def create(self, numbers: Sequence[int]) -> Sequence[Any]:
        """Agents with the five tools of each number."""
        raise NotImplementedError

    async def use(self, agent: Any) -> bool:
        """Have a created agent do its first task."""
        raise NotImplementedError

    async def resume(self, task: str) -> bool:
        """Do the task that a process may have begun which was killed; `course.fresh` if there was none."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close what was opened."""


def main(script: Callable[[Course], Script]) -> None:
    """Run the workload that the command line names."""
    name, size, folder, *pipe = sys.argv[1:]
    if name not in WORKLOADS:
        sys.exit(f"There is no workload {name!r}. There are: {', '.join(WORKLOADS)}.")
    course = Course(name, int(size), Path(folder), pipe=int(pipe[0]) if pipe else None)
    done = asyncio.run(run(course, script(course)))
    print(json.dumps(course.result(done)), flush=True)
    # What a framework keeps running in threads must not keep the process from its end.
    os._exit(0)


async def run(course: Course, script: Script) -> int:
    """How much was done. What is made, warmed up and measured, and in which order, is the same for all scripts."""
    course.tell("opening")
    await script.open()
    match course.workload.split("-"):
        case ["messages" | "bare", _]:
            done = await _made_and_done(course, script, script.make_pair, PAIRS)
        case ["tasks", _]:
            done = await _made_and_done(course, script, script.make_worker, course.size)
        case ["agents", how]:
            done = await _created(course, script, is_used=how == "used")
        case _:
            tasks = [f"task-{number}" for number in range(course.size)]
            done = await _all(partial(script.resume, task) for task in tasks)  # what counts is told to the witness
    await script.close()
    return done


async def _made_and_done(course: Course, script: Script, make: Callable[[str], Awaitable[Doing]], count: int) -> int:
    """Make as many, and some for the warm-up; what is measured is all of them at once, once all are made."""
    doing = [await make(f"task-{number}") for number in range(count)]
    warm_up = [await make(f"warm-{number}") for number in range(min(WARM_UP, count))]
    await script.ready()
    await _all(warm_up)
    async with course.measured():
        return await _all(doing)


async def _created(course: Course, script: Script, *, is_used: bool) -> int:
    """Create the agents, and have one after the other do a task; one was created, and used, before."""
    first = await script.create([course.size])
    for agent in first if is_used else ():
        await script.use(agent)
    async with course.measured():
        agents = await script.create(range(course.size))
        if is_used:
            return sum([await script.use(agent) for agent in agents])
    return len(agents)


async def _all(doing: Iterable[Doing]) -> int:
    """Do them at the same time. What fails has done nothing; if all fail, so does the lap."""
    ended = await asyncio.gather(*(each() for each in doing), return_exceptions=True)
    failed = [each for each in ended if isinstance(each, BaseException)]
    if failed:
        print(f"{len(failed)} failed, one of them with {failed[0]!r}", file=sys.stderr, flush=True)
    if len(failed) == len(ended):
        raise failed[0]
    return sum(each for each in ended if not isinstance(each, BaseException))


def batched(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Some at a time, for who can make several agents at once: all at once would count what that takes meanwhile."""
    return (numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE))


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _BYTES_IN_PAGE


def _peak_kb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0])
