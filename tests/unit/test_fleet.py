"""What a person is told about an agent that takes no work."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ai_whisperer.cli.fleet import hindrance
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.conversation import Usage

AT_WORK = AgentStatus(
    agent_id="ann",
    state=AgentState.ACTIVE,
    current_task=None,
    queue_size=0,
    sleeping_until=None,
    started=True,
    reason="",
    unread_mail=0,
    running_tasks=(),
    progress_percent=None,
    progress_note="",
    tasks=0,
    usage=Usage(),
    name="Ann",
    description="",
)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            replace(AT_WORK, state=AgentState.PAUSED),
            "ann is paused and takes no work now. To change that: whisperer resume ann",
        ),
        (
            replace(AT_WORK, state=AgentState.SLEEPING),
            "ann is sleeping and takes no work now. To change that: whisperer wake ann",
        ),
        (
            replace(AT_WORK, state=AgentState.STOPPED, started=False, reason="too many failures"),
            "ann is stopped (too many failures) and takes no work now. To change that: whisperer start ann",
        ),
        (
            replace(AT_WORK, state=AgentState.IDLE, started=False),
            "ann is not started and takes no work now. To change that: whisperer start ann",
        ),
        (
            replace(AT_WORK, missing_tools=("stock_of",)),
            "ann waits for tools that nobody has provided: stock_of. Start the program that has them.",
        ),
    ],
)
def test_an_agent_that_takes_no_work_is_explained(status: AgentStatus, told: str) -> None:
    assert hindrance(status) == told


def test_of_an_agent_at_work_nothing_is_told() -> None:
    assert hindrance(AT_WORK) is None
    assert hindrance(replace(AT_WORK, state=AgentState.IDLE)) is None


@pytest.mark.parametrize(
    ("limit", "command"),
    [
        ("max_tokens_per_agent", "whisperer limits set --agent ann max_tokens_per_agent=NUMBER"),
        ("max_tokens", "whisperer limits set max_tokens=NUMBER"),
        (None, "whisperer resume ann"),
    ],
)
def test_an_agent_that_is_paused_for_a_limit_is_helped_by_a_larger_one(limit: str | None, command: str) -> None:
    paused = replace(AT_WORK, state=AgentState.PAUSED, paused_limit=limit)
    assert str(hindrance(paused)).endswith(f"To change that: {command}")
