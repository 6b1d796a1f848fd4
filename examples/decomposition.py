"""Task decomposition: a planner delegates three parts, three coders write them at once, an integrator joins them."""

from __future__ import annotations

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.examples.tools import combine_and_test
from stage import create_agent, news, play


async def run(manager: AsyncAgentSessionManager) -> str:
    # Planner decomposes work
    planner = await create_agent(manager, "planner")
    for coder in ("coder1", "coder2", "coder3"):
        await create_agent(manager, coder, template="coder")
    await create_agent(manager, "integrator")
    await manager.send_task(
        planner,
        "Create plan for new feature implementation: statistics about the words of a text, as the three Python "
        "functions count_words, longest_word and most_common_word.",
        task_id="plan",
    )

    # Planner creates tasks and delegates:
    # - Task A → Coder1
    # - Task B → Coder2
    # - Task C → Coder3

    # Coders work in parallel
    # Each sends results to integrator when done
    # Integrator combines and tests
    await manager.at_rest()
    return await news(manager)


if __name__ == "__main__":
    play(run, rules="decomposition.yaml", tools=[combine_and_test])
