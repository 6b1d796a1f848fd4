"""Running a command while a lock is held."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

import typer

from ai_whisperer.cli.racing import first_of
from ai_whisperer.client import Client
from ai_whisperer.domain.locks import LockRecord
from ai_whisperer.errors import LockNotHeldError
from ai_whisperer.tools.process_groups import group_has_ended

_RENEWALS_IN_A_LEASE = 3
_SECONDS_TO_END = 5.0
_BY_SIGNAL = 128


async def run_while_held(client: Client, lock: LockRecord, command: Sequence[str], *, ttl_seconds: float) -> int:
    """Run the command, renewing the lease; returns what it ended with. The lock is released in the end.

    Raises `LockNotHeldError` if the lock is lost meanwhile: the command is ended then, with all that it has started.
    """
    try:
        process = await _started(command)
        try:
            await first_of(process.wait(), _renew(client, lock, ttl_seconds))
        finally:
            await _end(process)
    finally:
        with suppress(LockNotHeldError):
            await client.release_lock(lock.name, lock.token)
    code = await process.wait()
    return code if code >= 0 else _BY_SIGNAL - code


async def _started(command: Sequence[str]) -> Process:
    try:
        return await asyncio.create_subprocess_exec(*command, process_group=0)
    except OSError as error:
        told = f"There is no command '{command[0]}' that can be run: {error.strerror}."
        raise typer.BadParameter(told) from error


async def _renew(client: Client, lock: LockRecord, ttl_seconds: float) -> None:
    """Renew the lease until it is lost, or can no longer be known to be there."""
    pause = ttl_seconds / _RENEWALS_IN_A_LEASE
    while True:
        await asyncio.sleep(pause)
        try:
            async with asyncio.timeout(ttl_seconds - pause):
                await client.renew_lock(lock.name, lock.token, ttl_seconds)
        except TimeoutError as error:
            raise LockNotHeldError(
                f"Lock '{lock.name}' could not be renewed before its lease expired: the server did not answer."
            ) from error


async def _end(process: Process) -> None:
    """See that a command that still runs ends, with all that it has started: first with a word, then by force."""
    if process.returncode is not None:
        return
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()
    _signal(process, signal.SIGKILL)
    await process.wait()
    await group_has_ended(process.pid)  # or another would get the lock while something goes on


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # one that has become another user ends by itself
        os.killpg(process.pid, number)
