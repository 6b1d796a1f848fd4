"""The work of a process of its own: `python -m ai_whisperer.replay.recording.apart`, which a server starts.

It reads a job from its input and writes what came of it to its output, each a line of JSON. Its input stays open as
long as somebody waits: when it is closed the process ends, and leaves no file behind. It has so much time and memory.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

import msgspec

from ai_whisperer.core.changes import changed_definitions
from ai_whisperer.domain.forks import AnyJob, CompareJob, Effects, ForkJob, JobDone, JobFailed, JobOutcome, RecordedCall
from ai_whisperer.errors import InvalidInputError, RecordingError, WhispererError
from ai_whisperer.replay.recording.forking import calls_after, needs_of, record_for_fork, write_fork
from ai_whisperer.replay.recording.format import Recording
from ai_whisperer.replay.recording.rows import session_store
from ai_whisperer.replay.recording.side_by_side import compare, record_to_compare
from ai_whisperer.secrets import redacted, redacted_data, remember_secret

_NICENESS = 5
"""The sessions of the server come first."""
_MOST_SECONDS = 600
"""Of the processor."""
_MOST_BYTES = 2 << 30
_MOST_FILE_BYTES = 8 << 30
_TOO_LARGE = (
    "This takes more than {}, which is too much beside the sessions of a server. Choose an earlier entry or shorter "
    "sessions, or stop the server and do it on the command line: `whisperer fork`, `whisperer compare`."
)


def outcome_of(job: AnyJob) -> JobOutcome:
    """Do it. Not to be called within an event loop."""
    try:
        return _forked(job) if isinstance(job, ForkJob) else _compared(job)
    except WhispererError as error:
        return _failed(error)
    except MemoryError:
        return _failed(RecordingError(_TOO_LARGE.format(f"{_MOST_BYTES >> 30} GiB of memory")))


def _failed(error: WhispererError) -> JobFailed:
    """What a client is told: a text may quote the session, which is not redacted where it is played."""
    return JobFailed(code=error.code, message=redacted(error.message), data=redacted_data(dict(error.data), redacted))


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
    if job.place is not None:
        shutil.rmtree(job.place, ignore_errors=True)
    os._exit(1)


def _bound() -> None:
    """Hold this process to its time and memory: it says so itself when they are used up."""

    def give_up(_: int, __: FrameType | None) -> None:
        _tell(_failed(RecordingError(_TOO_LARGE.format(f"{_MOST_SECONDS // 60} minutes of the processor"))))
        os._exit(1)  # whatever is under way: an exception might be caught there

    signal.signal(signal.SIGXCPU, give_up)
    for limit, most, and_then in (
        (resource.RLIMIT_CPU, _MOST_SECONDS, 10),
        (resource.RLIMIT_DATA, _MOST_BYTES, 0),
        (resource.RLIMIT_FSIZE, _MOST_FILE_BYTES, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        allowed = [each if hard == resource.RLIM_INFINITY else min(each, hard) for each in (most, most + and_then)]
        resource.setrlimit(limit, (allowed[0], allowed[1]))


def _tell(outcome: JobOutcome) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    os.nice(_NICENESS)
    _bound()
    written = sys.stdin.buffer.readline()
    job: AnyJob = msgspec.json.decode(written, type=AnyJob)
    for each in job.secrets:
        remember_secret(each)
    tempfile.tempdir = job.place
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(), job), daemon=True).start()
    _tell(outcome_of(job))


if __name__ == "__main__":
    main()
