"""A fork without a server: made here, and brought into the data folder."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ai_whisperer.cli.calling import Call
from ai_whisperer.domain.forks import Effects, ForkReport
from ai_whisperer.errors import DefinitionError

if TYPE_CHECKING:
    from ai_whisperer.domain.definition import AgentDefinition
    from ai_whisperer.replay.recording import Recording


async def forked_here(
    call: Call, session: str, *, at: int, changes: Mapping[str, Any], effects: Effects, runs: int, name: str | None
) -> ForkReport:
    """Fork a session of the data folder that no server has. Nothing of it begins before one opens it."""
    from ai_whisperer.cli.commands.moving import imported
    from ai_whisperer.cli.recordings import tools_here
    from ai_whisperer.core.changes import changed_definitions
    from ai_whisperer.replay.recording import calls_after, needs_of, record_for_fork, session_store, write_fork

    here = call.settings.values
    async with session_store(here.work or here.data, session, address=here.store) as store:
        recording = await record_for_fork(store, session, at=at, tools=tools_here(call))
        calls = await calls_after(store, session, at=at) if effects is Effects.RECORDED else []
        needs = await needs_of(store, session)
    agents = changed_definitions({agent.id: agent.definition for agent in recording.agents}, changes)
    _check(call, recording, agents)
    stem = name or f"{session}-fork-{at}"
    made: list[str] = []
    with tempfile.TemporaryDirectory(prefix="whisperer-fork-") as folder:
        file = Path(folder, "fork.zip")
        title = f"{session} from {at}"
        await asyncio.to_thread(
            lambda: write_fork(recording, file, agents=agents, effects=effects, calls=calls, title=title, needs=needs)
        )
        for number in range(1, runs + 1):
            report = await imported(call, file, new_id=stem if runs == 1 else f"{stem}-{number}")
            made.append(report.session_id)
    return ForkReport(session_id=session, at=at, session_ids=made, effects=effects, recorded_calls=len(calls))


def _check(call: Call, recording: Recording, agents: Mapping[str, AgentDefinition]) -> None:
    """Raise `DefinitionError` if an agent of the fork has a model or a tool that is not here.

    Functions that a program provided for an agent it can provide again.
    """
    from ai_whisperer.cli.recordings import tools_here
    from ai_whisperer.models.catalog import check_name
    from ai_whisperer.runtime.agents.defining import check_model
    from ai_whisperer.tools.mcp.names import server_of
    from ai_whisperer.tools.registry import ToolRegistry, told_missing

    tools = tools_here(call)
    for agent in recording.agents:
        definition = agents.get(agent.id, agent.definition)
        if agent.id in agents:
            check_model(definition, check_name)
        missing = [
            name
            for name in ToolRegistry(tools, granted=definition.tools).missing_from(definition.tools or ())
            if name not in agent.tools and server_of(name) not in call.settings.values.mcp
        ]
        if missing:
            raise DefinitionError(
                f"{told_missing(agent.id, missing, tools)} Or say which tools it is to have: --set {agent.id}.tools=[…]"
            )
