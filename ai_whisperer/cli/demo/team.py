"""The process that runs the demo's team. It can be killed at any moment and started again on the same folder."""

from __future__ import annotations

import asyncio
import csv
import sys
from collections import Counter
from importlib import resources
from pathlib import Path

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.cli.telling import line_of
from ai_whisperer.definition import AgentDefinition
from ai_whisperer.errors import WhispererError

READY = "ready"
DONE = "done"


@tool(idempotent=True)
async def read_feedback() -> str:
    """Count the ratings in the customers' feedback."""
    await asyncio.sleep(0.5)
    rows = list(csv.DictReader(_file("feedback.csv").read_text(encoding="utf-8").splitlines()))
    tones = Counter("good" if int(row["rating"]) > 3 else "bad" if int(row["rating"]) < 3 else "mixed" for row in rows)
    average = sum(int(row["rating"]) for row in rows) / len(rows)
    return (
        f"{len(rows)} comments, average rating {average:.2f}: "
        f"{tones['good']} good, {tones['mixed']} mixed, {tones['bad']} bad."
    )


async def run(data: Path, model: str | None) -> None:
    """Create the team if it is not there yet, give it its tasks once, and tell what happens until the report is in."""
    async with AsyncAgentSessionManager(data, tools=[read_feedback]) as manager:
        subscription = manager.subscribe()
        model = model or f"scripted:{_file('rules.yaml')}"
        for agent_id, definition in _team(model).items():
            if agent_id not in manager.active_sessions:
                await manager.create_agent(agent_id, definition)
        print(READY, flush=True)
        await manager.send_task("analyzer", "Analyze customer sentiment from feedback.csv", task_id="demo-analysis")
        await manager.send_task("writer", "Prepare a report template for sentiment analysis", task_id="demo-template")
        if not _is_finished(manager):
            async for note in subscription:
                line = line_of(note)
                if line is not None:
                    print(line, flush=True)
                if note.seq == manager.last_seq and _is_finished(manager):
                    break
    print(DONE, flush=True)


def _team(model: str) -> dict[str, AgentDefinition]:
    return {
        "analyzer": AgentDefinition(
            name="The analyzer",
            description="Reads feedback and counts",
            model=model,
            prompt="You analyse feedback with read_feedback and mail the result to the writer, then say so.",
        ),
        "writer": AgentDefinition(
            name="The writer",
            description="Writes reports",
            model=model,
            prompt="You write short reports. When you get an analysis by mail, mail a draft to the reviewer.",
        ),
        "reviewer": AgentDefinition(
            name="The reviewer",
            description="Checks reports and delivers them",
            model=model,
            prompt="You check drafts. Reply to the writer, and mail the approved report to 'user'.",
        ),
    }


def _is_finished(manager: AsyncAgentSessionManager) -> bool:
    return all(status.state == "idle" and not status.queue_size for status in manager.list_agents())


def _file(name: str) -> Path:
    return Path(str(resources.files("ai_whisperer.cli.demo") / name))


if __name__ == "__main__":
    try:
        asyncio.run(run(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
    except KeyboardInterrupt:
        sys.exit(130)
    except WhispererError as error:
        sys.exit(f"whisperer: {error.message}")
