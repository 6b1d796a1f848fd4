"""One universe: a team with the faults of a schedule, from the first line of its script to its rest, and what held."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.simulation.loop import EPOCH
from ai_whisperer.storm.choosing import Shape
from ai_whisperer.storm.faults import AnyFault, Schedule
from ai_whisperer.storm.injecting import MOST_ROUNDS
from ai_whisperer.storm.invariants import Violation, violations
from ai_whisperer.storm.log import Absent, Log, ToolFailure, Waiting
from ai_whisperer.storm.people import PATIENCE_SECONDS
from ai_whisperer.storm.process import DiedError, RestlessError, UniverseProcess
from ai_whisperer.storm.team import StormTeam
from ai_whisperer.tools.registry import COORDINATION_TOOLS, NAMED_TOOLS, machine_tools

SESSION = "storm"
EXPECTED = "what_the_script_expects"
RESTLESS = "the_team_comes_to_rest"
_MOST = 1_000_000
_LOGGERS = ("ai_whisperer", "asyncio")


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a universe.

    `unmet` are lines of the script that did not get what they expect. `happened` are the faults whose moment came.
    `digest` is that of the log, `seconds` how much virtual time it took, `rounds` how many of the event loop.
    `completed` is how many tasks were, `failures` why others were not, `tool_failures` what tools raised,
    `absent` what invariants asked for without there being any.
    """

    violations: tuple[Violation, ...]
    unmet: tuple[str, ...]
    happened: tuple[AnyFault, ...]
    shape: Shape
    digest: str
    seconds: float
    rounds: int
    completed: int = 0
    failures: tuple[str, ...] = ()
    tool_failures: tuple[ToolFailure, ...] = ()
    absent: frozenset[Absent] = frozenset()


def run_universe(
    team: StormTeam,
    schedule: Schedule,
    *,
    expects: bool = False,
    keep: Path | None = None,
    session_id: str = SESSION,
    most_rounds: int = MOST_ROUNDS,
) -> Outcome:
    """Play the team with these faults and look what does not hold; with `expects`, also what its script expects.

    What is left of the session is copied to `keep`. Raises `StormError` if an invariant fails in another way than by an
    assertion, or if the file of the team makes a mistake.
    """
    process = UniverseProcess(team.setting, schedule, session_id=session_id)
    seen, order = process.injection.seen, process.injection.order
    order.most_rounds = most_rounds
    chance = random.getstate()
    random.seed(0)  # tools that take a chance take the same one again
    try:
        with _heard(seen.broken):
            found: list[Violation] = []
            log = Log(entries=(), tasks=(), steps={}, mails=())
            try:
                team.people(process)
                log = _log_of(process, {tool.name for tool in team.setting.all_tools} | _builtin_tools())
            except RestlessError:
                told = f"it still does something after {most_rounds:,} rounds of the event loop"
                found.append(Violation(invariant=RESTLESS, message=told))
            if team.mistakes:
                raise team.mistakes[0]
            if not found:
                found += violations(team.invariants, log)
        if expects:
            found += [Violation(invariant=EXPECTED, message=each) for each in seen.unmet]
        seconds, rounds = process.elapsed(), order.rounds
        if keep is not None:
            told = found[0].invariant if found else "all held"
            process.keep(keep, title=f"storm: {told}")
    finally:
        random.setstate(chance)
        with _heard([]):  # what was under way complains that its disk is gone
            process.end()
    return Outcome(
        violations=tuple(found),
        unmet=tuple(seen.unmet),
        happened=tuple(process.injection.happened),
        shape=process.injection.shape,
        digest=_digest(log.entries),
        seconds=seconds,
        rounds=rounds,
        completed=len(log.tasks(state=TaskState.COMPLETED)),
        failures=tuple(f"{task.agent_id}: {task.error.message}" for task in log.tasks() if task.error is not None),
        tool_failures=tuple(dict.fromkeys(seen.tool_failures)),
        absent=frozenset(log.absent),
    )


@cache
def _builtin_tools() -> frozenset[str]:
    return frozenset((*COORDINATION_TOOLS, *NAMED_TOOLS, *machine_tools()))


def _log_of(process: UniverseProcess, tools: Collection[str]) -> Log:
    while True:
        try:
            return process.do(_gathered(process, tools), within=PATIENCE_SECONDS)
        except DiedError:
            continue


async def _gathered(process: UniverseProcess, tools: Collection[str]) -> Log:
    session = process.session
    await session.flushed()
    tasks = await session.list_tasks(limit=_MOST)
    statuses = session.list_agents()
    owners = ("user", *(status.agent_id for status in statuses))
    return Log(
        entries=await session.notifications(limit=_MOST),
        tasks=tasks,
        steps={task.id: await session.list_steps(task) for task in tasks},
        mails=[mail for owner in owners for mail in await session.mailbox(owner, limit=_MOST)],
        began_at=EPOCH,
        seen=process.injection.seen,
        waiting=[Waiting(agent=each.agent_id, reasons=tuple(_reasons(each))) for each in statuses],
        tools=tools,
    )


def _reasons(status: AgentStatus) -> Iterator[str]:
    """What keeps the agent from its work, by its name."""
    yield from status.waiting_for
    yield from status.paused_for
    yield from (f"tool:{name}" for name in status.missing_tools)
    if status.state not in (AgentState.IDLE, AgentState.ACTIVE):
        yield f"it is {status.state}"
    if not status.started:
        yield "it was not started"
    if status.retry_at is not None:
        yield f"its model: {status.retry_reason}"


def _digest(entries: Sequence[Notification]) -> str:
    return hashlib.sha256(msgspec.json.encode(entries)).hexdigest()[:16]


class _Listener(logging.Handler):
    """Keeps what the runtime complains about."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.name == "asyncio":
            self._heard.append(record.getMessage().splitlines()[0])


@contextmanager
def _heard(heard: list[str]) -> Iterator[None]:
    """Keep errors of the runtime, and let none of them be written anywhere."""
    listener = _Listener(heard)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(listener)
        logger.setLevel(logging.ERROR)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagates) in zip(loggers, before, strict=True):
            logger.removeHandler(listener)
            logger.setLevel(level)
            logger.propagate = propagates
