"""From sequential to parallel: the same work by the same three agents, one after another and side by side."""

from __future__ import annotations

from ai_whisperer import AsyncAgentSessionManager
from stage import create_agent, news, play

CHANGES = "search is fast now, drafts can be shared, there are dark colours"


async def run(manager: AsyncAgentSessionManager) -> str:
    for name in ("alice", "patricia", "eamonn"):
        await create_agent(manager, name)
    await before(manager)
    await after(manager)
    if not await manager.mailbox():
        return ""
    sequential, parallel = await seconds_of(manager, "sequential"), await seconds_of(manager, "parallel")
    return f"{await news(manager)}\nOne after another: {sequential:.1f} s. In parallel: {parallel:.1f} s."


async def before(manager: AsyncAgentSessionManager) -> str:
    # Alice does task 1
    result1 = await manager.run_task(
        "alice", f"Do task 1: list what is new, given that {CHANGES}.", task_id="task-1", thread_id="sequential"
    )
    # Then Patricia does task 2
    result2 = await manager.run_task(
        "patricia",
        f"Do task 2: outline and then write an announcement of this: {result1}",
        task_id="task-2",
        thread_id="sequential",
    )
    # Then Eamonn does task 3
    return await manager.run_task(
        "eamonn", f"Do task 3: make this ready to be published: {result2}", task_id="task-3", thread_id="sequential"
    )


async def after(manager: AsyncAgentSessionManager) -> None:
    # Start independent tasks in parallel
    await manager.send_task(
        "alice",
        f"Do task 1: list what is new, given that {CHANGES}. Mail the result to Patricia.",
        task_id="alice-task",
        thread_id="parallel",
    )
    await manager.send_task(
        "patricia",
        "Prepare for task 2: outline an announcement. Alice will mail you what is new; mail the finished text to "
        "Eamonn then.",
        task_id="patricia-prep",
        thread_id="parallel",
    )

    # When alice completes, she sends result to patricia
    # Patricia combines prep work with alice's result
    # Eamonn monitors and processes when ready
    await manager.at_rest()


async def seconds_of(manager: AsyncAgentSessionManager, thread_id: str) -> float:
    """How long the work in this thread took, from the first order to the last answer."""
    tasks = [
        task
        for name in ("alice", "patricia", "eamonn")
        for task in await manager.list_tasks(name)
        if task.thread_id == thread_id
    ]
    return max(task.finished_at or 0.0 for task in tasks) - min(task.created_at for task in tasks)


if __name__ == "__main__":
    play(run, rules="migration.yaml")
