"""Task decomposition: a planner delegates three parts, three coders write them at once, an integrator joins them."""

from __future__ import annotations

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.examples.tools import combine_and_test
from ai_whisperer.examples.workflows import DECOMPOSITION, Order, decomposition
from stage import create_agent, news, play


async def run(manager: AsyncAgentSessionManager) -> str:
    for name in DECOMPOSITION.agents:
        await create_agent(manager, name)
    await decomposition(manager, Order(DECOMPOSITION.prompt))
    return await news(manager)


if __name__ == "__main__":
    play(run, rules="decomposition.yaml", tools=[combine_and_test])
