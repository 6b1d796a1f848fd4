"""The process of an MCP server: started in a process group of its own, and gone as a whole when it is ended.

Children that left the group are found as long as they descend from it: one whose parents have ended is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from ai_whisperer.errors import McpError
from ai_whisperer.mcp_config import McpServerConfig
from ai_whisperer.secrets import redacted
from ai_whisperer.tools.process_groups import family_has_ended, group_has_ended, time_of_start

_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
_GRACE_SECONDS = 1.0
_LOOK_SECONDS = 0.01
_STDERR_BYTES = 4_000
_READ_BYTES = 64 << 10
_MOST_LOOKED_FOR = 10_000
_MOST_AT_ONCE = 200


class ServerProcess:
    """A running server. What it says on its error output is read to the end; the last of it is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = b""
        self._listening = asyncio.create_task(self._listen(), name=f"stderr of {process.pid}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> asyncio.StreamReader:
        assert self._process.stdout is not None  # noqa: S101 - it was started with a pipe
        return self._process.stdout

    @property
    def input(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None  # noqa: S101
        return self._process.stdin

    async def how_it_ended(self) -> str:
        """In words: how the process ended, if it did, and what it said last."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._exit()
        code = self._process.returncode
        match code:
            case None:
                told = "it closed its output"
            case _ if code < 0:
                told = f"it was ended by signal {-code}"
            case _:
                told = f"it ended with the code {code}"
        return told + self.last_words()

    def last_words(self) -> str:
        """What it said on its error output, ready to be put behind a sentence."""
        said = redacted(self._stderr.decode(errors="replace")).strip()
        return f"; it said: {said[-500:]}" if said else ""

    async def end(self, *, in_peace: bool) -> None:
        """Ask it to leave, then make it: when this returns no process of its group is there any more.

        Nor are those that left the group and descend from it. One that does not speak properly is not asked.
        """
        family: dict[int, str] = {}
        try:
            family |= await asyncio.to_thread(_descendants, self.pid, _MOST_LOOKED_FOR)
            self.input.close()
            if in_peace and not await self._exits_within(_GRACE_SECONDS):
                self._signal(signal.SIGTERM)
                await self._exits_within(_GRACE_SECONDS)
        finally:
            family |= _descendants(self.pid, _MOST_AT_ONCE)  # without a wait: nothing may come between
            self._signal(signal.SIGKILL)
            _kill(family)
            self._listening.cancel()
        await self._exits_within(_GRACE_SECONDS)
        await asyncio.gather(group_has_ended(self.pid), family_has_ended(family))
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()  # a child that left the group may hold the pipes: nobody reads them any more
        await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        stream = self._process.stderr
        while stream is not None and (some := await stream.read(_READ_BYTES)):
            self._stderr = (self._stderr + some)[-_STDERR_BYTES:]

    async def _exits_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exit()
        except TimeoutError:
            return False
        return True

    async def _exit(self) -> None:
        # Not wait(): that waits for the pipes too, which a child may hold open for ever.
        while self._process.returncode is None:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(_LOOK_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def start_process(name: str, config: McpServerConfig, env: Mapping[str, str]) -> ServerProcess:
    """Run the server's command; raises `McpError` that says why that cannot be."""
    inherited = {key: value for key in _INHERITED if (value := os.environ.get(key))}
    try:
        process = await asyncio.create_subprocess_exec(
            config.command or "",
            *config.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**inherited, **env},
            cwd=config.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        missing = f" in the folder {config.cwd}" if config.cwd is not None else ""
        raise McpError(
            f"The MCP server '{name}' cannot be started: {config.command!r}{missing}: {reason}. Correct its command."
        ) from error
    return ServerProcess(process)


def _descendants(pid: int, most: int) -> dict[int, str]:
    """The processes below that one, each with the time of its start, by which it is known again.

    Not many more than `most` are looked for.
    """
    found: dict[int, str] = {}
    unseen = [pid]
    while unseen and len(found) < most:
        for child in _children(unseen.pop()):
            started = time_of_start(child)
            if started and child not in found:
                found[child] = started
                unseen.append(child)
    return found


def _children(pid: int) -> list[int]:
    try:
        lists = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it is gone
        return []
    return [int(each) for children in lists for each in children.split()]


def _kill(family: Mapping[int, str]) -> None:
    for pid, started in family.items():
        if time_of_start(pid) == started:  # or the number is another's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
