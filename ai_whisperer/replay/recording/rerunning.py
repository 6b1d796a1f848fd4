"""Playing a recording: the same inputs at their place, on virtual time, with a store in memory.

What comes from outside is released in the order of the recorded log, one at a time: an input is made, an answer or a
result is handed to whoever waits for it under its key. So the decisions fall in the order in which they fell, however
many agents work at the same time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import RecordingError
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.replay.recording.asking import definition_digest
from ai_whisperer.replay.recording.blotting import redacted_again
from ai_whisperer.replay.recording.differences import Difference
from ai_whisperer.replay.recording.format import Entry, Recording
from ai_whisperer.replay.recording.run import Run
from ai_whisperer.replay.recording.virtual_loop import run_virtually
from ai_whisperer.tools.function import AnyFunction, as_tools

Ignored = Literal["system", "tools", "settings", "turns"]
"""What of requests is not compared: the instructions, what models are told of tools, the settings, the conversation."""


UNPLAYED = "It does not play as it was: "
"""How the note begins that a session cannot be played as it was."""


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """What came of playing a recording. `difference` is the first one, None if there was none.

    `recording` is the recording with what is asked and told now: `write_recording` keeps that. `entries` is the log of
    the run, with causal ids. `out_of_order` counts entries that came in another order than they were recorded, between
    strands that do not concern each other.
    """

    difference: Difference | None
    recording: Recording
    entries: tuple[Entry, ...]
    steps: int
    compared: int
    out_of_order: int

    def check(self) -> None:
        """Raise `RecordingDiffersError`, an `AssertionError`, with the difference if there is one."""
        if self.difference is not None:
            raise self.difference.raised()


async def rerun(
    recording: Recording,
    *,
    tools: Iterable[AnyFunction] | None = None,
    live_tools: bool = False,
    models: ModelFactory | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    ignore: Iterable[Ignored] = (),
    seed: int | None = None,
) -> Rerun:
    """Play a recording in a thread of its own, on virtual time. It stops at the first difference.

    `tools` are those that there are now: what models are told of them is compared with the recording, one that is gone
    or new is a difference too, and with `live_tools` they are called for real. Without them tools are as recorded.
    `models` answer for real where they are given: then nothing is compared. `agents` are definitions that there are
    now, by agent id: what follows from them is compared with what was recorded. `ignore` names what of requests is not
    compared. With a `seed` what is ready at the same moment runs in an order of the seed's choice. Raises
    `RecordingError` if the recording cannot be played here.
    """
    return await asyncio.to_thread(
        partial(
            replayed,
            recording,
            tools=tools,
            live_tools=live_tools,
            models=models,
            agents=agents,
            ignore=ignore,
            seed=seed,
        )
    )


def replayed(
    recording: Recording,
    *,
    tools: Iterable[AnyFunction] | None = None,
    live_tools: bool = False,
    models: ModelFactory | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    ignore: Iterable[Ignored] = (),
    seed: int | None = None,
    adopts: bool = False,
) -> Rerun:
    """The same, here and now. Not to be called within an event loop.

    With `adopts`, entries of the log and arguments of calls that say something else are no difference: `recording` has
    them as they are now.
    """
    provided = None if tools is None else {tool.name: tool for tool in as_tools(tools)}
    _check_live(recording, set(provided or ()), is_live=live_tools)
    run = Run(
        _defined(recording, agents or {}),
        tools=provided,
        live_tools=live_tools,
        models=models,
        ignore=frozenset(ignore),
        chance=random.Random(seed or 0),  # noqa: S311 - chance that can be repeated is the purpose
        adopts=adopts,
    )
    run_virtually(run.play(), seed=seed)
    return _outcome(run)


def _check_live(recording: Recording, provided: set[str], *, is_live: bool) -> None:
    missing = [tool.name for tool in recording.tools if tool.name not in provided]
    if is_live and missing:
        raise RecordingError(
            f"The recording calls tools that are not there now: {', '.join(missing)}. Provide them (files in "
            ".whisperer/tools, or tools= in Python), or let the recording answer for them: leave --tools live out."
        )


def _defined(recording: Recording, agents: Mapping[str, AgentDefinition]) -> Recording:
    """The recording with agents as they are defined now."""
    if not agents:
        return recording
    now = (replace(agent, definition=agents.get(agent.id, agent.definition)) for agent in recording.agents)
    return replace(recording, agents=tuple(replace(agent, digest=definition_digest(agent.definition)) for agent in now))


def _outcome(run: Run) -> Rerun:
    return Rerun(
        difference=run.difference,
        recording=run.as_asked(),
        entries=tuple(run.entries),
        steps=run.steps,
        compared=run.comparison.compared,
        out_of_order=run.comparison.out_of_order,
    )


async def noted(recording: Recording, cleaned: Recording) -> Recording:
    """The `cleaned` recording with what its models are asked, which a run finds out.

    The log has texts that are made of others and cut, so what was cleaned in them is not what the cleaned texts lead
    to. Where the session plays as it was, the cleaned one is played too, and what its log says then is kept. `notes` of
    the header tell what differed.
    """
    adopts = cleaned != recording and (await rerun(recording)).difference is None
    outcome = await asyncio.to_thread(partial(replayed, cleaned, adopts=adopts))
    if outcome.difference is None:
        return outcome.recording
    note = f"{UNPLAYED}{outcome.difference.sentence}"
    header = replace(outcome.recording.header, notes=(*cleaned.header.notes, note))
    return replace(outcome.recording, header=header)


async def updated(recording: Recording) -> Recording:
    """A recording with what is asked and told now, as `Rerun` has it, redacted so that it may be written.

    Raises `RecordingError` if it does not play any more when it is redacted.
    """
    cleaned = redacted_again(recording)
    kept = await noted(
        recording, replace(cleaned, replies=tuple(replace(each, asked=None) for each in cleaned.replies))
    )
    if kept.header.notes != recording.header.notes:
        raise RecordingError(f"The recording is left as it is. {kept.header.notes[-1]} Record the session again.")
    return kept
