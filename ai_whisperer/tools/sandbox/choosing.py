"""Which sandbox is used: the strongest that holds, unless one is named. Without any, nothing runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

from ai_whisperer.errors import InvalidInputError, NoSandboxError
from ai_whisperer.tools.sandbox.base import Job, Outcome, Sandbox, ignored
from ai_whisperer.tools.sandbox.held import HIDING_ADVICE
from ai_whisperer.tools.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.tools.sandbox.probing import ALL, HIDING, STRONG, Probe, probe

AUTO = "auto"
NONE = "none"
CHOICES = (AUTO, *ALL)

_ADVICE = (
    "Code is run only where a sandbox holds it: pip install sandlock (Linux 6.12 or newer), or install bubblewrap with "
    "the packages of the system; `whisperer doctor` shows what holds. To run code with nothing but limits around it, "
    "set sandbox = 'rlimits'."
)


class ChosenSandbox:
    """The sandbox of a server or a session: `wanted` is a level, or `auto` for the strongest that keeps files apart.

    Levels are tried when the first job comes, and those that fail again with the next job. `auto` never means limits
    alone. For a job from which something is hidden, it is the strongest that can hide.
    """

    def __init__(self, wanted: str = AUTO) -> None:
        if wanted not in CHOICES:
            raise InvalidInputError(f"sandbox must be one of {', '.join(CHOICES)}, not {wanted!r}.")
        self.wanted = wanted
        self._launcher = Launcher()
        self._lock = asyncio.Lock()
        self._chosen: KeptSandbox | None = None
        self._hiding: KeptSandbox | None = None
        self._missing = False

    @property
    def name(self) -> str:
        """The level that is used; before that was found out, the one that is wanted; `none` if there is none."""
        if self._chosen is not None:
            return self._chosen.name
        return NONE if self._missing else self.wanted

    async def run(self, job: Job, on_output: Callable[[bytes], None] = ignored) -> Outcome:
        chosen = (await self._choose_hiding()) if job.hidden else (self._chosen or await self.choose())
        return await chosen.run(job, on_output)

    async def choose(self) -> Sandbox:
        """The sandbox that jobs run in; raises `NoSandboxError` that says what is missing and what to do."""
        async with self._lock:
            if self._chosen is None:
                self._chosen = await self._first_that_holds()
            return self._chosen

    async def _choose_hiding(self) -> Sandbox:
        async with self._lock:
            if self._hiding is None:
                self._hiding = await self._first_that_hides()
            return self._hiding

    async def probe_all(self) -> list[Probe]:
        """Try every level, for people who want to know."""
        return [await self._probe(level) for level in ALL]

    def chosen_of(self, probes: list[Probe]) -> Probe | None:
        """The level that is used where these were found."""
        allowed = STRONG if self.wanted == AUTO else (self.wanted,)
        holding = [each for each in probes if each.holds and each.level in allowed]
        return min(holding, key=lambda each: bool(each.weakness), default=None)

    async def close(self) -> None:
        """Let go of the process that starts jobs; the next job would start another."""
        await self._launcher.close()

    async def _first_that_holds(self) -> KeptSandbox:
        found = await self._first_of(STRONG if self.wanted == AUTO else (self.wanted,))
        self._missing = isinstance(found, str)
        if isinstance(found, str):
            raise NoSandboxError(f"There is no sandbox that holds here, so nothing was run. {found} {_ADVICE}")
        return found

    async def _first_that_hides(self) -> KeptSandbox:
        wanted = HIDING if self.wanted == AUTO else (self.wanted,)
        found = await self._first_of([level for level in wanted if level in HIDING])
        if isinstance(found, str):
            raise NoSandboxError(
                "You are granted a folder in which files of the runtime are, and there is no sandbox here that can "
                f"hide these from programs, so nothing was run. {found or f'{self.wanted} cannot.'} {HIDING_ADVICE}"
            )
        return found

    async def _first_of(self, levels: Sequence[str]) -> KeptSandbox | str:
        """The first that holds, those without a weakness before all others; or why none does."""
        tried: list[Probe] = []
        for level in levels:
            tried.append(await self._probe(level))
            if tried[-1].holds and not tried[-1].weakness:
                break
        chosen = self.chosen_of(tried)
        if chosen is not None:
            return KeptSandbox(chosen.level, self._launcher)
        return " ".join(f"{each.level}: {each.reason}" for each in tried)

    async def _probe(self, level: str) -> Probe:
        if sys.platform != "linux":
            return Probe(level=level, holds=False, reason="Sandboxes need Linux.")
        return await probe(KeptSandbox(level, self._launcher))
