"""Work that takes the processor for long is done in processes of their own, a few at once: sessions do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys

import msgspec

from ai_whisperer.domain.forks import AnyJob, JobDone, JobFailed, JobOutcome
from ai_whisperer.errors import ClosedError, TooManyRequestsError, WhispererError
from ai_whisperer.protocol.errors import SERVER_ERROR, from_rpc

_MODULE = "ai_whisperer.replay.recording.apart"
_AT_ONCE = 2
_WAITING = 8
_LONGEST_LINE = 1 << 26
_LONGEST_SECONDS = 3600.0
"""It has little of the processor itself, see `replay.recording.apart`; but it may wait, for a database for instance."""

_log = logging.getLogger(__name__)


class Apart:
    """Does jobs, two at once; a few more wait for their turn."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._count = 0
        self._processes: set[asyncio.subprocess.Process] = set()
        self._is_closed = False

    async def do(self, job: AnyJob) -> JobDone:
        """Do a job; raises what it raised, or `TooManyRequestsError`. Whoever gives up waiting ends it."""
        if self._count >= _AT_ONCE + _WAITING:
            raise TooManyRequestsError(
                f"{self._count} sessions are being forked or compared on this server, and no more can wait. Try again "
                "in a moment; nothing was changed."
            )
        self._count += 1
        try:
            async with self._turns:
                return await self._done(job)
        finally:
            self._count -= 1

    async def close(self) -> None:
        """End what is under way."""
        self._is_closed = True
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _done(self, job: AnyJob) -> JobDone:
        if self._is_closed:
            raise ClosedError
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _MODULE),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
                process_group=0,  # Ctrl-C is for the server, which ends it
            )
        except OSError as error:
            raise WhispererError(
                f"No process can be started for this ({error}). Nothing was changed; try again when the machine has "
                "room for one more."
            ) from error
        self._processes.add(process)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                told, complaints = await _heard(process, msgspec.json.encode(job) + b"\n")
        except TimeoutError as error:
            raise WhispererError(
                f"This has taken more than {_LONGEST_SECONDS / 60:.0f} minutes, so it was ended, and nothing was "
                "changed. Try again when the machine and the database have less to do."
            ) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
            self._processes.discard(process)
        if self._is_closed:
            raise ClosedError
        if not told:
            _log.error("a process for %s failed: %s", type(job).__name__, complaints.decode(errors="replace"))
            raise WhispererError(
                "The process that was to do this has failed, and nothing was changed. The log of the server says why."
            )
        outcome: JobOutcome = msgspec.json.decode(told, type=JobOutcome)
        if isinstance(outcome, JobFailed):
            raise from_rpc(SERVER_ERROR, outcome.message, {**outcome.data, "code": outcome.code})
        return outcome


async def _heard(process: asyncio.subprocess.Process, written: bytes) -> tuple[bytes, bytes]:
    """Give a process its job; returns what it says in the end, and what it complained about if it says nothing.

    Its input stays open until then: that is how it knows that somebody waits.
    """
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("The process was started without pipes.")
    process.stdin.write(written)
    async with asyncio.TaskGroup() as group:
        complaining = group.create_task(process.stderr.read())
        told = await process.stdout.readline()
        if told:
            complaining.cancel()
    return told, b"" if complaining.cancelled() else complaining.result()
