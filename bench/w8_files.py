"""W8, shared files: many agents append to, edit and rewrite the same files with the file tools, and nothing is lost.

Each agent has a slot in one file that it fills (`edit_file`), adds a line to another (`write_file`, append), and every
tenth one reads a third and writes it back by its version, until nobody was in between. Meanwhile a reader looks whether
the files are whole.
"""

from __future__ import annotations

import asyncio
import collections
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer, AnswerTurn, ToolCall, ToolTurn
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.tools.function import AnyFunction
from bench.probe import Probe, Sample, Samples, Stopwatch, in_fresh_process, values_of
from bench.report import Figure, Target

TITLE = "W8"
AGENTS = 1_000
FILES = 50
TOOLS = ("read_file", "write_file", "edit_file")
_LINE = re.compile(r"(slot|filled|added|rewritten) \d+ \.{60}")
_DOTS = "." * 60


def probes(*, quick: bool) -> list[Probe]:
    agents = AGENTS // 10 if quick else AGENTS
    return [Probe("ours files", in_fresh_process(ours_files, agents=agents, files=FILES))]


def figures(samples: Samples) -> list[Figure]:
    def of(value: str) -> list[float]:
        return values_of(samples, "ours files", value)

    agents = int(samples["ours files"][0]["agents"])
    return [
        Figure(f"{agents} agents, {FILES} files: lost updates", "updates", of("lost"), target=Target(0), typical=max),
        Figure("torn or shrunk files seen by a reader", "readings", of("torn"), target=Target(0), typical=max),
        Figure("turns of those who came later", "turns", of("overtaken"), target=Target(0), typical=max),
        Figure("could not be made, and that was told", "calls", of("failed"), target=Target(0), typical=max),
        Figure("refused by version and done again", "calls", of("refused"), typical=max),
        Figure("longest wait", "s", of("longest_wait")),
        Figure("longest line that a call waited in", "calls", of("longest_line"), typical=max),
        Figure("largest wait ÷ turns of those who came before", "", of("share"), target=Target(1.0), typical=max),
        Figure("changes to files", "a second", of("rate")),
        Figure("CPU for each change", "ms", of("cpu_ms")),
    ]


async def ours_files(folder: Path, *, agents: int, files: int, tools: Iterable[AnyFunction] = ()) -> Sample:
    shared = folder / "shared"
    shared.mkdir()
    for number in range(files):
        slots = (f"slot {agent} {_DOTS}\n" for agent in range(agents) if agent % files == number)
        _path(shared, number).write_text("".join(slots), encoding="ascii")
    script = Script(files)
    model = FunctionModel(script.say)
    async with AsyncAgentSessionManager(
        folder / "data", model_factory=lambda _: model, tools=tools, folders={"files": shared}, templates=()
    ) as manager:
        config = {"tools": TOOLS, "folders": {"files": "write"}}
        made = await asyncio.gather(*(manager.create_agent(str(agent), config) for agent in range(agents)))
        reader = Reader([_path(shared, number) for number in range(files)])
        reader.start()
        watch = Stopwatch()
        tasks = await asyncio.gather(*(manager.send_task(each, "go") for each in made))
        ended = [await manager.wait_task(each) for each in tasks]
        wall, cpu = watch.read()
        reader.end()
        assert all(task.state is TaskState.COMPLETED for task in ended)
        turns = turns_of([note async for note in _notes_of(manager)], await _touched(manager, ended))
    changes = 2 * agents + len(range(0, agents, 10))
    missing = missing_from(shared, agents=agents, files=files)
    for each in (*missing, *script.failed):
        print(f"W8: {each}", file=sys.stderr)
    return {
        "agents": agents,
        "lost": len(missing),
        "failed": len(script.failed),
        "torn": len(reader.torn),
        "readings": reader.readings,
        "refused": script.refused,
        "overtaken": turns.overtaken,
        "longest_wait": turns.longest_wait,
        "longest_line": turns.longest_line,
        "share": turns.share,
        "rate": changes / wall,
        "cpu_ms": cpu / changes * 1000,
    }


class Script:
    """What the models say.

    `refused` counts the writes that were refused because somebody else had been there, `failed` those that could not be
    made for any other reason: what they were to write is not lost, for their models were told so.
    """

    def __init__(self, files: int) -> None:
        self._files = files
        self.refused = 0
        self.failed: list[str] = []

    def say(self, request: ModelRequest) -> Answer | str:
        agent = int(request.agent_id)
        done = sum(isinstance(turn, AnswerTurn) for turn in request.turns)
        last = request.turns[-1]
        said = last.content if isinstance(last, ToolTurn) else ""
        if done in (1, 2) and "Wrote" not in said:
            self.failed.append(f"{agent}: {said}")
        if done == 0:
            old, new = f"slot {agent} ", f"filled {agent} "
            return self._call(request, "edit_file", agent, old=old, new=new)
        if done == 1:
            return self._call(request, "write_file", agent + 1, content=f"added {agent} {_DOTS}\n", mode="append")
        if agent % 10 or ("Wrote" in said and done > 3):
            return "done"
        if "version " in said.partition("\n")[0] and "lines in all" in said:
            heading, _, text = said.partition("\n")
            version = re.findall(r"version (\w+)", heading)[0]
            content = f"{_unmarked(text)}rewritten {agent} {_DOTS}\n"
            return self._call(request, "write_file", agent + 2, content=content, version=version)
        self.refused += "not as you read it" in said
        return self._call(request, "read_file", agent + 2)

    def _call(self, request: ModelRequest, name: str, file: int, **arguments: str) -> Answer:
        written = msgspec.json.encode({"path": f"files/{file % self._files}.txt", **arguments}).decode()
        return Answer(tool_calls=(ToolCall(call_id=request.step_id, name=name, arguments=written),))


def _unmarked(text: str) -> str:
    """The lines of the file, without what marks them as untrusted."""
    return "".join(f"{line}\n" for line in text.split("\n") if _LINE.fullmatch(line))


class Reader(threading.Thread):
    """Reads all files again and again, and keeps what should never be: half a line, fewer slots, fewer lines."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(name="reader", daemon=True)
        self._paths = paths
        self._ended = threading.Event()
        self._lines: dict[Path, int] = dict.fromkeys(paths, 0)
        self._slots = {path: path.read_text().count("\n") for path in paths}
        self.torn: list[str] = []
        self.readings = 0

    def run(self) -> None:
        while not self._ended.wait(0.01):
            for path in self._paths:
                self._look_at(path)

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _look_at(self, path: Path) -> None:
        self.readings += 1
        *lines, rest = path.read_text().split("\n")
        slots = sum(line.startswith(("slot ", "filled ")) for line in lines)
        whole = not rest and all(map(_LINE.fullmatch, lines))
        if not whole or slots != self._slots[path] or len(lines) < self._lines[path]:
            self.torn.append(f"{path.name}: {len(lines)} lines, {slots} slots")
        self._lines[path] = len(lines)


def missing_from(shared: Path, *, agents: int, files: int) -> list[str]:
    """The updates that are not in the files, or not exactly once."""
    found = [collections.Counter(_path(shared, number).read_text().split("\n")) for number in range(files)]
    wanted = [
        *((agent % files, f"filled {agent} {_DOTS}") for agent in range(agents)),
        *(((agent + 1) % files, f"added {agent} {_DOTS}") for agent in range(agents)),
        *(((agent + 2) % files, f"rewritten {agent} {_DOTS}") for agent in range(0, agents, 10)),
    ]
    return [f"{file}: {line[:20]}" for file, line in wanted if found[file][line] != 1]


@dataclass
class Turns:
    """How calls took turns.

    `share` is the largest wait in proportion to its fair share: the turns of those who were in the line before, and one
    more for whoever had the file then, taken as the longest there was.
    """

    overtaken: int = 0
    longest_wait: float = 0.0
    longest_line: int = 0
    share: float = 0.0


def turns_of(notes: Iterable[Notification], touched: Mapping[str, str]) -> Turns:
    """What the notifications tell about turns; `touched` has the file of each call.

    A call overtakes those that wait for the file when it begins and came earlier, whether it has waited itself or not.
    """
    turns = Turns()
    lines: dict[str, dict[str, list[str]]] = collections.defaultdict(dict)  # by file: who waits, and who was ahead
    begun: dict[str, float] = {}
    took: dict[str, float] = {}
    had_to_wait: set[str] = set()
    waits: list[tuple[float, list[str]]] = []
    for note in notes:
        step = str(note.params.get("stepId"))
        if note.name == "resource.waiting":
            line = lines[note.params["resources"][0]]
            line[step] = list(line)
            turns.longest_line = max(turns.longest_line, len(line))
        elif note.name == "resource.granted":
            line = lines[note.params["resources"][0]]
            turns.overtaken += list(line).index(step)
            waits.append((note.params["waitedSeconds"], line.pop(step)))
            had_to_wait.add(step)
        elif note.name == "step.started" and note.params["kind"] == "tool":
            begun[step] = note.at
            if step not in had_to_wait:
                turns.overtaken += len(lines[touched[step]])
        elif note.name == "step.finished" and step in begun:
            took[step] = note.at - begun.pop(step)
    longest = max(took.values())
    for seconds, ahead in waits:
        turns.longest_wait = max(turns.longest_wait, seconds)
        turns.share = max(turns.share, seconds / (longest + sum(took[step] for step in ahead)))
    return turns


async def _touched(manager: AsyncAgentSessionManager, tasks: Iterable[TaskRecord]) -> dict[str, str]:
    """The file that each tool call named, by the id of its step."""
    steps = [step for task in tasks for step in await manager.list_steps(task.id)]
    return {
        step.id: f"file:{msgspec.json.decode(step.call.arguments)['path']}" for step in steps if step.call is not None
    }


async def _notes_of(manager: AsyncAgentSessionManager) -> AsyncIterator[Notification]:
    after = 0
    while some := await manager.notifications(after=after, limit=10_000):
        for note in some:
            yield note
        after = some[-1].seq


def _path(shared: Path, number: int) -> Path:
    return shared / f"{number}.txt"
