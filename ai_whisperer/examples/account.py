"""What the demo shows for itself: what was there when the plug was pulled, and what has become of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ai_whisperer.client import Client
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.tasks import StepKind, StepRecord
from ai_whisperer.examples.workflows import WELL, troubles_of
from ai_whisperer.store.sqlite import SqliteStore

_ALL = 10_000


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was on disk at a moment when nothing ran: ids of tasks and mails, and when each finished step ended."""

    tasks: frozenset[str]
    mails: frozenset[str]
    finished: Mapping[str, float]


class Account(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures of the demo. Those about the plug are 0 if it was not pulled."""

    model: str
    results: Mapping[str, str]
    tasks: int
    completed: int
    unfinished: int
    failed: tuple[str, ...]
    mails: int
    model_requests: int
    tool_calls: int
    tokens: int
    cost_usd: float | None
    plug_pulled: bool
    finished_before: int
    repeated: int
    begun_anew: int
    lost: int

    @property
    def is_well(self) -> bool:
        """Whether nothing was lost, repeated, failed or left undone, and every workflow has brought something."""
        return not (self.failed or self.unfinished or self.lost or self.repeated) and all(self.results.values())


async def evidence_in(data: Path, session_id: str) -> Evidence:
    """Read the database while nobody has it open."""
    store = SqliteStore.open(data)
    try:
        tasks = await store.tasks(session_id, limit=_ALL)
        owners = [USER, *(agent.id for agent in (await store.load(session_id)).agents)]
        mails = [mail.id for owner in owners for mail in await store.mailbox(session_id, owner, limit=_ALL)]
        steps = [step for task in tasks for step in await store.steps(session_id, task.id)]
    finally:
        store.abandon()
    return Evidence(
        tasks=frozenset(task.id for task in tasks), mails=frozenset(mails), finished=_finished(steps)
    )  # fmt: skip


async def take_account(client: Client, *, model: str, results: Mapping[str, str], before: Evidence | None) -> Account:
    """Ask the server what has become of everything."""
    tasks = await client.list_tasks(limit=_ALL)
    owners = [USER, *(status.agent_id for status in await client.list_agents())]
    mails = [mail.id for owner in owners for mail in await client.mailbox(owner, limit=_ALL)]
    steps = [step for task in tasks for step in await client.list_steps(task)]
    finished = _finished(steps)
    known = before or Evidence(tasks=frozenset(), mails=frozenset(), finished={})
    lost = (known.tasks - {task.id for task in tasks}) | (known.mails - set(mails)) | (known.finished.keys() - finished)
    used = (await client.usage()).total.usage
    return Account(
        model=model,
        results=results,
        tasks=len(tasks),
        completed=sum(task.state in WELL for task in tasks),
        unfinished=sum(not task.state.ended for task in tasks),
        failed=tuple(troubles_of(task for task in tasks if task.state.ended)),
        mails=len(mails),
        model_requests=sum(step.kind is StepKind.MODEL for step in steps),
        tool_calls=sum(step.kind is StepKind.TOOL for step in steps),
        tokens=used.input_tokens + used.output_tokens,
        cost_usd=used.cost_usd,
        plug_pulled=before is not None,
        finished_before=len(known.finished),
        repeated=sum(finished.get(step_id, ended) != ended for step_id, ended in known.finished.items()),
        begun_anew=sum(_was_begun_anew(step) for step in steps),
        lost=len(lost),
    )


def _was_begun_anew(step: StepRecord) -> bool:
    """Whether there was another attempt, and not because one had failed."""
    return step.failures < step.attempt - 1 and not step.outage_seconds


def _finished(steps: list[StepRecord]) -> dict[str, float]:
    return {step.id: step.finished_at for step in steps if step.finished_at is not None}
