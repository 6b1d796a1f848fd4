"""Debbie looks at the others every 30 minutes, finds the one that is stuck, and tells the user."""

from __future__ import annotations

import asyncio

from ai_whisperer import AgentSession, AgentState, AsyncAgentSessionManager, tool
from ai_whisperer.records import TaskKind
from stage import at_rest, create_agent, news, play, until


@tool(idempotent=True)
async def wait_for_build() -> str:
    """Wait until the build has ended and return its log."""
    await asyncio.Event().wait()  # this build never ends
    return ""


async def run(manager: AsyncAgentSessionManager, *, period_seconds: float = 1800.0) -> str:
    debbie = await create_agent(manager, "debbie")
    coder = await create_agent(manager, "coder")

    # The first time, all is well
    if not rounds_of(manager, debbie):
        await next_round(manager, debbie, period_seconds)

    # Then the coder gets stuck, and nobody but Debbie sees it
    await manager.send_task(coder, "Build the release and say how it went.", task_id="build")
    while not has_written(manager, debbie) and debbie.state is not AgentState.STOPPED:
        await next_round(manager, debbie, period_seconds)

    # The user has read her mail
    if coder.state is not AgentState.STOPPED:
        await manager.stop_agent(coder, reason="The build hangs.")
    await at_rest(manager)
    return news(manager)


async def next_round(manager: AsyncAgentSessionManager, debbie: AgentSession, period_seconds: float) -> None:
    """Let Debbie sleep until her next round, unless she does already, and wait until she has made it."""
    done = rounds_of(manager, debbie)
    status = manager.get_agent_status(debbie)
    if status.state is AgentState.IDLE and not status.queue_size:
        await manager.sleep_agent(debbie, duration_seconds=period_seconds, reason="until the next round")
    await until(manager, lambda: rounds_of(manager, debbie) > done or debbie.state is AgentState.STOPPED)


def has_written(manager: AsyncAgentSessionManager, debbie: AgentSession) -> bool:
    return any(mail.sender == debbie.agent_id for mail in manager.mailbox())


def rounds_of(manager: AsyncAgentSessionManager, debbie: AgentSession) -> int:
    """How many rounds Debbie has made."""
    return sum(task.kind is TaskKind.WAKE and task.state.ended for task in manager.list_tasks(debbie))


if __name__ == "__main__":
    play(run, rules="debbie.yaml", tools=[wait_for_build], period_seconds=0.7)
