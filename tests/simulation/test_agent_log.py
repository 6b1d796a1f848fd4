"""The log of an agent is a view of the session's numbered log."""

from __future__ import annotations

from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.agent_log import agents_of
from ai_whisperer.domain.notification import LogEntries
from ai_whisperer.errors import InvalidInputError, UnknownAgentError
from ai_whisperer.runtime.api import agent_log
from tests.simulation.stage import play


def subjects(page: LogEntries) -> list[str]:
    return [entry["params"]["subject"] for entry in page.entries if entry["event"] == "mail.sent"]


def seqs(page: LogEntries) -> list[int]:
    return [entry["seq"] for entry in page.entries]


async def mails(manager: AsyncAgentSessionManager, agent: str, numbers: range) -> None:
    for number in numbers:
        await manager.send_mail(agent, f"n{number}", "x")


async def two_agents(manager: AsyncAgentSessionManager) -> None:
    await manager.create_agent("ada", auto_start=False)
    await manager.create_agent("bob", auto_start=False)


def test_the_log_has_all_that_is_told_of_the_agent_and_nothing_else() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada")
        await manager.create_agent("bob")
        await manager.run_task("ada", 'say "bob"')
        await manager.run_task("bob", "go")
        log = await manager.read_log("ada", level="debug")
        assert seqs(log) == [note.seq for note in await manager.notifications() if "ada" in agents_of(note)]
        assert log.next == manager.last_seq
        assert {entry["agent"] for entry in log.entries} == {"ada"}
        shown = await manager.read_log("ada")
        assert {entry["level"] for entry in shown.entries} == {"info"}
        assert len(shown.entries) < len(log.entries)

    play(scenario)


@pytest.mark.parametrize("others", [0, 1, 40])
def test_the_last_entries_are_found_however_much_was_told_of_others(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_log, "_SLICE", 10)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        for number in range(50):
            await mails(manager, "ada", range(number, number + 1))
            await mails(manager, "bob", range(others))
        assert subjects(await manager.read_log("ada", limit=3)) == ["n47", "n48", "n49"]
        assert subjects(await manager.read_log("ada", limit=1_000)) == [f"n{number}" for number in range(50)]

    play(scenario)


def test_what_was_told_before_the_agent_was_created_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_log, "_SLICE", 10)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob", auto_start=False)
        await mails(manager, "bob", range(500))
        created = manager.last_seq
        await manager.create_agent("ada", auto_start=False)
        looked_at: list[int] = []
        store = manager._session.kernel.store
        look = store.last_notifications_naming

        def note_and_look(*args: Any, after: int, **more: Any) -> Any:
            looked_at.append(after)
            return look(*args, after=after, **more)

        monkeypatch.setattr(store, "last_notifications_naming", note_and_look)
        assert len((await manager.read_log("ada", limit=1_000)).entries) == 1
        assert min(looked_at) > created - 20

    play(scenario)


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_from_a_number_on_everything_comes_once(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_log, "_SLICE", 10)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        seen: list[str] = []
        position = (await manager.read_log("ada")).next
        for first in range(0, 30, 5):
            await mails(manager, "bob", range(17))
            await mails(manager, "ada", range(first, first + 5))
            while (page := await manager.read_log("ada", after=position, limit=limit)).entries:
                seen += subjects(page)
                position = page.next
            assert page.next == manager.last_seq
        assert seen == [f"n{number}" for number in range(30)]

    play(scenario)


def test_a_number_that_is_not_there_yet_is_of_an_earlier_life_and_the_log_is_read_from_its_start() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        page = await manager.read_log("ada", after=1_000_000)
        assert [entry["event"] for entry in page.entries] == ["agent.created"]
        assert page.next == manager.last_seq

    play(scenario)


def test_what_makes_no_sense_is_refused() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await two_agents(manager)
        wrong: list[dict[str, Any]] = [{"limit": 0}, {"after": -1}, {"level": "loud"}]
        for given in wrong:
            with pytest.raises(InvalidInputError):
                await manager.read_log("ada", **given)
        with pytest.raises(UnknownAgentError):
            await manager.read_log("nobody")

    play(scenario)
