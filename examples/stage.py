"""What the examples have in common: their agents, waiting for them, and showing what happens."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from ai_whisperer import AgentSession, AgentState, AsyncAgentSessionManager, WhispererError
from ai_whisperer.cli.telling import line_of
from ai_whisperer.runtime.bus import Subscription
from ai_whisperer.runtime.manager import AnyFunction

RULES = Path(__file__).parent / "rules"

TEAM: dict[str, dict[str, Any]] = {
    "analyzer": {
        "description": "Reads data and says what it means",
        "prompt": "You analyse data with your tools. Give numbers, not impressions. Mail the result to whoever needs "
        "it, then say in one sentence what you have done.",
    },
    "writer": {
        "description": "Writes reports",
        "prompt": "You write short reports. When results come by mail, put them into the template that you prepared, "
        "leave nothing out, and mail the whole report to the reviewer.",
    },
    "reviewer": {
        "description": "Checks reports and delivers them",
        "prompt": "You check drafts against their figures. Reply to the writer with 'Approved' or with what is wrong. "
        "When you approve, also mail the whole report to 'user'.",
    },
    "monitor": {
        "description": "Sleeps until it is needed, then looks at the team",
        "prompt": "You watch over the other agents. Whenever you are woken, look at them (list_agents), mail a short "
        "report with the reason to 'user', and sleep again until one of the events alert and hourly_check.",
        "subscribes": ["alert", "hourly_check"],
    },
    "planner": {
        "description": "Splits work into parts and hands them out",
        "prompt": "You split work into parts that can be done at the same time and give each to another coder with "
        "delegate_task. Name the parts Task A, Task B and so on, say exactly what is wanted, and tell each coder to "
        "mail its part to the integrator under the subject 'Part A' and so on. Write to the integrator only if parts "
        "have to be changed. When results come, just take note of them.",
    },
    "coder": {
        "description": "Writes Python functions",
        "prompt": "You write one small Python function as you are told. Mail its code, and nothing else, to the "
        "integrator under the subject that you are told, then answer in one sentence.",
    },
    "integrator": {
        "description": "Puts the parts together and tests them",
        "prompt": "Three coders mail you the parts A, B and C. At each mail call check_mail with include_read to see "
        "which parts have come so far. If one is missing, say so and end. Only when you have all three, call "
        "combine_and_test with their code, and mail what it says to 'user'.",
    },
    "alice": {
        "description": "Collects what is known and asks others",
        "prompt": "You are Alice. You do what you are asked. If you need an answer from another agent at once, ask it "
        "with send_mail_with_switch and tell what it replied.",
    },
    "patricia": {
        "description": "Plans, writes and reviews",
        "prompt": "You are Patricia. You plan and write. When you are told that you have mail, look at it with "
        "check_mail and answer it with reply_mail. Results that come for your present work go into it, and you mail "
        "the outcome to Eamonn.",
    },
    "eamonn": {
        "description": "Finishes things and delivers them",
        "prompt": "You are Eamonn. You put the last hand to what you get. What comes by mail you deliver by mail to "
        "'user'.",
    },
    "debbie": {
        "description": "Looks after the other agents at regular times",
        "prompt": "You are Debbie. Whenever you are woken, make your round: list_agents, then agent_status for each "
        "agent that is active, yourself apart. One that has finished no step for most of the time since your last "
        "round is stuck: mail 'user' which one, on what, and for how long. If none is, answer 'All is well.' and mail "
        "nobody.",
    },
}


async def create_agent(
    manager: AsyncAgentSessionManager, agent_id: str, *, template: str | None = None
) -> AgentSession:
    """The agent of that name: a new one, or the one that is there since an earlier run."""
    known = manager.active_sessions.get(agent_id)
    return known or await manager.create_agent(agent_id, TEAM[template or agent_id])


async def until(manager: AsyncAgentSessionManager, condition: Callable[[], bool]) -> None:
    """Wait until the condition holds. It is looked at whenever something has happened."""
    subscription = manager.subscribe()
    if not condition():
        async for _ in subscription:
            if condition():
                break
    subscription.close()
    await manager.flushed()


async def at_rest(manager: AsyncAgentSessionManager) -> None:
    """Wait until no agent has anything left to do."""
    await until(manager, lambda: all(rests(manager, agent) for agent in manager.active_sessions.values()))


def rests(manager: AsyncAgentSessionManager, agent: AgentSession) -> bool:
    """Whether the agent has nothing to do, or does nothing until somebody lets it."""
    status = manager.get_agent_status(agent)
    return status.state is not AgentState.ACTIVE and (status.state is not AgentState.IDLE or not status.queue_size)


def news(manager: AsyncAgentSessionManager) -> str:
    """What the agents have mailed to the user, the oldest first."""
    return "\n".join(f"{mail.sender} wrote: {mail.subject}\n{mail.body}" for mail in reversed(manager.mailbox()))


def play(
    run: Callable[..., Awaitable[str]],
    *,
    rules: str,
    tools: Iterable[AnyFunction] = (),
    period_seconds: float | None = None,
) -> None:
    """Run an example as a program. One that has a period gets a short one here, unless another is asked for."""
    parser = argparse.ArgumentParser(description=sys.modules[run.__module__].__doc__)
    parser.add_argument("data", nargs="?", help="keep the session in this folder; run again to go on with it")
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
        print("Model: the built-in scripted one, which plays fixed answers. Use a real one with --model.")
    manager = AsyncAgentSessionManager(data, model=model, tools=tools)
    await manager.open()
    telling = asyncio.create_task(_tell(manager.subscribe()))
    try:
        outcome = await run(manager, **terms)
        failed = [f"{task.agent_id}: {task.error.message}" for task in manager.dead_letters().tasks if task.error]
    finally:
        await manager.close()
        await telling  # it ends with the session
    print("\n".join(["", outcome or "Nothing has come of it.", *failed]))
    return 0 if outcome and not failed else 1


async def _tell(subscription: Subscription) -> None:
    async for note in subscription:
        line = line_of(note)
        if line is not None:
            print(line, flush=True)
