"""The files of agents and the sessions that they belong to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ai_whisperer.client import Client
from ai_whisperer.runtime.agents.folders import remove_work_of
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings


@pytest.mark.parametrize("session_id", ["..", "."])
def test_deleting_a_session_with_an_odd_name_deletes_nothing_of_others(tmp_path: Path, session_id: str) -> None:
    """An earlier version made sessions of such names."""
    kept = tmp_path / "work" / "default" / "agents" / "ann" / "kept.md"
    kept.parent.mkdir(parents=True)
    kept.write_text("kept", encoding="utf-8")
    (tmp_path / "whisperer.db").touch()
    assert remove_work_of(tmp_path / "work", session_id)
    assert kept.read_text(encoding="utf-8") == "kept"
    assert (tmp_path / "whisperer.db").exists()


def test_the_server_tells_what_holds_the_programs_of_agents(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            running(Settings(data=tmp_path, port=0)) as server,
            Client(server.address.url, server.address.token) as client,
        ):
            assert (await client.server_info()).sandbox == "untried"
            await server.try_sandbox()
            told = (await client.server_info()).sandbox
            sandbox = ChosenSandbox()
            chosen = sandbox.chosen_of(await sandbox.probe_all())
            await sandbox.close()
            assert told == ("none" if chosen is None else chosen.level)

    asyncio.run(main())
