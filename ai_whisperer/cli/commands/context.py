"""`whisperer context`: what the model of an agent is shown of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from ai_whisperer.cli.arguments import once_option
from ai_whisperer.cli.calling import Connected, group
from ai_whisperer.cli.connecting import AgentName
from ai_whisperer.cli.output import Column
from ai_whisperer.core.tasks import check_answered
from ai_whisperer.domain.compactions import ContextReport
from ai_whisperer.errors import InvalidInputError

ThreadOption = Annotated[
    str | None, typer.Option("--thread", metavar="NAME", help="The thread; without it, the one that was used last.")
]


def register(app: typer.Typer) -> None:
    told = "Show what an agent's model is shown of a conversation; make it shorter."
    group(app, "context", list_contexts, show, compact, help=told)


async def list_contexts(call: Connected) -> None:
    """Show of each agent how long the conversation is that it had last."""
    reports = [report for agent in await call.client.list_agents() if (report := await _report(call, agent.agent_id))]
    call.output.table(reports, CONTEXTS, empty="No agent has had a conversation yet.")


async def _report(call: Connected, agent_id: str) -> ContextReport | None:
    try:
        return await call.client.get_context(agent_id)
    except InvalidInputError:
        return None  # it was told nothing yet


async def show(call: Connected, agent: AgentName, *, thread: ThreadOption = None) -> None:
    """Show how long a conversation is, and what stands for the part of it that is no longer shown."""
    report = await call.client.get_context(agent, thread_id=thread)
    call.output.told(report, "\n".join(_lines(report)))


async def compact(
    call: Connected,
    agent: AgentName,
    *,
    thread: ThreadOption = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is done.")] = False,
    task_id: Annotated[str | None, once_option("made")] = None,
) -> None:
    """Make a conversation as short as can be for the agent's model. Nothing is deleted: the journal keeps all of it."""
    task = await call.client.compact_context(agent, thread_id=thread, task_id=task_id)
    if no_wait:
        call.output.told(task, f"Task {task.id} will make it shorter when it is its turn.")
        return
    ended = await call.client.wait_task(task)
    call.output.told(ended, check_answered(ended).final)


def _lines(report: ContextReport) -> Iterator[str]:
    known = "" if report.window_known else ", which is assumed: state context.window"
    yield f"Thread {report.thread_id} of {report.agent_id}: about {report.tokens:,} tokens in {report.turns:,} turns."
    yield f"The model takes {report.window:,}{known}; beyond {report.limit_tokens:,} it is made shorter."
    if not report.compacts:
        yield "It is never made shorter by itself (context.compact: off)."
    yield f"From the provider's cache so far: {report.cached_share:.0%} of what was sent."
    made = report.compaction
    if made is None:
        yield "It was never made shorter."
        return
    sizes = f"{made.tokens_before:,} tokens became {made.tokens_after:,}"
    yield f"Made shorter last ({made.reason}, {made.kind}) in step {report.compacted_in}: {sizes}."
    if made.problem:
        yield f"There is no summary, since {made.problem}."
    if made.summary:
        yield f"\n{made.summary}"
    if made.card:
        yield f"\n{made.card}"


CONTEXTS: Sequence[Column[ContextReport]] = (
    Column("AGENT", lambda each: each.agent_id, whole=True),
    Column("THREAD", lambda each: each.thread_id),
    Column("TOKENS", lambda each: f"{each.tokens:,}", right=True),
    Column("OF", lambda each: f"{each.window:,}", right=True),
    Column("CACHED", lambda each: f"{each.cached_share:.0%}", right=True),
    Column("SHORTENED", lambda each: "" if each.compaction is None else f"{each.compaction.kind}"),
)
