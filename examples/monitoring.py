"""Monitoring with sleep and wake: a monitor sleeps until an alert, an hourly check or a person wakes it."""

from __future__ import annotations

import asyncio

from ai_whisperer import AgentSession, AgentState, AsyncAgentSessionManager, TaskRecord
from stage import create_agent, news, play, until

REASON = "User requested immediate check"
HOURLY = "monitor-1"
"""The schedule that the monitor has from its template."""


async def run(manager: AsyncAgentSessionManager, *, period_seconds: float = 3600.0) -> str:
    # Create monitor agent
    monitor = await create_agent(manager, "monitor")

    # The timer: the schedule of the monitor's template broadcasts an event every hour
    if not await was_broadcast(manager, "hourly_check"):
        await check_every(manager, period_seconds)

    # Set to wake on events
    await back_to_sleep(manager, monitor)

    # Monitor sleeps until:
    # - An "alert" event is broadcast
    if not await was_broadcast(manager, "alert"):
        await asyncio.sleep(period_seconds / 4)
        await manager.broadcast_event("alert", {"disk": "90 % full"})
    await checked(manager, monitor, "Event 'alert'")

    # - The "hourly_check" timer fires
    await checked(manager, monitor, "Event 'hourly_check'")

    # - Manual wake is triggered
    if manager.list_schedules():
        await manager.delete_schedule(HOURLY)
    await until(manager, lambda: monitor.state is AgentState.SLEEPING)
    if not await tasks_with(manager, monitor, REASON):
        await manager.wake_agent(monitor, reason=REASON)
    await checked(manager, monitor, REASON)
    return await news(manager)


async def check_every(manager: AsyncAgentSessionManager, period_seconds: float) -> None:
    """Give the hourly check another period, for whoever does not want to wait for an hour."""
    known = [schedule for schedule in manager.list_schedules() if schedule.id == HOURLY]
    if [schedule.definition.interval_seconds for schedule in known] == [period_seconds]:
        return
    if known:
        await manager.delete_schedule(HOURLY)
    await manager.create_schedule("monitor", interval_seconds=period_seconds, event="hourly_check", schedule_id=HOURLY)


async def checked(manager: AsyncAgentSessionManager, monitor: AgentSession, why: str) -> None:
    """Wait until the monitor, told why, has looked around; it sleeps then."""

    async def is_so() -> bool:
        return any(task.state.ended for task in await tasks_with(manager, monitor, why))

    await until(manager, is_so)
    await back_to_sleep(manager, monitor)


async def back_to_sleep(manager: AsyncAgentSessionManager, monitor: AgentSession) -> None:
    """Put a monitor to sleep that is awake for no reason: a new one, or one that forgot to do so by itself."""
    status = manager.get_agent_status(monitor)
    if status.state is AgentState.IDLE and not status.queue_size:
        await manager.sleep_agent(monitor, wake_events=["alert", "hourly_check"])


async def was_broadcast(manager: AsyncAgentSessionManager, event: str) -> bool:
    return any(record.name == event for record in await manager.list_events())


async def tasks_with(manager: AsyncAgentSessionManager, monitor: AgentSession, words: str) -> list[TaskRecord]:
    return [task for task in await manager.list_tasks(monitor) if words in task.prompt]


if __name__ == "__main__":
    play(run, rules="monitoring.yaml", period_seconds=1.0)
