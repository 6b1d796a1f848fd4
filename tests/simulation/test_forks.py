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
from ai_whisperer.replay.recording import Recording, check_fork_point, fork_points, write_fork
from tests.simulation.recording_stage import TOOLS, lived, recorded
from tests.simulation.stage import round_of, until
from tests.simulation.test_recordings import say, team, whole


def first_point_after(recording: Recording, seq: int) -> int:
    return next(point for point in fork_points(recording) if point >= seq)


def test_a_number_in_the_middle_of_a_step_is_refused_with_the_nearest_that_work() -> None:
    begun = next(
        entry for entry in team().entries if entry.name == "step.started" and entry.params.get("tool") == "pay"
    )
    with pytest.raises(
        RecordingError, match=r"cannot be forked at \d+: .* The nearest numbers that work: \d+ and \d+\."
    ):
        check_fork_point(team(), begun.seq)
    with pytest.raises(RecordingError, match="or beyond its log"):
        check_fork_point(team(), 99_999)
    check_fork_point(team(), fork_points(team())[10])


def test_a_fork_goes_on_with_what_was_changed_and_repeats_nothing(tmp_path: Path) -> None:
    looked_up = [entry.seq for entry in team().entries if entry.params.get("tool") == "look_up"]
    at = first_point_after(team(), max(looked_up))
    part = recorded(lived(whole, say=say), last=at)
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
