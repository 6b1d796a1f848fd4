"""Switching: Alice asks Patricia and waits; Patricia reads the mail, replies, and Alice continues with the answer."""

from __future__ import annotations

from ai_whisperer import AsyncAgentSessionManager
from stage import create_agent, play


async def run(manager: AsyncAgentSessionManager) -> str:
    alice = await create_agent(manager, "alice")
    await create_agent(manager, "patricia")
    answer = await manager.run_task(alice, "Send mail to Patricia asking about RFC review", task_id="ask-patricia")
    await manager.at_rest()
    return answer


if __name__ == "__main__":
    play(run, rules="switch.yaml")
