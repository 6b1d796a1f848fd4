"""Who touches what, as clients and the command line show it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer import Client, ToolContext, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.settings import Settings
from tests.acceptance.command_stage import Whisperer
from tests.acceptance.server_in_thread import ServerInThread
from tests.simulation.stage import call, prompt_of, round_of


class Gate:
    """Lets calls of a tool end when the test wants it."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()


gate = Gate()


@tool(touches="write file:{path}")
async def hold(path: str, context: ToolContext) -> str:
    """Hold a file until the test lets go of it."""
    await gate.may_end.wait()
    return f"{context.agent_id} held {path}"


def say(request: ModelRequest) -> Answer | str:
    return "held" if round_of(request) else call("hold", path=prompt_of(request))


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path / "data", port=0)
    with ServerInThread(settings, model_factory=lambda _: FunctionModel(say), tools=[hold]) as server:
        gate.may_end = asyncio.Event()
        yield server
        server.do(let_go)


async def let_go() -> None:
    gate.may_end.set()


def test_clients_and_the_command_line_show_who_holds_a_resource_and_who_waits_for_it(
    staged: ServerInThread, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with Client(staged.url, staged.token) as client:
            for name in ("ann", "ben"):
                await client.create_agent(name, {"folders": {"shared": "write"}})
            async with client.events() as events:
                await client.send_task("ann", "shared/report.md", task_id="first")
                await anext(
                    note async for note in events if note.name == "step.started" and note.params["kind"] == "tool"
                )
                await client.send_task("ben", "shared/report.md", task_id="second")
                waiting = await anext(note async for note in events if note.name == "resource.waiting")
                assert waiting.params["resources"] == ["file:shared/report.md"]
                assert waiting.params["holders"] == ["ann"]
                (touched,) = await client.list_resources()
                assert touched.resource == "file:shared/report.md"
                assert [(use.agent_id, use.access) for use in touched.holders] == [("ann", "write")]
                assert [(use.agent_id, use.task_id) for use in touched.waiting] == [("ben", "second")]
                assert (await client.get_agent_states()).agents["ben"].paused_for == ("file:shared/report.md",)
                await asyncio.to_thread(show)
                staged.loop.call_soon_threadsafe(gate.may_end.set)
                granted = await anext(note async for note in events if note.name == "resource.granted")
                assert granted.params["stepId"] == "second.2"
            await client.at_rest()
            assert await client.list_resources() == []

    def show() -> None:
        whisperer = Whisperer(staged.settings.data, capsys)
        _, held, waits = whisperer.ok("resources").splitlines()
        assert held.split()[:4] == ["file:shared/report.md", "ann", "holds", "write"]
        assert waits.split()[:4] == ["file:shared/report.md", "ben", "waits", "write"]
        assert whisperer.json("resources")[0]["waiting"][0]["agentId"] == "ben"
        for command in (["agents"], ["agents", "show", "ben"], ["watch", "--once"]):
            assert "paused for file:shared/report.md" in whisperer.ok(*command), command

    asyncio.run(scenario())
