"""What an earlier version has left goes on under this one, whatever has changed about tools and templates meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from ai_whisperer import AsyncAgentSessionManager, export_session, import_into_folder, tool
from ai_whisperer.domain.conversation import ToolTurn
from ai_whisperer.domain.tasks import StepState, TaskState
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.simulation.loop import VirtualClock, simulate
from ai_whisperer.store.sqlite import SqliteStore
from ai_whisperer.store.sqlite.committers import InlineCommitter
from ai_whisperer.store.sqlite.files import DATABASE_NAME
from ai_whisperer.store.sqlite.opening import database_version, latest_version
from ai_whisperer.tools.function import AnyFunction

RELEASES = sorted(Path(__file__).with_name("releases").glob("schema_*.sql"))
CHANGED = "---\nname: clerk\ndescription: Other.\ntools: [broadcast_event]\n---\nYou are another clerk.\n"

Scenario = Callable[[AsyncAgentSessionManager], Awaitable[None]]


@tool
async def look_up(town: str, country: str, year: int = 2000) -> str:
    """Look up a town of a country."""
    raise AssertionError(f"it was done again: {town} {country} {year}")


paid: list[int] = []


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay somebody."""
    paid.append(amount)
    return f"paid {amount}"


@tool
async def old_tool(text: str) -> str:
    """Do something that takes long."""
    raise AssertionError(f"it was done again: {text}")


@pytest.fixture(params=RELEASES, ids=lambda path: path.stem)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data folder as the release left it when it was killed."""
    folder = tmp_path / "data"
    folder.mkdir()
    with closing(apsw.Connection(str(folder / DATABASE_NAME))) as connection:
        connection.execute(request.param.read_text(encoding="utf-8"))
    paid.clear()
    return folder


def play(folder: Path, scenario: Scenario, *, tools: Iterable[AnyFunction]) -> list[ModelRequest]:
    asked: list[ModelRequest] = []

    def say(request: ModelRequest) -> str:
        asked.append(request)
        return "done since"

    async def main() -> None:
        templates = folder.parent / "templates"
        templates.mkdir(exist_ok=True)
        (templates / "clerk.md").write_text(CHANGED)
        store = SqliteStore.open(folder, committer=InlineCommitter(), synchronous="OFF")
        clock = VirtualClock()
        clock.set((await store.load("default")).last_at + 1 - clock.now())  # it was killed a moment ago
        async with AsyncAgentSessionManager(
            store=store, tools=tools, model_factory=lambda _: FunctionModel(say), templates=[templates], clock=clock
        ) as manager:
            await scenario(manager)
        await store.close()

    simulate(main())
    return asked


def test_there_is_a_release_to_go_on_from() -> None:
    assert RELEASES


def test_the_database_is_brought_up_to_date_and_keeps_all_tasks(left: Path) -> None:
    before = database_version(left / DATABASE_NAME)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        tasks = {task.id: task for name in manager.active_sessions for task in await manager.list_tasks(name)}
        assert {"said", "dead", "research", "spend", "ask", "grind", "queued"} <= set(tasks)
        assert all(task.erased_at is None for task in tasks.values())
        assert [task.id for task in (await manager.dead_letters()).tasks] == ["dead"]
        notes = await manager.notifications(limit=10_000)
        assert [note.seq for note in notes] == list(range(1, len(notes) + 1))

    play(left, scenario, tools=[look_up, pay, old_tool])
    assert before < database_version(left / DATABASE_NAME) == latest_version()


def test_a_task_goes_on_after_a_call_of_a_tool_whose_parameters_are_others_now(left: Path) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.wait_task("research")).state is TaskState.COMPLETED

    asked = play(left, scenario, tools=[look_up, pay, old_tool])
    shown = next(each for each in asked if each.agent_id == "ann")
    assert any(isinstance(turn, ToolTurn) and "Ulm is fine" in turn.content for turn in shown.turns)


def test_an_agent_whose_tool_was_removed_says_so_and_goes_on_when_it_is_given(left: Path) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert manager.get_agent_status("max").missing_tools == ("old_tool",)
        assert (await manager.wait_task("research")).state is TaskState.COMPLETED, "all others go on"
        await manager.give_tools("max", [old_tool])
        assert (await manager.wait_task("grind")).state is TaskState.COMPLETED
        steps = await manager.list_steps("grind")
        assert steps[1].state is StepState.UNKNOWN, "what may have had its effect is not done again"

    play(left, scenario, tools=[look_up, pay])


def test_an_agent_keeps_the_template_that_it_was_made_of(left: Path) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        assert "of the first day" in manager.active_sessions["clerk"].record.definition.prompt
        await manager.start_agent("clerk")
        await manager.at_rest()

    asked = play(left, scenario, tools=[look_up, pay, old_tool])
    shown = next(each for each in asked if each.agent_id == "clerk")
    assert "of the first day" in shown.system


def test_an_approval_and_an_answer_that_were_waited_for_still_are(left: Path) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        [pending] = await manager.list_approvals()
        await manager.approve(pending.id, digest=pending.digest)
        assert (await manager.wait_task("spend")).state is TaskState.COMPLETED
        assert paid == [5]
        await manager.resume_agent("ben")
        assert (await manager.wait_task("ask")).state is TaskState.COMPLETED
        assert "done since" in str((await manager.list_steps("ask"))[1].result)
        assert (await manager.wait_task("queued")).state is TaskState.COMPLETED

    play(left, scenario, tools=[look_up, pay, old_tool])


def test_what_was_left_can_be_pruned_and_moved(left: Path, tmp_path: Path) -> None:
    async def prune(manager: AsyncAgentSessionManager) -> None:
        await manager.wait_task("research")
        await manager.prune(older_than=0)
        assert (await manager.get_task("said")).erased_at is not None
        assert [task.id for task in (await manager.dead_letters()).tasks] == ["dead"]

    play(left, prune, tools=[look_up, pay, old_tool])
    with closing(apsw.Connection(str(left / DATABASE_NAME))) as connection:
        connection.execute("INSERT INTO session (id, title, owner, created_at) VALUES ('default', '', 'local', 1.0)")
    export_session(left, "default", tmp_path / "s.zip")
    import_into_folder(tmp_path / "moved", tmp_path / "s.zip")

    async def look(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.get_task("dead")).prompt == "fail"

    play(tmp_path / "moved", look, tools=[look_up, pay, old_tool])
