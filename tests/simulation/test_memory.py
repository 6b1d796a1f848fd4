"""Agents that keep notes: what they are told of them as a task begins, over crashes and in long threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer, UserTurn
from ai_whisperer.errors import InvalidInputError, UnknownFileError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, play_over_crash, prompt_of, results_of, round_of

GRANTED: dict[str, Any] = {"tools": ["memory"]}


pytestmark = pytest.mark.usefixtures("without_threads")


class Told:
    """A model that notes down what it is asked to, and keeps in mind what it was told of its memory."""

    def __init__(self) -> None:
        self.notes: list[list[str]] = []

    def __call__(self, request: ModelRequest) -> Answer | str:
        self.notes.append([turn.memory for turn in request.turns if isinstance(turn, UserTurn)])
        command, _, content = prompt_of(request).partition(": ")
        if command == "note" and round_of(request) == 0:
            return call("memory", command="create", path="MEMORY.md", content=content, overwrite=True)
        return results_of(request)[-1] if results_of(request) else "done"


def test_what_was_noted_is_told_as_the_next_task_begins(tmp_path: Path) -> None:
    told = Told()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", GRANTED)
        assert (await manager.run_task("ada", "note: Ann likes tea")).startswith("Wrote 'MEMORY.md'")
        await manager.run_task("ada", "go on", task_id="t")
        assert told.notes == [[""], [""], ["Ann likes tea"]]
        assert (await manager.get_task("t")).notes == "Ann likes tea"
        (file,) = await manager.list_memory("ada")
        assert (file.path, file.size) == ("MEMORY.md", 13)
        assert (await manager.read_memory("ada", "MEMORY.md")).text == "Ann likes tea"

    play(scenario, told, work=tmp_path)


def test_a_thread_is_told_its_notes_again_only_when_they_have_changed(tmp_path: Path) -> None:
    told = Told()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", GRANTED)
        await manager.run_task("ada", "note: one")
        for prompt in ("first", "second", "note: two", "third", "fourth"):
            await manager.run_task("ada", prompt, thread_id="talk")
        assert told.notes[-1] == ["one", "", "", "two", ""]
        # What was shown stays as it was: a provider finds the beginning of each request again.
        for before, after in zip(told.notes[2:], told.notes[3:], strict=False):
            assert after[: len(before)] == before

    play(scenario, told, work=tmp_path)


def test_notes_do_not_change_within_a_task(tmp_path: Path) -> None:
    told = Told()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", GRANTED)
        await manager.run_task("ada", "note: one")
        await manager.run_task("ada", "note: two")
        assert told.notes[2:] == [["one"], ["one"]]

    play(scenario, told, work=tmp_path)


def test_an_agent_without_the_tool_is_told_nothing(tmp_path: Path) -> None:
    told = Told()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        agent = await manager.create_agent("ada", {"tools": []})
        assert agent is not None
        await manager.run_task("ada", "go on", task_id="t")
        assert (told.notes, (await manager.get_task("t")).notes) == ([[""]], None)
        assert await manager.list_memory("ada") == []
        with pytest.raises(UnknownFileError, match="There is: none"):
            await manager.read_memory("ada", "MEMORY.md")

    play(scenario, told, work=tmp_path)


def test_only_as_much_is_told_as_the_limit_allows(tmp_path: Path) -> None:
    told = Told()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", {**GRANTED, "limits": {"max_memory_index_bytes": 5}})
        await manager.run_task("ada", "note: one two three")
        await manager.run_task("ada", "go on")
        assert told.notes[-1][0].startswith("one t\n[… cut: MEMORY.md has 13 bytes, and 5 are told.")

    play(scenario, told, work=tmp_path)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a\0b"])
def test_people_cannot_read_beyond_the_memory_either(tmp_path: Path, path: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", GRANTED)
        await manager.run_task("ada", "note: one")
        with pytest.raises(InvalidInputError):
            await manager.read_memory("ada", path)

    play(scenario, Told(), work=tmp_path)


@pytest.mark.parametrize("crash_after_seconds", [2.5, 3.5])
def test_a_task_that_is_taken_up_after_a_crash_is_told_what_it_was_told_before(
    tmp_path: Path, crash_after_seconds: float
) -> None:
    """The file is changed while the process is down: the task goes on with the notes that it began with."""
    told = Told()

    def rewrite(text: str) -> None:
        (file,) = tmp_path.rglob("MEMORY.md")
        file.write_text(text)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", GRANTED)
        await manager.run_task("ada", "note: one")
        await manager.run_task("ada", "note: two", task_id="t", timeout_seconds=1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        rewrite("three")
        await manager.wait_task("t")
        assert {tuple(notes) for notes in told.notes[2:]} == {("one",)}
        assert (await manager.get_task("t")).notes == "one"

    play_over_crash(before, after, told, crash_after_seconds=crash_after_seconds, work=tmp_path)
