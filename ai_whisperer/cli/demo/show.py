"""Shows the demo: starts the team, pulls its plug in the middle, starts it again, and sums up."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.cli.demo.team import DONE, READY
from ai_whisperer.records import StepKind, TaskState
from ai_whisperer.store.sqlite import SqliteStore

_SESSION = "default"
_LINES_BEFORE_THE_PLUG_IS_PULLED = 7


def show(*, data: str | None, model: str | None) -> int:
    """Run the demo in a folder, or in a temporary one; returns the exit code."""
    if data is not None:
        return _show(Path(data), model)
    with tempfile.TemporaryDirectory(prefix="whisperer-demo-") as folder:
        return _show(Path(folder), model)


def _show(data: Path, model: str | None) -> int:
    if model is None:
        print("Model: the built-in scripted one. It plays fixed answers, so no key is needed; --model uses a real one.")
    print("Three agents turn feedback into a report. They run side by side and talk only by mail.\n")
    code = _run_team(data, model, kill_after_lines=_LINES_BEFORE_THE_PLUG_IS_PULLED)
    finished: dict[str, float] = {}
    if code == -signal.SIGKILL:
        finished = asyncio.run(_finished_steps(data))
        print("\n      *** kill -9: the process is gone, in the middle of its work. Starting it again. ***\n")
        code = _run_team(data, model, kill_after_lines=None)
    return code or asyncio.run(_sum_up(data, finished))


def _run_team(data: Path, model: str | None, *, kill_after_lines: int | None) -> int:
    """Run the team's process and pass on what it tells; returns its exit code."""
    command = [sys.executable, "-m", "ai_whisperer.cli.demo.team", str(data), *([model] if model else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as team:  # noqa: S603 - our own module
        told = 0
        for line in team.stdout or ():
            if line.strip() in (READY, DONE):
                continue
            print(line, end="", flush=True)
            told += 1
            if told == kill_after_lines:
                team.kill()
                break
    return team.returncode


async def _finished_steps(data: Path) -> dict[str, float]:
    """When each finished step ended, by its id, read from the database while nothing runs."""
    store = SqliteStore.open(data)
    agents = store.load(_SESSION).agents
    tasks = [task for agent in agents for task in store.tasks_of_agent(_SESSION, agent.id, limit=100)]
    steps = [step for task in tasks for step in store.steps(task.session_id, task.id)]
    await store.close()
    return {step.id: step.finished_at for step in steps if step.finished_at is not None}


async def _sum_up(data: Path, finished_before: dict[str, float]) -> int:
    async with AsyncAgentSessionManager(data, session_id=_SESSION) as manager:
        tasks = [task for status in manager.list_agents() for task in manager.list_tasks(status.agent_id)]
        steps = [step for task in tasks for step in manager.list_steps(task.id)]
        reports = manager.mailbox()
    ended = sum(task.state is TaskState.COMPLETED for task in tasks)
    requests = sum(step.kind is StepKind.MODEL for step in steps)
    interrupted = sum(step.attempt > 1 for step in steps)
    repeated = sum(step.finished_at != finished_before.get(step.id, step.finished_at) for step in steps)
    print("\nThe user's inbox:" if reports else "\nNo report has arrived.")
    for report in reports:
        print(f"  {report.subject}\n    {report.body}")
    for task in tasks:
        if task.error is not None:
            print(f"  {task.agent_id} failed: {task.error.message}")
    print(f"\n{ended} of {len(tasks)} tasks completed, {requests} model requests, {len(steps) - requests} tool calls.")
    if finished_before:
        print(
            f"When the plug was pulled, {len(finished_before)} steps were finished: {repeated} of them were done "
            f"again. {interrupted} were under way and were begun anew."
        )
    return 0 if reports and ended == len(tasks) and repeated == 0 else 1
