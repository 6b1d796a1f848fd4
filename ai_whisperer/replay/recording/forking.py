"""Forks: a session as it was at some entry of its log, with agents that may be defined anew, as a session of its own.

Up to there a recording is played, so nothing is asked or done again. What is written is an exported session: whoever
imports it has the fork, which goes on by itself when it is opened.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.core.fork_points import GONE, ForkPoints, Told
from ai_whisperer.core.recorded_calls import call_digest
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.forks import Effects, Fork, RecordedCall
from ai_whisperer.domain.sessions import SessionRecord
from ai_whisperer.errors import RecordingError, UnknownAgentError
from ai_whisperer.replay.recording.blotting import digested
from ai_whisperer.replay.recording.format import Recording
from ai_whisperer.replay.recording.rows import read_rows
from ai_whisperer.replay.recording.run import Run
from ai_whisperer.replay.recording.taking import Offered, taken_of
from ai_whisperer.replay.recording.virtual_loop import run_virtually
from ai_whisperer.settings import LOCAL
from ai_whisperer.simulation.disk import SimulatedDisk
from ai_whisperer.store.base import Store, Unit
from ai_whisperer.store.transfer import export_session
from ai_whisperer.tools.registry import INSIDE
from ai_whisperer.version import __version__

_AHEAD = 1_000
"""So many entries after a number that does not work are searched for one that does."""


def fork_points(entries: Iterable[Told]) -> list[int]:
    """After which entries of a log a session can be forked: none in a decision, nor while a tool is at work."""
    found = ForkPoints(INSIDE)
    found.take(entries)
    found.end()
    return found.points


async def record_for_fork(
    store: Store, session_id: str = "default", *, at: int, tools: Iterable[Offered] = ()
) -> Recording:
    """What a session was after entry `at` of its log, unredacted, for `write_fork`. What came later does not matter.

    Raises `RecordingError`, with the nearest numbers that work if the session cannot be forked there.
    """
    rows = await read_rows(store, session_id, last=at)
    found = ForkPoints(INSIDE)
    found.take(rows.log)
    rest = await store.notifications(session_id, after=rows.log[-1].seq, limit=_AHEAD)
    found.take(rest)
    if len(rest) < _AHEAD:
        found.end()
    if at not in found.points:
        raise found.refusal(at)
    return replace(digested(taken_of(rows, tools)), unredacted=True)


async def needs_of(store: Store, session_id: str = "default") -> tuple[str, ...]:
    """The tags that the session needs of the node that has it: so do its forks."""
    record = await store.session(session_id)
    return () if record is None else record.needs


async def calls_after(store: Store, session_id: str = "default", *, at: int) -> list[RecordedCall]:
    """The calls with effects outside that a session made after entry `at` of its log, as far as that can be told."""
    last: int | None = None
    seq = at
    while last is None and (page := await store.notifications(session_id, after=seq, limit=_AHEAD)):
        last = next((note.seq - 1 for note in page if note.name in GONE), None)
        seq = page[-1].seq
    taken = taken_of(await read_rows(store, session_id, last=last), ())
    return [
        RecordedCall(key=each.key, digest=call_digest(each.tool, each.arguments), result=each.result)
        for each in taken.results
        if each.seq > at and each.result is not None
    ]


def write_fork(
    recording: Recording,
    file: Path,
    *,
    agents: Mapping[str, AgentDefinition] | None = None,
    effects: Effects = Effects.ASK,
    calls: Sequence[RecordedCall] = (),
    title: str = "",
    needs: tuple[str, ...] = (),
) -> None:
    """Write the session as it is at the end of the recording to a file that is not there yet, for `import`.

    `agents` are new definitions by agent id, `needs` are tags, see `needs_of`. `effects` is what becomes of calls with
    effects outside that agents make from now on; with `Effects.RECORDED` those that `calls` has, see `calls_after`,
    bring what they brought. For the fork it is now: deadlines and timers have as long to go as they had. Not to be
    called within an event loop. Raises `RecordingError` if the session cannot be played as it was, `UnknownAgentError`.
    """
    changed = dict(agents or {})
    known = {agent.id: agent.definition for agent in recording.agents}
    if missing := sorted(changed.keys() - known.keys()):
        raise UnknownAgentError(f"There is no agent '{missing[0]}' in the recording. There are: {', '.join(known)}.")
    provided = {agent.id: agent.tools for agent in recording.agents}  # while it is played, all tools are provided
    session, last = recording.header.session, recording.entries[-1].at
    began_at = time.time() - last

    async def define_anew(store: Store) -> None:
        unit = Unit()
        made = SessionRecord(id=session, title=title, owner=LOCAL, created_at=began_at + last, needs=needs)
        unit.insert_session(made)
        snapshot = await store.load(session)
        for record in snapshot.agents:
            definition = changed.get(record.id, record.definition)
            whole = replace(record, definition=definition, own_tools=provided[record.id])
            if whole != record:
                unit.update_definition(whole)
        if effects is not Effects.LIVE:
            is_recorded = effects is Effects.RECORDED
            unit.insert_fork(
                Fork(
                    session_id=session,
                    source=session,
                    at=recording.header.last,
                    since=snapshot.last_seq,
                    effects=effects,
                    paths=dict(run.paths.known) if is_recorded else {},
                    made=dict(run.paths.counts) if is_recorded else {},
                    calls=list(calls) if is_recorded else [],
                )
            )
        await store.submit(unit)

    disk = SimulatedDisk(slowest_commit_seconds=0.0, within=file.parent)  # whoever clears that removes it too
    try:
        run = Run(
            replace(recording, header=replace(recording.header, began_at=began_at, version=__version__)),
            tools=None,
            live_tools=False,
            models=None,
            ignore=frozenset(),
            chance=random.Random(),  # noqa: S311 - ids, no secrets
            store=_opened(disk),
            at_end=define_anew,
        )
        run_virtually(run.play())
        if run.difference is not None:
            raise RecordingError(f"The session does not play as it was, so it cannot be forked. {run.difference}")
        export_session(disk.folder, session, file)
    finally:
        disk.close()


def _opened(disk: SimulatedDisk) -> Callable[[], Awaitable[Store]]:
    async def opened() -> Store:
        return disk.open()

    return opened
