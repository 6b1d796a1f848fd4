"""What becomes of a wish for a fork or a comparison: it is checked here, done apart, and a fork is taken in here."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ai_whisperer.core.paging import checked_session_id
from ai_whisperer.domain.conversation import ToolSpec
from ai_whisperer.domain.forks import CompareJob, Comparison, ForkJob, ForkReport
from ai_whisperer.errors import DuplicateIdError, InvalidInputError, WhispererError
from ai_whisperer.protocol.sessions import ForkSession
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.secrets import remembered_secrets
from ai_whisperer.server.calls import Caller
from ai_whisperer.server.work_folder import work_folder

_log = logging.getLogger(__name__)

_MOST_RUNS = 100
_LONGEST_STEM = 150
FORKS = "forks"
"""The folder in the data folder with what is needed while sessions are forked or compared."""


async def forked(caller: Caller, session: AsyncAgentSessionManager, params: ForkSession) -> ForkReport:
    """Fork a session of the caller, as many times as is asked for: all or none, unless this process is killed."""
    if params.at < 1 or not 1 <= params.runs <= _MOST_RUNS:
        raise InvalidInputError(f"at must be 1 or more, runs 1 to {_MOST_RUNS}; nothing was changed.")
    changes = params.set or {}
    lacking = await session.check_fork(params.at, changes)
    ids = await _free_ids(caller, params)
    async with _place(caller) as place:
        job = ForkJob(
            folder=str(work_folder(caller.settings)),
            store=caller.settings.store,
            tools=_tools(caller),
            place=str(place),
            secrets=remembered_secrets(),
            session_id=params.session_id,
            at=params.at,
            file=str(place / "fork.zip"),
            changes=changes,
            lacking=lacking,
            effects=params.effects,
            title=f"{params.session_id} from {params.at}",
        )
        done = await caller.host.apart.do(job)
        await _taken_in(caller, job.file, ids)
    return ForkReport(
        session_id=params.session_id,
        at=params.at,
        session_ids=ids,
        effects=params.effects,
        recorded_calls=done.recorded_calls,
    )


def clear_forks(data: Path) -> None:
    """Remove what is left of what was being forked or compared when the process was killed."""
    shutil.rmtree(data / FORKS, ignore_errors=True)


async def compared(caller: Caller, first: str, second: str) -> Comparison:
    """Lay two sessions of the caller side by side."""
    await caller.host.get(caller.principal, second)
    await caller.host.flushed()
    async with _place(caller) as place:
        job = CompareJob(
            folder=str(work_folder(caller.settings)),
            store=caller.settings.store,
            tools=_tools(caller),
            place=str(place),
            secrets=remembered_secrets(),
            first=first,
            second=second,
        )
        found = (await caller.host.apart.do(job)).comparison
    if found is None:
        raise WhispererError("The process that compares sessions has returned nothing. Report this as a bug.")
    return found


def _tools(caller: Caller) -> tuple[ToolSpec, ...]:
    return tuple(tool.spec for tool in caller.host.toolbox.tools)


@asynccontextmanager
async def _place(caller: Caller) -> AsyncIterator[Path]:
    """A folder for what is needed meanwhile, which may be much: it is made and removed beside the event loop."""
    folder = caller.settings.data / FORKS
    folder.mkdir(mode=0o700, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        yield place
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, place, ignore_errors=True))


async def _free_ids(caller: Caller, params: ForkSession) -> list[str]:
    """The ids of the forks; raises `DuplicateIdError` if one that was asked for is taken."""
    host, named = caller.host, params.new_session_id
    stem = f"{params.session_id[:_LONGEST_STEM]}-fork-{params.at}" if named is None else checked_session_id(named)
    ids = [stem] if params.runs == 1 else [f"{stem}-{number}" for number in range(1, params.runs + 1)]
    for each in ids:
        checked_session_id(each)
    taken = [each for each in ids if await host.is_there(each)]
    if taken and named is not None:
        raise DuplicateIdError(f"There is a session '{taken[0]}' already. Choose another id, or none.")
    if not taken:
        return ids
    found: list[str] = []
    number = 2
    while len(found) < params.runs:
        if not await host.is_there(f"{stem}-{number}"):
            found.append(f"{stem}-{number}")
        number += 1
    return found


async def _taken_in(caller: Caller, file: str, ids: list[str]) -> None:
    """Bring the fork in under each of the ids, all or none; then let them begin."""
    host, taken = caller.host, list[str]()
    try:
        for each in ids:
            await host.import_session(caller.principal, file, session_id=each, data=work_folder(caller.settings))
            taken.append(each)
    except BaseException:
        for each in taken:
            try:
                await host.delete(caller.principal, each)
            except WhispererError as error:
                _log.error("the fork %s stays, though not all of its kind could be made: %s", each, error)
        raise
    await host.take_up(caller.principal, ids)
