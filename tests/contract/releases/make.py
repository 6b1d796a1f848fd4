"""Writes what a process that was killed leaves of a small session, as SQL: `python -m tests.contract.releases.make`.

Run it with the code of a release, and keep the output beside this as `schema_NN.sql`: the journals in it have to go on
under all later versions.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer, ToolCall, Usage, UserTurn
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest, StreamEvent
from ai_whisperer.models.scripted import FunctionModel

CLERK = "---\nname: clerk\ndescription: Files things.\ntools: [send_mail]\n---\nYou are the clerk of the first day.\n"


@tool
async def look_up(city: str) -> str:
    """Look up a city."""
    return f"{city} is fine"


@tool
async def old_tool(text: str) -> str:
    """Do something that takes long."""
    await asyncio.sleep(3600)
    return text


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


def _call(name: str, **arguments: Any) -> Answer:
    text = msgspec.json.encode(arguments).decode()
    return Answer(
        tool_calls=(ToolCall(call_id="c0", name=name, arguments=text),), usage=Usage(input_tokens=10, output_tokens=5)
    )


def _say(request: ModelRequest) -> Answer | str:
    prompt, is_first = _prompt_of(request), isinstance(request.turns[-1], UserTurn)
    if "fail" in prompt:
        raise ModelRefusedError("No.")
    if not is_first:
        return "done"
    if "research" in prompt:
        return _call("look_up", city="Ulm")
    if "grind" in prompt:
        return _call("old_tool", text="slowly")
    if "spend" in prompt:
        return _call("pay", amount=5)
    if "ask" in prompt:
        return _call("send_mail_with_switch", to_agent="ben", subject="well?", body="What do you think?")
    return "done"


class _Model(FunctionModel):
    """Thinks about what was researched for as long as the process lives."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if "research" in _prompt_of(request) and not isinstance(request.turns[-1], UserTurn):
            await asyncio.sleep(3600)
        async for event in super().stream(request):
            yield event


def _prompt_of(request: ModelRequest) -> str:
    return next(turn.text for turn in reversed(request.turns) if isinstance(turn, UserTurn))


async def _live(folder: Path) -> str:
    templates = folder / "templates"
    templates.mkdir()
    (templates / "clerk.md").write_text(CLERK)
    manager = AsyncAgentSessionManager(
        folder / "data",
        tools=[look_up, old_tool, pay],
        model_factory=lambda _: _Model(_say),
        templates=[templates],
    )
    await manager.open()
    await manager.create_agent("ann", {"tools": ["look_up"]})
    await manager.create_agent("pam", {"tools": ["pay"]})
    await manager.create_agent("una", {"tools": ["send_mail_with_switch"]})
    await manager.create_agent("max", {"tools": ["old_tool"]})
    await manager.create_agent("ben")
    await manager.create_agent("clerk", template="clerk")
    await manager.run_task("ann", "say something", task_id="said", thread_id="talk")
    await manager.wait_task(await manager.send_task("ann", "fail", task_id="dead"))
    await manager.pause_agent("ben")
    for task_id, agent, prompt in (
        ("research", "ann", "research, please"),
        ("spend", "pam", "spend something"),
        ("ask", "una", "ask him"),
        ("grind", "max", "grind away"),
        ("queued", "ben", "wait for me"),
    ):
        await manager.send_task(agent, prompt, task_id=task_id)
    await manager.stop_agent("clerk")
    await manager.send_mail("clerk", "Please", "file this", mail_id="filed")
    await manager.create_schedule("ben", cron="0 9 * * *", prompt="good morning", schedule_id="daily")
    await manager.create_room(["ann", "ben"], room_id="lobby", title="Team")
    await asyncio.sleep(2)  # by then all have come as far as they can
    await manager.flushed()
    return _dump(folder / "data" / "whisperer.db")  # as it is now: nobody closes it


def _dump(path: Path) -> str:
    connection = apsw.Connection(str(path))
    ((version,),) = connection.execute("PRAGMA user_version")
    ((application,),) = connection.execute("PRAGMA application_id")
    lines = [f"PRAGMA application_id={application};", f"PRAGMA user_version={version};"]
    tables = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE type='table' ORDER BY name"))
    lines += [f"{sql};" for _, sql in tables]
    lines += [f"{sql};" for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE type='index' AND sql>''")]
    for name, _ in tables:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        quoted = " || ',' || ".join(f"quote({column})" for column in columns)
        rows = connection.execute(f"SELECT {quoted} FROM {name}")  # noqa: S608 - names of the schema
        lines += [f"INSERT INTO {name} VALUES({row});" for (row,) in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(asyncio.run(_live(Path(folder))))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
