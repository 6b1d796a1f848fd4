"""Teams whose models and tools answer from a recording, in each of its modes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import InvalidInputError, ModelRefusedError, ModelServerError, RecordingError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.replay.recording import (
    UNPLAYED,
    Recording,
    read_recording,
    record,
    session_store,
    write_recording,
)
from ai_whisperer.testing import playback
from ai_whisperer.testing.playback import NotRecordedError, Playback
from ai_whisperer.testing.team import Team
from ai_whisperer.testing.words import Speaker, UnsaidError, call
from tests.simulation.stage import prompt_of, results_of, round_of


class Shop:
    """Counts what is really done."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.asked = 0

    def pay(self, invoice: str) -> str:
        """Pay an invoice."""
        self.paid.append(invoice)
        return f"receipt {len(self.paid)}"

    def says(self, request: ModelRequest) -> Answer | str:
        self.asked += 1
        invoice = prompt_of(request).split()[-1]
        return f"Paid: {results_of(request)[0]}" if round_of(request) else call("pay", invoice=invoice)


def team_of(shop: Shop, path: Path, mode: str, *, words: Speaker | None = None, **more: object) -> Team:
    team = Team(
        words=words or shop.says,
        tools=[shop.pay],
        recording=Playback(path / "shop.wrec", mode, **more),  # type: ignore[arg-type]
    )
    team.agent("clerk")
    return team


def recorded(path: Path, *invoices: str) -> None:
    with team_of(Shop(), path, "all") as team:
        for invoice in invoices:
            team.ask("clerk", f"Pay {invoice}")


def test_what_was_recorded_is_answered_without_models_and_tools(tmp_path: Path) -> None:
    recorded(tmp_path, "7")
    shop = Shop()
    with team_of(shop, tmp_path, "none") as team:
        assert team.ask("clerk", "Pay 7") == "Paid: receipt 1"
        assert [each.arguments for each in team.calls("pay")] == [{"invoice": "7"}]
        assert team.runs("pay") == []
    assert (shop.paid, shop.asked) == ([], 0)


def test_once_records_what_is_not_there_and_asks_nothing_afterwards(tmp_path: Path) -> None:
    first, second = Shop(), Shop()
    for shop in (first, second):
        with team_of(shop, tmp_path, "once") as team:
            assert team.ask("clerk", "Pay 7") == "Paid: receipt 1"
    assert (first.asked, second.asked) == (2, 0)
    with team_of(second, tmp_path, "once") as team:
        team.ask("clerk", "Pay 7")
        with pytest.raises(NotRecordedError, match="clerk, task 2, request 1: is asked now and was not recorded"):
            team.ask("clerk", "Pay 8")


def test_new_asks_for_what_is_missing_and_keeps_the_rest(tmp_path: Path) -> None:
    recorded(tmp_path, "7")
    shop = Shop()
    with team_of(shop, tmp_path, "new") as team:
        assert team.ask("clerk", "Pay 7") == "Paid: receipt 1"
        assert team.ask("clerk", "Pay 8") == "Paid: receipt 1"
        assert [each.arguments for each in team.runs("pay")] == [{"invoice": "8"}]
        assert len(team.calls("pay")) == 2
    assert (shop.paid, shop.asked) == (["8"], 2)
    with team_of(Shop(), tmp_path, "none") as team:
        assert [team.ask("clerk", f"Pay {each}") for each in "78"] == ["Paid: receipt 1"] * 2


def test_all_records_anew(tmp_path: Path) -> None:
    recorded(tmp_path, "7")
    with team_of(Shop(), tmp_path, "all", words=lambda _: "I will not.") as team:
        team.ask("clerk", "Pay 7")
    with team_of(Shop(), tmp_path, "none") as team:
        assert team.ask("clerk", "Pay 7") == "I will not."


def test_a_model_fails_as_it_failed_then_with_the_same_code_and_after_the_same_wait(tmp_path: Path) -> None:
    def says(request: ModelRequest) -> str:
        if prompt_of(request) == "Never.":
            raise ModelRefusedError("I may not.")
        if request.attempt == 1:
            raise ModelServerError("Down.", retry_after_seconds=90.0)
        return "Up again."

    ended = []
    for mode in ("all", "none"):
        with team_of(Shop(), tmp_path, mode, words=says) as team:
            began_at = team.now.timestamp()
            assert team.ask("clerk", "Go.") == "Up again."
            assert 90.0 <= team.now.timestamp() - began_at < 100.0
            task = team.send("clerk", "Never.")
            ended.append((task.state, task.error))
    assert ended[0] == ended[1]
    assert ended[0][1] is not None


def test_one_more_agent_or_mail_in_the_test_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    recorded(tmp_path, "7", "8")
    with team_of(Shop(), tmp_path, "none") as team:
        team.agent("newcomer", tools=[])
        team.says("newcomer", "Hello.")
        team.send_mail("newcomer", "Welcome")
        assert [team.ask("clerk", f"Pay {each}") for each in "78"] == ["Paid: receipt 1", "Paid: receipt 2"]


def test_a_recorded_team_is_killed_and_resumes(tmp_path: Path) -> None:
    for mode in ("all", "none"):
        shop = Shop()
        with team_of(shop, tmp_path, mode) as team:
            task = team.begin("clerk", "Pay 7")
            team.until(lambda: team.calls("pay"))
            team.later("0.5s")
            team.kill_and_restart(down_for="1h")
            ended = team.ended(task)
            assert ended.result is not None
            assert ended.result.final == "Paid: receipt 1"
        assert shop.paid == (["7"] if mode == "all" else [])


def test_a_request_that_has_changed_is_told_with_what_differs(tmp_path: Path) -> None:
    recorded(tmp_path, "7")
    with team_of(Shop(), tmp_path, "none") as team:
        with pytest.raises(NotRecordedError) as told:
            team.ask("clerk", "Pay 9")
        assert "clerk, task 1, request 1: turn 1 differs" in str(told.value)
        assert "-Pay 7" in str(told.value)
        assert "+Pay 9" in str(told.value)
        assert "--recordings=new" in str(told.value)
    with team_of(Shop(), tmp_path, "none", ignore=["turns"]) as team:
        assert team.ask("clerk", "Pay 9") == "Paid: receipt 1"


def test_a_run_that_fails_leaves_the_recording_as_it_was(tmp_path: Path) -> None:
    recorded(tmp_path, "7")
    before = (tmp_path / "shop.wrec").read_bytes()
    with pytest.raises(UnsaidError), team_of(Shop(), tmp_path, "all") as team:  # noqa: PT012 - it is left by an error
        assert team.ask("clerk", "Pay 8") == "Paid: receipt 1"
        raise UnsaidError
    assert (tmp_path / "shop.wrec").read_bytes() == before


def test_a_recording_that_does_not_play_takes_the_place_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unplayable(*given: Any, **more: Any) -> Recording:
        made = await record(*given, **more)
        return replace(made, header=replace(made.header, notes=(f"{UNPLAYED}request 1 differs.",)))

    monkeypatch.setattr(playback, "record", unplayable)
    recorded(tmp_path, "7")  # there is none yet
    before = (tmp_path / "shop.wrec").read_bytes()
    for mode in ("new", "all"):
        team = team_of(Shop(), tmp_path, mode)
        team.ask("clerk", "Pay 8")
        with pytest.raises(RecordingError, match=r"shop.wrec' stays as it was.* It does not play as it was: request 1"):
            team.close()
        assert (tmp_path / "shop.wrec").read_bytes() == before


def test_a_real_model_and_a_real_tool_are_asked_in_real_time(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "rules:\n  - {turn: 0, tools: [{name: fetch, arguments: {}}]}\n  - {after_tool: fetch, text: 'Got {last}.'}\n"
    )

    async def fetch() -> str:
        """Fetch over a real connection."""

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"rain")
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            told = await reader.read()
            writer.close()
            await writer.wait_closed()
        return told.decode()

    for mode in ("once", "none"):
        with Team(
            tools=[fetch],
            recording=Playback(tmp_path / "new" / "a.wrec", mode),
            model=f"scripted:{tmp_path}/rules.yaml",
        ) as team:
            team.agent("ann")
            assert team.ask("ann", "Look.") == "Got rain."


def test_personal_data_is_scrubbed_and_the_test_goes_on_with_it(tmp_path: Path) -> None:
    def scrub(text: str) -> str:
        return text.replace("Ada", "somebody")

    for mode in ("all", "none"):
        with team_of(Shop(), tmp_path, mode, scrub=scrub) as team:
            assert team.ask("clerk", "For Ada pay 7") == "Paid: receipt 1"
    assert "Ada" not in (tmp_path / "shop.wrec").read_text()
    assert read_recording(tmp_path / "shop.wrec").header.notes == ()


def test_a_session_that_was_recorded_in_production_answers_for_the_same_tasks(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "rules:\n"
        "  - {agent: boss, turn: 0, tools: [{name: send_mail, arguments: {to_agent: clerk, subject: Go, body: Go}}]}\n"
        "  - {agent: clerk, turn: 0, tools: [{name: pay, arguments: {invoice: '7'}}]}\n"
        "  - {text: Done.}\n"
    )
    shop = Shop()

    async def produce() -> None:
        async with AsyncAgentSessionManager(tmp_path / "data", model=f"scripted:{rules}", tools=[shop.pay]) as manager:
            for agent in ("boss", "clerk"):
                await manager.create_agent(agent)
            await manager.run_task("boss", "Let the clerk pay.")
            await manager.at_rest()
        async with session_store(tmp_path / "data", "default") as store:
            write_recording(await record(store, tools=[shop.pay]), tmp_path / "shop.wrec")

    asyncio.run(produce())
    assert shop.paid == ["7"]
    with Team(tools=[shop.pay], recording="shop.wrec", folder=tmp_path) as team:
        for agent in ("boss", "clerk"):
            team.agent(agent)
        assert team.ask("boss", "Let the clerk pay.") == "Done."
        assert [each.result for each in team.calls("pay")] == ["receipt 1"]
        assert team.answers("clerk") == ["Done."]
    assert shop.paid == ["7"]


def test_a_recorded_tool_of_the_machine_needs_no_machine(tmp_path: Path) -> None:
    def run_command(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    def says(request: ModelRequest) -> Answer | str:
        return results_of(request)[0] if round_of(request) else call("run_command", command="make")

    for mode, tools in (("all", [run_command]), ("none", [])):
        with Team(words=says, tools=tools, recording=Playback(tmp_path / "a.wrec", mode, ignore=["tools"])) as team:
            team.agent("ann", tools=["run_command"])
            assert team.ask("ann", "Make it.") == "ran make"


def test_a_recording_that_is_not_there_and_a_mode_that_is_none_are_explained(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"There is no recording .*none.wrec.*--recordings=once"):
        Team(folder=tmp_path, recording="none.wrec")
    with pytest.raises(InvalidInputError, match=r"'nwe' is no mode of recordings\. Did you mean 'new'"):
        Playback(tmp_path / "x.wrec", "nwe")
    (tmp_path / "bad.wrec").write_text("nothing")
    with pytest.raises(RecordingError):
        Team(folder=tmp_path, recording="bad.wrec")


def test_tools_may_be_provided_in_another_order(tmp_path: Path) -> None:
    def bake(bread: str) -> str:
        """Bake."""
        return bread

    def play(mode: str, *tools: Callable[[str], str]) -> str:
        with Team(words=lambda _: "Done.", tools=tools, recording=Playback(tmp_path / "r.wrec", mode)) as team:
            team.agent("clerk")
            return str(team.ask("clerk", "Go."))

    pay = Shop().pay
    assert play("all", pay, bake) == play("none", bake, pay) == "Done."
    with pytest.raises(NotRecordedError, match="the tools differ"):
        play("none", bake)
