"""Parallel analysis and report: two agents work at once, three talk by mail, and the user gets a report."""

from __future__ import annotations

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.examples.tools import read_feedback
from ai_whisperer.examples.workflows import PARALLEL_REPORT, Order, parallel_report
from stage import create_agent, news, play


async def run(manager: AsyncAgentSessionManager) -> str:
    for name in PARALLEL_REPORT.agents:
        await create_agent(manager, name)
    await parallel_report(manager, Order("customer sentiment from feedback.csv"))
    return await news(manager)


if __name__ == "__main__":
    play(run, rules="parallel_report.yaml", tools=[read_feedback])
