"""What the examples have in common: their agents, waiting for them, and showing what happens."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from ai_whisperer import AgentSession, AsyncAgentSessionManager, WhispererError
from ai_whisperer.cli.printable import printable
from ai_whisperer.cli.telling import shown_line
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.tools.function import AnyFunction

_WIDTH = 120
RULES = Path(__file__).parent / "rules"


async def create_agent(manager: AsyncAgentSessionManager, agent_id: str) -> AgentSession:
    """The agent of that name: a new one, or the one that is there since an earlier run."""
    return manager.active_sessions.get(agent_id) or await manager.create_agent(agent_id)


async def until(manager: AsyncAgentSessionManager, condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until the condition holds. It is looked at whenever something has happened."""
    subscription = manager.subscribe()
    while not (held if isinstance(held := condition(), bool) else await held):
        await subscription.some()
    subscription.close()
    await manager.flushed()


async def news(manager: AsyncAgentSessionManager) -> str:
    """What the agents have mailed to the user, the oldest first."""
    return "\n".join(f"{mail.sender} wrote: {mail.subject}\n{mail.body}" for mail in reversed(await manager.mailbox()))


def play(
    run: Callable[..., Awaitable[str]],
    *,
    rules: str,
    tools: Iterable[AnyFunction] = (),
    period_seconds: float | None = None,
) -> None:
    """Run an example as a program. One that has a period gets a short one here, unless another is asked for."""
    parser = argparse.ArgumentParser(description=sys.modules[run.__module__].__doc__)
    parser.add_argument("data", nargs="?", help="keep the session in this folder; run again to continue with it")
    parser.add_argument("--model", metavar="NAME", help="a real model, for instance openai-chat:NAME")
    if period_seconds is not None:
        parser.add_argument(
            "--period", type=float, default=period_seconds, metavar="SECONDS", help="time between looks"
        )
    given = parser.parse_args()
    terms = {} if period_seconds is None else {"period_seconds": given.period}
    try:
        with tempfile.TemporaryDirectory(prefix="whisperer-example-") as folder:
            model = given.model or f"scripted:{RULES / rules}"
            sys.exit(asyncio.run(_show(run, given.data or folder, model=model, tools=tools, terms=terms)))
    except KeyboardInterrupt:
        sys.exit(130)
    except WhispererError as error:
        sys.exit(error.message)


async def _show(
    run: Callable[..., Awaitable[str]],
    data: str,
    *,
    model: str,
    tools: Iterable[AnyFunction],
    terms: dict[str, Any],
) -> int:
    if model.startswith("scripted"):
        print("Model: the built-in scripted one, which gives fixed answers. Use a real one with --model.")
    manager = AsyncAgentSessionManager(data, model=model, tools=tools)
    await manager.open()
    telling = asyncio.create_task(_tell(manager.subscribe()))
    try:
        for task in (await manager.dead_letters()).tasks:
            if task.error is not None and task.error.code == "crash_limit":
                await manager.retry_task(task)  # whoever kills the example again and again wants to see it continue
        outcome = await run(manager, **terms)
        failed = [
            f"{task.agent_id}: {task.error.message}" for task in (await manager.dead_letters()).tasks if task.error
        ]
    finally:
        await manager.close()
        await telling  # it ends with the session
    print(printable("\n".join(["", outcome or "There is no result.", *failed])))
    return 0 if outcome and not failed else 1


async def _tell(subscription: Subscription) -> None:
    async for note in subscription:
        line = shown_line(note, width=_WIDTH)
        if line is not None:
            print(line, flush=True)
