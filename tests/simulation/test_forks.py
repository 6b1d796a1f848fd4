"""Forks: a session goes on from an entry of its log in another one, and nothing of what came before is done again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager, import_into_folder
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import RecordingError, UnknownAgentError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.replay.recording import Recording, fork_points, record_for_fork, write_fork, write_recording
from ai_whisperer.store.base import Store
from tests.simulation.recording_stage import TOOLS, lived, recorded
from tests.simulation.stage import round_of, until
from tests.simulation.test_recordings import say, team, whole


def first_point_after(recording: Recording, seq: int) -> int:
    return next(point for point in fork_points(recording.entries) if point >= seq)


def taken(store: Store, at: int) -> Recording:
    return asyncio.run(record_for_fork(store, at=at, tools=TOOLS))


def test_a_number_in_the_middle_of_a_step_is_refused_with_the_nearest_that_work() -> None:
    begun = next(
        entry for entry in team().entries if entry.name == "step.started" and entry.params.get("tool") == "pay"
    )
    store, points = lived(whole, say=say), fork_points(team().entries)
    before = max(point for point in points if point < begun.seq)
    after = min(point for point in points if point > begun.seq)
    with pytest.raises(
        RecordingError,
        match=rf"cannot be forked at {begun.seq}: .* The nearest numbers that work: {before} and {after}\.",
    ):
        taken(store, begun.seq)
    with pytest.raises(RecordingError, match="its log ends at "):
        taken(store, 99_999)
    assert taken(store, points[10]).header.last == points[10]


def test_a_fork_goes_on_with_what_was_changed_and_repeats_nothing(tmp_path: Path) -> None:
    looked_up = [entry.seq for entry in team().entries if entry.params.get("tool") == "look_up"]
    at = first_point_after(team(), max(looked_up))
    part = taken(lived(whole, say=say), at)
    definitions = {agent.id: agent.definition for agent in part.agents}
    file = tmp_path / "fork.zip"
    write_fork(part, file, agents={"writer": replace(definitions["writer"], prompt="You write well.")})
    import_into_folder(tmp_path / "data", file, session_id="fork")
    asked: list[tuple[str, str, int]] = []

    def answer(request: ModelRequest) -> Answer | str:
        asked.append((request.agent_id, request.system, round_of(request)))
        return say(request)

    async def go_on() -> tuple[list[ApprovalRecord], list[str]]:
        async with AsyncAgentSessionManager(
            tmp_path / "data",
            session_id="fork",
            tools=TOOLS,
            templates=(),
            model_factory=lambda _: FunctionModel(answer),
        ) as manager:
            await until(lambda: bool(manager._session.approvals.pending()))
            waiting = await manager.list_approvals()
            log = await manager.notifications(limit=10_000)
            return waiting, [note.params["tool"] for note in log[at:] if note.params.get("kind") == "tool"]

    waiting, called = asyncio.run(go_on())
    assert [(each.agent_id, each.tool) for each in waiting] == [("writer", "pay")]
    assert ("writer", "You write well.", 2) in asked
    assert not any(agent == "writer" and number < 2 for agent, _, number in asked)
    assert "look_up" not in called


def test_an_agent_that_there_is_not_cannot_be_changed(tmp_path: Path) -> None:
    definition = team().agents[0].definition
    with pytest.raises(
        UnknownAgentError, match=r"no agent 'nobody' in the recording\. There are: writer, editor, reader"
    ):
        write_fork(team(), tmp_path / "fork.zip", agents={"nobody": definition})


def test_a_fork_has_the_texts_of_the_session_with_their_secrets(tmp_path: Path) -> None:
    secret = "sk-" + "a1" * 12

    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": f"The key is {secret}."})
        await manager.send_task("ann", f"Use {secret}.")
        await asyncio.sleep(20)

    store = lived(work, say=lambda _: f"{secret} was used")
    part = taken(store, fork_points(recorded(store).entries)[-1])
    with pytest.raises(RecordingError, match="has the secrets of its session"):
        write_recording(part, tmp_path / "fork.wrec")
    file = tmp_path / "fork.zip"
    write_fork(part, file)
    import_into_folder(tmp_path / "data", file, session_id="fork")

    async def definition_and_tasks() -> tuple[str, list[str]]:
        async with AsyncAgentSessionManager(
            tmp_path / "data", session_id="fork", model_factory=lambda _: FunctionModel(lambda _: "done"), templates=()
        ) as manager:
            tasks = await manager._session.kernel.store.tasks("fork", limit=10)
            return manager._session.roster.agents["ann"].record.definition.prompt or "", [each.prompt for each in tasks]

    assert asyncio.run(definition_and_tasks()) == (f"The key is {secret}.", [f"Use {secret}."])


def test_a_session_is_forked_before_what_cannot_be_recorded() -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ben", {"prompt": "p"})
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.delete_agent("ann")

    assert taken(lived(work, say=lambda _: "done"), 2).header.last == 2


def test_no_agent_of_a_fork_waits_for_a_tool_that_only_another_was_granted(tmp_path: Path) -> None:
    async def work(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ann", {"prompt": "p"})
        await manager.create_agent("ben", {"prompt": "p", "tools": ["write_file"]})
        await manager.run_task("ann", "Begin.")

    store = lived(work, say=lambda _: "done")
    file = tmp_path / "fork.zip"
    write_fork(taken(store, fork_points(recorded(store).entries)[-1]), file)
    import_into_folder(tmp_path / "data", file, session_id="fork")

    async def missing() -> dict[str, tuple[str, ...]]:
        async with AsyncAgentSessionManager(
            tmp_path / "data",
            session_id="fork",
            tools=TOOLS,
            model_factory=lambda _: FunctionModel(lambda _: "done"),
            templates=(),
        ) as manager:
            return {agent.agent_id: agent.missing_tools for agent in manager.list_agents()}

    assert asyncio.run(missing()) == {"ann": (), "ben": ()}
