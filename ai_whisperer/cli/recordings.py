"""Recordings on the command line: played, rewritten, and told of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from ai_whisperer.cli.amounts import counted
from ai_whisperer.cli.calling import Call
from ai_whisperer.errors import InvalidInputError, WhispererError
from ai_whisperer.replay.junit import Case

if TYPE_CHECKING:
    from ai_whisperer.domain.definition import AgentDefinition
    from ai_whisperer.replay.recording import Difference, Ignored, Recording, Rerun
    from ai_whisperer.tools.function import Tool


SUFFIX = ".wrec"


class Choices(Struct, frozen=True, kw_only=True):
    """How recordings are to be played."""

    live_tools: bool = False
    live_agents: bool = False
    live_models: bool = False
    ignore: tuple[str, ...] = ()
    update: bool = False

    def check(self) -> None:
        """Raise `InvalidInputError` for what does not go together."""
        others = [flag for flag in self.given if flag not in ("--update", "--agents")]
        if self.update and others:
            raise InvalidInputError(
                f"--update cannot be combined with {', '.join(others)}: it rewrites a recording with what is asked "
                "now, and its answers and results stay as they were recorded. Leave one of them out."
            )

    @property
    def given(self) -> list[str]:
        """The options that are for recordings alone, as they were written."""
        flags: dict[str, object] = {"--tools": self.live_tools, "--agents": self.live_agents}
        flags |= {"--models": self.live_models, "--ignore": self.ignore}
        return [flag for flag, value in {**flags, "--update": self.update}.items() if value]


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of playing one recording."""

    file: str
    seconds: float
    steps: int = 0
    compared: int = 0
    updated: bool = False
    live_models: bool = False
    difference: Difference | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and (self.difference is None or self.updated)

    @property
    def cases(self) -> list[Case]:
        told = self.error or ("" if self.ok or self.difference is None else str(self.difference))
        return [Case(title=f"{counted(self.steps, 'step')}", seconds=self.seconds, failure=told)]


def are_recordings(files: Sequence[Path], chosen: Choices) -> bool:
    """Whether these are recordings rather than scripts; raises `InvalidInputError` if some are and some are not."""
    found = [_is_one(path) for path in files]
    if any(found) and not all(found):
        other = files[found.index(False)]
        raise InvalidInputError(f"'{other}' is not a recording, and others are. Play recordings and scripts apart.")
    if not all(found) and chosen.given:
        raise InvalidInputError(f"{', '.join(chosen.given)} is for recordings, and '{files[0]}' is none.")
    return all(found)


def _is_one(path: Path) -> bool:
    from ai_whisperer.replay.recording import is_recording

    try:
        return path.suffix == SUFFIX or is_recording(path)
    except OSError:
        return False  # whoever reads it says what is wrong


async def play_recordings(call: Call, files: Sequence[Path], chosen: Choices, tried: list[Outcome]) -> int:
    """Play them one after the other; returns the exit code. `tried` has what came of each.

    One that cannot be played is told, and does not keep the others from being played.
    """
    chosen.check()
    tools = tools_here(call, strict="tools" not in chosen.ignore)
    for path in files:
        begun = time.perf_counter()
        try:
            outcome = await _played(call, path, chosen, tools)
        except WhispererError as error:
            outcome = Outcome(file=str(path), seconds=time.perf_counter() - begun, error=error.message)
            if len(files) == 1:
                tried.append(outcome)
                raise
        tried.append(outcome)
        if not call.output.as_json:
            _tell(call, outcome)
    if call.output.as_json:
        call.output.json([_record(each) for each in tried])
    elif len(tried) > 1:
        good = sum(each.ok for each in tried)
        call.output.text(f"{good} of {counted(len(tried), 'recording')} played as expected.")
    return 0 if all(each.ok for each in tried) else 1


async def _played(call: Call, path: Path, chosen: Choices, tools: Sequence[Tool]) -> Outcome:
    from ai_whisperer.models.catalog import resolve
    from ai_whisperer.replay.recording import read_recording, rerun, updated, write_recording
    from ai_whisperer.replay.recording.provided import missing_tools, tools_gone

    begun = time.perf_counter()
    recording = read_recording(path)
    known = {tool.name for tool in recording.tools}
    wanted = [tool for tool in tools if tool.name in known or "tools" not in chosen.ignore]
    gone = missing_tools(recording, (tool.name for tool in tools)) if chosen.update else ()
    ignore = cast("Iterable[Ignored]", chosen.ignore)
    played: Rerun = await rerun(
        recording,
        tools=wanted,
        live_tools=chosen.live_tools,
        models=resolve if chosen.live_models else None,
        agents=_agents_here(call, recording) if chosen.live_agents else None,
        ignore=("system", "tools", "settings", "turns") if chosen.update else ignore,
    )
    difference = played.difference or (tools_gone(gone) if gone else None)
    may_update = chosen.update and difference is None
    if may_update:
        write_recording(await updated(played.recording), path)
    return Outcome(
        file=str(path),
        seconds=time.perf_counter() - begun,
        steps=played.steps,
        compared=played.compared,
        updated=may_update,
        live_models=chosen.live_models,
        difference=difference,
    )


def _agents_here(call: Call, recording: Recording) -> dict[str, AgentDefinition]:
    """The agents of the recording as the templates that are called like them define them now."""
    from ai_whisperer.server.serving import templates_of

    library = templates_of(call.settings.values, check_model=None)
    found = {agent.id: library.called(agent.id) for agent in recording.agents}
    return {agent_id: template.definition for agent_id, template in found.items() if template is not None}


def tools_here(call: Call, *, strict: bool = False) -> list[Tool]:
    """The tools that a server which is started here would have; `strict` raises if a file of them cannot be used."""
    from ai_whisperer.server.serving import toolbox_of

    box = toolbox_of(call.settings.values)
    if strict and box.errors:
        raise InvalidInputError(f"Not all tools of the project can be used. Correct this first. {' '.join(box.errors)}")
    return list(box.tools)


def _tell(call: Call, outcome: Outcome) -> None:
    took = f"{outcome.seconds:.1f} s"
    if outcome.ok and outcome.live_models:
        call.output.text(
            f"ok      {outcome.file}: played to its end; models answered, so nothing was compared ({took})"
        )
    elif outcome.ok:
        done = "rewritten" if outcome.updated else "all as recorded"
        entries = f"{outcome.compared:,} entries of the log"
        call.output.text(f"ok      {outcome.file}: {counted(outcome.steps, 'step')}, {entries}, {done} ({took})")
    else:
        told = outcome.error or str(outcome.difference)
        call.output.text(f"FAILED  {outcome.file}: {told}")


def _record(outcome: Outcome) -> dict[str, Any]:
    difference = outcome.difference
    return {
        "recording": outcome.file,
        "ok": outcome.ok,
        "steps": outcome.steps,
        "entries": outcome.compared,
        "seconds": outcome.seconds,
        "updated": outcome.updated,
        "compared": not outcome.live_models,
        "difference": None if difference is None else difference,
        "error": outcome.error or None,
    }


def scrub_of(named: str) -> Callable[[str], str]:
    """The function that `module:function` names; raises `InvalidInputError` that says what is wrong with it.

    What it returns does so too if it raises, or returns something else than a text.
    """
    module, _, name = named.partition(":")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # a module of somebody else may raise anything
        raise InvalidInputError(
            f"--scrub: there is no function '{named}' ({error}). Write it as module:function, for instance "
            "scrubbing:without_names; the module has to be importable here."
        ) from error
    if not callable(found):
        raise InvalidInputError(f"--scrub: '{named}' is no function.")

    def scrub(text: str) -> str:
        try:
            scrubbed = found(text)
        except Exception as error:
            raise InvalidInputError(
                f"--scrub: '{named}' failed with {type(error).__name__}: {error}. It is given each text of the "
                "recording, also an empty one. Correct it; nothing was written."
            ) from error
        if not isinstance(scrubbed, str):
            raise InvalidInputError(
                f"--scrub: '{named}' returned {type(scrubbed).__name__} and not a text. It has to return each text, "
                "also one that it leaves as it is. Correct it; nothing was written."
            )
        return scrubbed

    return scrub
