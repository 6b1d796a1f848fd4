"""Tasks and messages with images and files: what models are shown, and what a crash leaves."""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.attachments import InputFile
from ai_whisperer.domain.conversation import Answer, UserTurn
from ai_whisperer.errors import DuplicateIdError, InvalidInputError, TooLargeError, UnknownFileError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.store.attachments import AttachmentFiles
from tests.planted import Caught
from tests.simulation.stage import play, play_over_crash
from tests.unit.test_attachments import png

TEXT = InputFile(data=b"Low tide at six.", name="tide.txt")
IMAGE = InputFile(data=png(), name="chart.png")


pytestmark = pytest.mark.usefixtures("without_threads")


class Shown:
    """A model that keeps in mind which contents it was shown with each request."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self.turns: list[list[str]] = []

    def __call__(self, request: ModelRequest) -> Answer | str:
        parts = [part for turn in request.turns if isinstance(turn, UserTurn) for part in turn.parts]
        self.turns.append([part.name for part in parts])
        self.names.append([part.name for part in parts if part.digest in request.attachments])
        return "I see."


def contents(tmp_path: Path) -> list[Path]:
    return [each for each in tmp_path.rglob("attachments/*") if each.is_file()]


def test_a_task_shows_its_images_and_files_also_in_later_tasks_of_the_thread(tmp_path: Path) -> None:
    shown = Shown()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.run_task("ada", "Look.", thread_id="talk", parts=[IMAGE, TEXT], task_id="t")
        await manager.run_task("ada", "And now?", thread_id="talk", parts=[IMAGE])
        assert shown.names == [["chart.png", "tide.txt"], ["chart.png", "tide.txt", "chart.png"]]
        parts = (await manager.get_task("t")).parts or ()
        assert [(part.name, part.media_type) for part in parts] == [
            ("chart.png", "image/png"),
            ("tide.txt", "text/plain"),
        ]
        assert len(contents(tmp_path)) == 2
        got = await manager.get_attachment(parts[1].digest)
        assert (got.data, got.name) == (TEXT.data, "tide.txt")
        assert [each.owner.partition(":")[0] for each in await manager.list_attachments()] == ["task"] * 3

    play(scenario, shown, work=tmp_path)


def test_a_message_shows_its_files_to_each_member_that_has_not_seen_it(tmp_path: Path) -> None:
    shown = Shown()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("ada", "bob"):
            await manager.create_agent(name)
        room = await manager.create_room(["ada", "bob"])
        message = await manager.post_message(room, "@ada Look.", parts=[IMAGE])
        await manager.at_rest()
        assert [part.name for part in message.parts or ()] == ["chart.png"]
        assert shown.names == [["chart.png"]]
        await manager.post_message(room, "@bob And you?")
        await manager.at_rest()
        assert shown.names[1:] == [["chart.png"]]
        (told, *_) = await manager.room_messages(room)
        assert told.parts == message.parts
        (record,) = await manager.list_attachments()
        assert record.owner == f"message:{message.id}"

    play(scenario, shown, work=tmp_path)


def test_a_model_that_takes_no_images_is_told_of_them_in_words(tmp_path: Path) -> None:
    shown = Shown()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", {"settings": {"images": False}})
        await manager.run_task("ada", "Look.", parts=[IMAGE, TEXT])
        assert (shown.turns, shown.names) == ([["chart.png", "tide.txt"]], [["tide.txt"]])

    play(scenario, shown, work=tmp_path)


def test_a_content_that_has_vanished_fails_nothing(tmp_path: Path) -> None:
    shown = Shown()

    def remove_all() -> None:
        for each in contents(tmp_path):
            each.unlink()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.run_task("ada", "Look.", thread_id="talk", parts=[IMAGE], task_id="t")
        remove_all()
        assert await manager.run_task("ada", "And now?", thread_id="talk") == "I see."
        assert (shown.turns[-1], shown.names[-1]) == (["chart.png"], [])
        (part,) = (await manager.get_task("t")).parts or ()
        with pytest.raises(UnknownFileError, match=r"chart\.png"):
            await manager.get_attachment(part.digest)

    play(scenario, shown, work=tmp_path)


def test_bad_parts_are_refused_before_anything_is_kept(tmp_path: Path) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", {"limits": {"max_attachment_bytes": 100}})
        bad: Any
        for bad, error in [
            ([IMAGE, tmp_path / "gone.png"], InvalidInputError),
            ([InputFile(data=b"x" * 101)], TooLargeError),
            ([IMAGE, InputFile(data=b"x", media_type="image/png")], InvalidInputError),
            ([IMAGE] * 21, TooLargeError),
            ("gone.png", InvalidInputError),
        ]:
            with pytest.raises(error):
                await manager.send_task("ada", "Look.", parts=bad)
            with pytest.raises(error):
                await manager.post_message(await manager.open_chat("ada"), "Look.", parts=bad)
        with pytest.raises(InvalidInputError, match="64 digits"):
            await manager.get_attachment("../../secret")
        with pytest.raises(UnknownFileError):
            await manager.get_attachment("0" * 64)
        assert await manager.list_tasks() == []
        assert contents(tmp_path) == []

    play(scenario, work=tmp_path)


def test_the_same_id_with_other_files_is_something_else(tmp_path: Path) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        room = await manager.open_chat("ada")
        for _ in range(2):
            await manager.send_task("ada", "Look.", parts=[IMAGE], task_id="t")
            await manager.post_message(room, "Look.", parts=[IMAGE], message_id="m")
        with pytest.raises(DuplicateIdError):
            await manager.send_task("ada", "Look.", parts=[TEXT], task_id="t")
        with pytest.raises(DuplicateIdError):
            await manager.post_message(room, "Look.", message_id="m")

    play(scenario, work=tmp_path)


def test_a_crash_loses_no_content_that_a_task_names_and_leaves_none_that_nothing_does(tmp_path: Path) -> None:
    shown = Shown()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.send_task("ada", "Look.", parts=[IMAGE], task_id="t")
        # As if the process had died between the content and the unit that names it.
        AttachmentFiles(contents(tmp_path)[0].parent).keep("f" * 64, b"orphan")
        assert len(contents(tmp_path)) == 2

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert len(contents(tmp_path)) == 1
        await manager.wait_task("t")
        assert shown.names[-1] == ["chart.png"]

    play_over_crash(before, after, shown, crash_after_seconds=0.9, work=tmp_path)


def wrong_after_a_crash(tmp_path: Path, seed: int) -> list[str]:
    """What is wrong after the process has died while tasks with files were accepted."""
    told: list[str] = []
    wrong: list[str] = []

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        for number in range(100):
            file = InputFile(data=f"content {number}".encode(), name="x.txt")
            told.append((await manager.send_task("ada", "Look.", parts=[file])).id)

    async def after(manager: AsyncAgentSessionManager) -> None:
        tasks = await manager.list_tasks("ada", limit=1_000)
        named = {part.digest for task in tasks for part in task.parts or ()}
        kept = {each.name for each in contents(tmp_path)}
        if not {task.id for task in tasks} >= set(told):
            wrong.append("an accepted task is lost")
        if named - kept:
            wrong.append("a content is lost")
        if kept - named:
            wrong.append("a content is left that nothing names")
        for digest in named & kept:
            assert (await manager.get_attachment(digest)).data.startswith(b"content")

    play_over_crash(before, after, crash_after_seconds=0.02 + 0.013 * seed, seed=seed, work=tmp_path)
    return wrong


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_crash_leaves_is_whole(tmp_path: Path, seed: int) -> None:
    assert wrong_after_a_crash(tmp_path, seed) == []


def sweep_nothing(files: AttachmentFiles, named: Container[str]) -> list[str]:
    del files, named
    return []


def keep_nothing(files: AttachmentFiles, digest: str, data: bytes) -> None:
    del files, digest, data


@pytest.mark.planted("attachments over crashes", unit="seed")
@pytest.mark.parametrize(
    ("method", "planted"), [("sweep", sweep_nothing), ("keep", keep_nothing)], ids=["sweep_nothing", "keep_nothing"]
)
def test_the_harness_catches_a_content_that_is_left_behind_and_one_that_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, planted: Callable[..., Any], caught: Caught
) -> None:
    monkeypatch.setattr(AttachmentFiles, method, planted)
    wrong = next((seed for seed in range(4) if wrong_after_a_crash(tmp_path / str(seed), seed)), None)
    assert wrong is not None
    caught(after=wrong + 1)
