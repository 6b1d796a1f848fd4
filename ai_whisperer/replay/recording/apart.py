"""The work of a process of its own: `python -m ai_whisperer.replay.recording.apart`, which a server starts.

It reads a job from its input and writes what came of it to its output, each a line of JSON. Its input stays open as
long as somebody waits: when it is closed the process ends, and leaves no file of a fork behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ai_whisperer.core.changes import changed_definitions
from ai_whisperer.domain.forks import AnyJob, CompareJob, Effects, ForkJob, JobDone, JobFailed, JobOutcome, RecordedCall
from ai_whisperer.errors import InvalidInputError, WhispererError
from ai_whisperer.replay.recording.forking import calls_after, needs_of, record_for_fork, write_fork
from ai_whisperer.replay.recording.format import Recording
from ai_whisperer.replay.recording.rows import session_store
from ai_whisperer.replay.recording.side_by_side import compare, record_to_compare

_NICENESS = 5
"""The sessions of the server come first."""


def outcome_of(job: AnyJob) -> JobOutcome:
    """Do it. Not to be called within an event loop."""
    try:
        return _forked(job) if isinstance(job, ForkJob) else _compared(job)
    except WhispererError as error:
        return JobFailed(code=error.code, message=error.message, data=dict(error.data))


def _forked(job: ForkJob) -> JobDone:
    async def read() -> tuple[Recording, list[RecordedCall], tuple[str, ...]]:
        async with session_store(Path(job.folder), job.session_id, address=job.store) as store:
            recording = await record_for_fork(store, job.session_id, at=job.at, tools=job.tools)
            is_wanted = job.effects is Effects.RECORDED
            calls = await calls_after(store, job.session_id, at=job.at) if is_wanted else []
            return recording, calls, await needs_of(store, job.session_id)

    recording, calls, needs = asyncio.run(read())
    agents = changed_definitions({agent.id: agent.definition for agent in recording.agents}, job.changes)
    _check_tools(recording, job.lacking)
    write_fork(recording, Path(job.file), agents=agents, effects=job.effects, calls=calls, title=job.title, needs=needs)
    return JobDone(recorded_calls=len(calls))


def _check_tools(recording: Recording, lacking: Mapping[str, Sequence[str]]) -> None:
    """Raise `InvalidInputError` if an agent of the fork has a tool that is not there: it would wait for it."""
    for agent in recording.agents:
        if agent.id in lacking:
            names = ", ".join(lacking[agent.id])
            raise InvalidInputError(
                f"'{agent.id}' has tools that are not here: {names}. It could not continue. Start the server "
                f"with them (--tools), or say which tools it is to have: set {agent.id}.tools."
            )


def _compared(job: CompareJob) -> JobDone:
    async def read() -> JobDone:
        recordings = []
        for session_id in (job.first, job.second):
            async with session_store(Path(job.folder), session_id, address=job.store) as store:
                recordings.append(await record_to_compare(store, session_id, tools=job.tools))
        return JobDone(comparison=compare(*recordings))

    return asyncio.run(read())


def _end_with(reading: int, job: AnyJob) -> None:
    """End the process when nobody waits for it any more."""
    while os.read(reading, 1024):
        pass
    if isinstance(job, ForkJob):
        with contextlib.suppress(OSError):
            Path(job.file).unlink()
    os._exit(1)


def main() -> None:
    os.nice(_NICENESS)
    written = sys.stdin.buffer.readline()
    job: AnyJob = msgspec.json.decode(written, type=AnyJob)
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(), job), daemon=True).start()
    sys.stdout.buffer.write(msgspec.json.encode(outcome_of(job)) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
