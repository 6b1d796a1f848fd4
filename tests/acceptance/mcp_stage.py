"""A session whose agent calls the tools of MCP servers as the test says."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, ToolCall, ToolTurn
from ai_whisperer.domain.notification import Notification
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.runtime.session.log import Subscription

_MODULES = Path(__file__).parents[2] / "ui" / "node_modules" / "@modelcontextprotocol"
_NODE = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "node"
_PROGRAM = Path(__file__).parent / "mcp_programs" / "odd_server.py"


def odd(mode: str, *args: str, **fields: Any) -> dict[str, Any]:
    """A server that behaves badly."""
    return {"command": sys.executable, "args": [str(_PROGRAM), mode, *args], **fields}


def everything(mode: str = "stdio", **fields: Any) -> dict[str, Any]:
    return {"command": _NODE, "args": [_published("server-everything"), mode], "required": True, **fields}


def filesystem(folder: Path) -> dict[str, Any]:
    return {"command": _NODE, "args": [_published("server-filesystem"), str(folder)], "required": True}


def _published(name: str) -> str:
    program = _MODULES / name / "dist" / "index.js"
    assert program.exists(), "The published servers are not installed. 'make ui' does that."
    return str(program)


class Stage:
    """An open session with the agent `worker`. What models were offered and what happened is kept."""

    def __init__(self, servers: Mapping[str, Any], grants: list[str], data: Path | None = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.offered: list[list[str]] = []
        self.requests: list[ModelRequest] = []
        self.notes: list[Notification] = []
        self.grants = grants
        self.manager = AsyncAgentSessionManager(
            data, mcp_servers=servers, model_factory=lambda _: FunctionModel(self._say), templates=()
        )

    def _say(self, request: ModelRequest) -> Answer | str:
        self.requests.append(request)
        self.offered.append([spec.name for spec in request.tools if spec.name.startswith("mcp__")])
        results = [turn for turn in request.turns if isinstance(turn, ToolTurn)]
        if len(results) < len(self.calls):
            name, arguments = self.calls[len(results)]
            call = ToolCall(call_id=f"c{len(results)}", name=name, arguments=msgspec.json.encode(arguments).decode())
            return Answer(tool_calls=(call,))
        return "\n".join(turn.content for turn in results) or "done"

    async def run(self, *calls: tuple[str, dict[str, Any]]) -> list[ToolTurn]:
        """Let the agent make these calls, one after the other; returns the results as its model was shown them."""
        self.calls = list(calls)
        task = await self.manager.send_task("worker", "work")
        await self.manager.wait_task(task)
        return [turn for turn in self.requests[-1].turns if isinstance(turn, ToolTurn)]

    async def call(self, name: str, **arguments: Any) -> ToolTurn:
        return (await self.run((name, arguments)))[0]

    def told(self, name: str) -> list[Mapping[str, Any]]:
        return [note.params for note in self.notes if note.name == name]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds: something outside this process has to happen first."""
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@asynccontextmanager
async def staged(servers: Mapping[str, Any], *grants: str, data: Path | None = None) -> AsyncIterator[Stage]:
    stage = Stage(servers, list(grants), data)
    async with stage.manager as manager:
        listening = asyncio.create_task(_listen(manager.subscribe(), stage.notes))
        if "worker" not in manager.active_sessions:
            await manager.create_agent("worker", {"tools": list(grants)})
        yield stage
    await listening
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == [], "tasks were left behind"


async def _listen(new: Subscription, notes: list[Notification]) -> None:
    while some := await new.some():
        notes.extend(some)


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def is_alive(pid: int) -> bool:
    """Whether the process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
