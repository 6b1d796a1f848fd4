"""Parallel analysis and report: two agents work at once, three talk by mail, and the user gets a report."""

from __future__ import annotations

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.examples.tools import read_feedback
from stage import create_agent, news, play


async def run(manager: AsyncAgentSessionManager) -> str:
    # Create agents
    analyzer = await create_agent(manager, "analyzer")
    writer = await create_agent(manager, "writer")
    await create_agent(manager, "reviewer")

    # Start parallel workflow. In one thread, so that the writer still knows its template when the results come.
    await manager.send_task(
        analyzer,
        "Analyze customer sentiment from feedback.csv. Mail the result to the writer.",
        task_id="analysis",
        thread_id="report",
    )
    await manager.send_task(
        writer,
        "Prepare report template for sentiment analysis. The analyzer will mail you the result.",
        task_id="template",
        thread_id="report",
    )

    # Analyzer finishes and sends results to writer
    # Writer incorporates results and sends to reviewer
    # Reviewer approves and notifies completion
    await manager.at_rest()
    return await news(manager)


if __name__ == "__main__":
    play(run, rules="parallel_report.yaml", tools=[read_feedback])
