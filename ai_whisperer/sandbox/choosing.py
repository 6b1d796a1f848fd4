"""Which sandbox is used: the strongest that holds, unless one is named. Without any, nothing runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ai_whisperer.errors import InvalidInputError, NoSandboxError
from ai_whisperer.sandbox.base import Job, Outcome, Sandbox, ignored
from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.sandbox.levels import ALL, STRONG, TALKING

if TYPE_CHECKING:
    from ai_whisperer.sandbox.probing import Probe

AUTO = "auto"
NONE = "none"
UNTRIED = "untried"
CHOICES = (AUTO, *ALL)

_ADVICE = (
    "Code is run only where a sandbox holds it: let the kernel give namespaces to the user of the server, or install "
    "bubblewrap with the packages of the system; `whisperer doctor` shows what holds, and why not. In a container that "
    "gives no namespaces, set sandbox = 'landlock' if you can accept what it leaves open, or 'rlimits' to run code "
    "with nothing but limits around it."
)


class ChosenSandbox:
    """The sandbox of a server or a session: `wanted` is a level, or `auto` for the strongest that holds.

    Levels are tried when they are needed first, and those that fail again with the next job. `auto` never means one
    that does not hold. For a job with granted hosts, it is one that can open the network for these alone; where there
    is none, the job has no network.
    """

    def __init__(self, wanted: str = AUTO) -> None:
        if wanted not in CHOICES:
            raise InvalidInputError(f"sandbox must be one of {', '.join(CHOICES)}, not {wanted!r}.")
        self.wanted = wanted
        self._launcher = Launcher()
        self._lock = asyncio.Lock()
        self._chosen: dict[bool, KeptSandbox] = {}
        self._missing = False

    @property
    def name(self) -> str:
        """The level that is used; `untried` before that was found out, and `none` if there is none."""
        if False in self._chosen:
            return self._chosen[False].name
        return NONE if self._missing else UNTRIED

    async def run(self, job: Job, on_output: Callable[[bytes], None] = ignored) -> Outcome:
        talks = bool(job.network)
        chosen = self._chosen.get(talks) or await self.choose(talks=talks)
        return await chosen.run(job, on_output)

    async def choose(self, *, talks: bool = False) -> Sandbox:
        """The sandbox of jobs, of those with granted hosts if it `talks`; raises `NoSandboxError` that says what to do.

        When no level holds, which one is missing is found out anew for the next job.
        """
        async with self._lock:
            if talks not in self._chosen:
                self._chosen[talks] = await self._first_that_holds(talks=talks)
            return self._chosen[talks]

    async def probe_all(self) -> list[Probe]:
        """Try every level, for people who want to know."""
        return [await self._probe(level) for level in ALL]

    def chosen_of(self, probes: list[Probe]) -> Probe | None:
        """The level that is used where these were found."""
        by_level = {each.level: each for each in probes if _is_used(each)}
        return next((by_level[level] for level in self._allowed() if level in by_level), None)

    async def close(self) -> None:
        """Let go of the process that starts jobs; the next job would start another."""
        await self._launcher.close()

    def _allowed(self, *, talks: bool = False) -> tuple[str, ...]:
        """The levels that may be used, the best first."""
        if self.wanted != AUTO:
            return (self.wanted,)
        return (*TALKING, *(level for level in STRONG if level not in TALKING)) if talks else STRONG

    async def _first_that_holds(self, *, talks: bool) -> KeptSandbox:
        tried: list[Probe] = []
        for level in self._allowed(talks=talks):
            tried.append(await self._probe(level))
            if _is_used(tried[-1]):
                self._missing = False
                return KeptSandbox(level, self._launcher)
        self._missing = True
        why = " ".join(f"{each.level}: {each.reason}" for each in tried)
        raise NoSandboxError(f"There is no sandbox that holds here, so nothing was run. {why} {_ADVICE}")

    async def _probe(self, level: str) -> Probe:
        from ai_whisperer.sandbox.probing import Probe, probe  # all the ways out, which a server may never need to try

        if sys.platform != "linux":
            return Probe(level=level, runs=False, reason="Sandboxes need Linux.")
        return await probe(KeptSandbox(level, self._launcher))


def _is_used(probe: Probe) -> bool:
    """Whether programs run in a level that is allowed. Who names one that does not hold has to be told, not stopped."""
    return probe.holds or (probe.runs and probe.level not in STRONG)
