"""Many agents write to the same files through the file tools: nothing is lost, nothing is torn, all take turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ai_whisperer import ToolContext, tool
from ai_whisperer.domain.notification import Notification
from bench.w8_files import ours_files, turns_of


def test_a_hundred_agents_write_to_ten_files_and_nothing_is_lost_or_torn(tmp_path: Path) -> None:
    found = asyncio.run(ours_files(tmp_path, agents=100, files=10))
    assert (found["lost"], found["torn"], found["overtaken"]) == (0, 0, 0)
    assert found["readings"] > 0
    assert found["longest_line"] > 1, "nobody waited, so nothing was tried"


@pytest.mark.planted("shared files", name="a tool that loses updates")
def test_a_tool_that_loses_updates_would_be_found(tmp_path: Path) -> None:
    @tool(name="edit_file")
    async def careless(path: str, old: str, new: str, context: ToolContext) -> str:
        """Change a file, with a pause in which others change it, too."""
        assert context.workplace is not None
        place = context.workplace.place(path)
        file = place.folder.path / place.path
        text = await asyncio.to_thread(file.read_text)
        await asyncio.sleep(0.01)
        await asyncio.to_thread(file.write_text, text.replace(old, new))
        return "Wrote it."

    assert asyncio.run(ours_files(tmp_path, agents=30, files=2, tools=[careless]))["lost"] > 0


@pytest.mark.planted("shared files", name="begin before one that came earlier")
def test_a_call_that_begins_before_one_that_came_earlier_would_be_found() -> None:
    def told(*what: tuple[str, str]) -> list[Notification]:
        params = {"kind": "tool", "resources": ["file:f"], "waitedSeconds": 1.0}
        return [
            Notification(seq=0, session_id="s", name=name, cause="", at=float(at), params={**params, "stepId": step})
            for at, (name, step) in enumerate(what)
        ]

    def ran(step: str) -> tuple[tuple[str, str], ...]:
        return (("step.started", step), ("step.finished", step))

    files = dict.fromkeys("abc", "file:f")
    waiting = [("resource.waiting", "a"), ("resource.waiting", "b")]
    in_order = told(*waiting, ("resource.granted", "a"), *ran("a"), ("resource.granted", "b"), *ran("b"))
    swapped = told(*waiting, ("resource.granted", "b"), *ran("b"), ("resource.granted", "a"), *ran("a"))
    assert turns_of(in_order, files).overtaken == 0
    assert turns_of(swapped, files).overtaken == 1
    assert turns_of([*told(*waiting, *ran("c")), *in_order[2:]], files).overtaken == 2, "it did not even wait"
