"""What the demo says of itself: it must be able to say that something went wrong."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live

from ai_whisperer.cli.demo_view import demo_table, summary
from ai_whisperer.cli.live_view import LiveView
from ai_whisperer.client import Client
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.notification import Notification
from ai_whisperer.examples.account import Account, Evidence, evidence_in, take_account
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings

WELL = Account(
    model="scripted:demo",
    results={"switch": "Yes."},
    tasks=3,
    completed=3,
    unfinished=0,
    failed=(),
    mails=2,
    model_requests=4,
    tool_calls=1,
    tokens=1234,
    cost_usd=None,
    plug_pulled=True,
    finished_before=2,
    repeated=0,
    begun_anew=1,
    lost=0,
)


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Account]:
    """What is said of two tasks, one of which failed, with true evidence and with false evidence."""
    data = tmp_path_factory.mktemp("account")
    rules = data / "rules.yaml"
    rules.write_text("rules: [{prompt_match: fail, failure: refused}, {text: fine}]", encoding="utf-8")
    settings = Settings(data=data, port=0, model=f"scripted:{rules}")

    async def work() -> None:
        async with running(settings) as server, Client(server.address.page) as client:
            await client.create_agent("ada")
            for prompt in ("go", "fail"):
                await client.wait_task(await client.send_task("ada", prompt, task_id=prompt))
            await client.send_mail("ada", "Hello", "", mail_id="hello")
            await client.at_rest()

    async def account_for() -> dict[str, Account]:
        async with running(settings) as server, Client(server.address.page) as client:
            return {
                name: await take_account(client, model="m", results={"w": "Yes."}, before=before)
                for name, before in all_evidence.items()
            }

    asyncio.run(work())
    true = asyncio.run(read(data))
    all_evidence = {
        "true": true,
        "none": None,
        "repeated": replace(true, finished={**true.finished, "go.1": 1.0}),
        "lost": replace(
            true, tasks=true.tasks | {"x"}, mails=true.mails | {"y"}, finished={**true.finished, "z.1": 1.0}
        ),
    }
    return asyncio.run(account_for())


async def read(data: Path) -> Evidence:
    return await evidence_in(data, "default")


def test_what_happened_is_counted(accounts: dict[str, Account]) -> None:
    account = accounts["true"]
    assert (account.tasks, account.completed, account.unfinished, account.mails) == (3, 2, 0, 1)
    assert (account.model_requests, account.tool_calls) == (3, 0)
    assert (account.finished_before, account.repeated, account.lost) == (3, 0, 0)


def test_a_task_that_failed_is_named_with_its_reason(accounts: dict[str, Account]) -> None:
    (failure,) = accounts["true"].failed
    assert " of ada ended as failed: Rule 1 of the scripted model plays the failure" in failure
    assert not accounts["true"].is_well


def test_a_finished_step_that_was_done_again_is_seen(accounts: dict[str, Account]) -> None:
    assert (accounts["repeated"].repeated, accounts["repeated"].lost) == (1, 0)


def test_a_task_a_mail_and_a_step_that_are_gone_are_seen(accounts: dict[str, Account]) -> None:
    assert (accounts["lost"].repeated, accounts["lost"].lost) == (0, 3)


def test_a_plug_that_was_not_pulled_is_told_so(accounts: dict[str, Account]) -> None:
    assert not accounts["none"].plug_pulled
    assert "The plug was not pulled" in summary(accounts["none"])


def test_all_is_well_only_if_nothing_is_wrong() -> None:
    assert WELL.is_well
    troubles: list[dict[str, Any]] = [
        {"failed": ("ada: x",)},
        {"unfinished": 1},
        {"repeated": 1},
        {"lost": 1},
        {"results": {"switch": ""}},
    ]
    for trouble in troubles:
        assert not replace(WELL, **trouble).is_well, trouble


def test_the_summary_tells_every_trouble() -> None:
    told = summary(
        replace(WELL, results={"switch": ""}, failed=("ada: the\nmodel",) * 7, unfinished=2, repeated=3, lost=4)
    )
    assert "switch:\n  There is no result." in told
    assert told.count("failed: ada: the model") == 5
    assert "failed: 2 more" in told
    assert "(2 not finished)" in told
    assert "3 of them were done again, 4 tasks, mails and steps were lost" in told
    assert "at a cost that is not known" in told


STATUS = AgentStatus(
    agent_id="ada",
    state=AgentState.ACTIVE,
    current_task="user_prompt",
    queue_size=2,
    sleeping_until=None,
    started=True,
    reason="",
    unread_mail=0,
    running_tasks=(),
    progress_percent=50.0,
    progress_note="[bold]\x1b[2J",
    tasks=1,
    usage=Usage(input_tokens=1000, output_tokens=234),
    name="",
    description="",
)


def seen(*statuses: AgentStatus) -> str:
    """What a terminal of 24 lines shows of these agents and of a mail."""
    console = Console(file=io.StringIO(), force_terminal=True, width=110, height=24, markup=False, highlight=False)

    class Agents:
        async def list_agents(self) -> list[AgentStatus]:
            return list(statuses)

    with Live(console=console, auto_refresh=False) as live:
        view = LiveView(live, demo_table)
        asyncio.run(view.look(Agents()))  # type: ignore[arg-type]
        view.tell(
            Notification(
                seq=7,
                session_id="default",
                name="mail.sent",
                cause="",
                at=0.0,
                params={"sender": "ada", "recipient": "user", "subject": "[red]\x1b]0;x\x07\nnext"},
            )
        )
    shown: str = console.file.getvalue()  # type: ignore[attr-defined]
    return shown


def test_the_live_view_shows_what_models_write_as_plain_text() -> None:
    shown = seen(STATUS)
    assert "50 % █████░░░░░ [bold]\\x1b[2J" in shown
    assert "1,234" in shown
    assert "   7  ada        mailed user: [red]\\x1b]0;x\\x07 next" in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown


def test_however_many_agents_there_are_the_live_view_shows_what_happens_and_who_works() -> None:
    many = [replace(STATUS, agent_id=f"idle-{number}", state=AgentState.IDLE) for number in range(50)]
    shown = seen(*many, STATUS)
    assert "mailed user: " in shown
    assert re.search(r"^ *ada +active", re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown), re.MULTILINE)
    assert "… and 36 more agents" in shown
