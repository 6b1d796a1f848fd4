"""Many agents write to the same files through the file tools: nothing is lost, nothing is torn, all take turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ai_whisperer import ToolContext, tool
from bench.w8_files import ours_files


def test_a_hundred_agents_write_to_ten_files_and_nothing_is_lost_or_torn(tmp_path: Path) -> None:
    found = asyncio.run(ours_files(tmp_path, agents=100, files=10))
    assert (found["lost"], found["torn"], found["overtaken"]) == (0, 0, 0)
    assert found["readings"] > 0
    assert found["longest_line"] > 1, "nobody waited, so nothing was tried"


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
