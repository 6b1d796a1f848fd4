"""Debbie looks at the others every 30 minutes, finds the one that is stuck, and tells the user."""

from __future__ import annotations

import asyncio

from ai_whisperer import AgentSession, AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.domain.tasks import TaskKind
from stage import create_agent, news, play, until


@tool(idempotent=True)
async def wait_for_build() -> str:
    """Wait until the build has ended and return its log."""
    await asyncio.Event().wait()  # this build never ends
    return ""


EVERY_HALF_HOUR = 1800.0
"""So her template says."""


async def run(manager: AsyncAgentSessionManager, *, period_seconds: float = EVERY_HALF_HOUR) -> str:
    debbie = await create_agent(manager, "debbie")
    await make_rounds_every(manager, period_seconds)
    coder = await create_agent(manager, "coder")

    # The first time, all is well
    if not await rounds_of(manager, debbie):
        await next_round(manager, debbie)

    # Then the coder gets stuck, and nobody but Debbie sees it
    await manager.send_task(coder, "Build the release and say how it went.", task_id="build")
    while not await has_written(manager, debbie) and debbie.state is not AgentState.STOPPED:
        await next_round(manager, debbie)

    # The user has read her mail
    if coder.state is not AgentState.STOPPED:
        await manager.stop_agent(coder, reason="The build hangs.")
    await manager.at_rest()
    return await news(manager)


async def make_rounds_every(manager: AsyncAgentSessionManager, period_seconds: float) -> None:
    """Give Debbie's schedule another period, for whoever does not want to wait for half an hour."""
    schedule = manager.get_schedule("debbie-1")
    if period_seconds not in (EVERY_HALF_HOUR, schedule.definition.interval_seconds):
        await manager.delete_schedule(schedule.id)
        await manager.create_schedule(
            "debbie", interval_seconds=period_seconds, prompt=schedule.definition.prompt, schedule_id=schedule.id
        )


async def next_round(manager: AsyncAgentSessionManager, debbie: AgentSession) -> None:
    """Wait until Debbie has made another round."""
    done = await rounds_of(manager, debbie)

    async def is_so() -> bool:
        return await rounds_of(manager, debbie) > done or debbie.state is AgentState.STOPPED

    await until(manager, is_so)


async def has_written(manager: AsyncAgentSessionManager, debbie: AgentSession) -> bool:
    return any(mail.sender == debbie.agent_id for mail in await manager.mailbox())


async def rounds_of(manager: AsyncAgentSessionManager, debbie: AgentSession) -> int:
    """How many rounds Debbie has made."""
    return sum(task.kind is TaskKind.SCHEDULED and task.state.ended for task in await manager.list_tasks(debbie))


if __name__ == "__main__":
    play(run, rules="debbie.yaml", tools=[wait_for_build], period_seconds=1.0)
