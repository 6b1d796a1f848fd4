"""Tool calls that wait for a person: with tools from project files, over the socket, the command line and `kill -9`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.client import Client
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.errors import StateError
from ai_whisperer.server.address import find_address
from tests.acceptance.command_stage import Process, Whisperer, serving

TOOLS = """
from pathlib import Path

from ai_whisperer import ToolContext, tool
from ._till import book

@tool(needs_approval=True)
def pay(amount: int, to: str, context: ToolContext) -> str:
    \"\"\"Pay somebody.\"\"\"
    book(context.step_id, amount)
    return f"paid {amount} to {to}"
"""
SHARED = """
from pathlib import Path

def book(step_id: str, amount: int) -> None:
    with (Path(__file__).parent / "paid.txt").open("a") as file:
        file.write(f"{step_id} {amount}\\n")
"""
RULES = r"""
rules:
  - {prompt_match: pay, turn: 0, tools: [{name: pay, arguments: {amount: 5, to: "Ann \e[2J\u202eevil"}}]}
  - {text: "{last}"}
"""


class Shop:
    """A project with a tool that needs a yes."""

    def __init__(self, folder: Path) -> None:
        self.data = folder
        self.tools = folder / ".whisperer" / "tools"
        self.tools.mkdir(parents=True)
        (self.tools / "paying.py").write_text(TOOLS, encoding="utf-8")
        (self.tools / "_till.py").write_text(SHARED, encoding="utf-8")
        (self.tools / "broken.py").write_text("x = 1\nundefined\n", encoding="utf-8")

    def paid(self, task_id: str) -> list[str]:
        """What was paid in the task, as the tool itself has written it down."""
        booked = self.tools / "paid.txt"
        lines = booked.read_text(encoding="utf-8").splitlines() if booked.exists() else []
        return [line for line in lines if line.startswith(f"{task_id}.")]

    def client(self) -> Client:
        address = find_address(self.data)
        assert address is not None
        return Client(address.url, address.token)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def server(shop: Shop) -> Iterator[Process]:
    with serving(shop.data, answers=RULES) as process:
        yield process


@pytest.fixture
def whisperer(shop: Shop, server: Process, capsys: pytest.CaptureFixture[str]) -> Whisperer:
    assert server.process.poll() is None
    return Whisperer(shop.data, capsys)


async def asked(client: Client, task_id: str) -> ApprovalRecord:
    """Give the clerk a task, and wait until it asks."""
    if "clerk" not in [each.agent_id for each in await client.list_agents()]:
        await client.create_agent("clerk", {"tools": ["pay"]})
    async with client.events() as notes:
        await client.send_task("clerk", "pay", task_id=task_id, thread_id=task_id)
        async for note in notes:
            if note.name == "approval.requested" and note.params["taskId"] == task_id:
                assert "arguments" not in note.params
                break
    (approval,) = [each for each in await client.list_approvals() if each.task_id == task_id]
    return approval


def played(shop: Shop, scenario: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(90), shop.client() as client:
            await scenario(client)

    asyncio.run(main())


@pytest.mark.usefixtures("server")
def test_a_call_is_allowed_over_the_socket_by_the_principal_whose_session_it_is(shop: Shop) -> None:
    async def scenario(client: Client) -> None:
        approval = await asked(client, "t1")
        assert (await client.get_agent_status("clerk")).waiting_for == (f"approval:{approval.id}",)
        with pytest.raises(StateError, match="not the one you saw"):
            await client.approve(approval.id, digest="0" * 64)
        assert shop.paid("t1") == []
        approved = await client.approve(approval.id, digest=approval.digest, reason="fine")
        assert (approved.state, approved.decided_by, approved.reason) == ("approved", "local", "fine")
        assert await client.approve(approval.id) == approved
        await client.wait_task("t1")
        assert shop.paid("t1") == ["t1.2 5"]
        assert await client.get_approval(approval.id) == approved

    played(shop, scenario)


def test_the_command_line_shows_exactly_what_waits_and_steers_no_terminal(shop: Shop, whisperer: Whisperer) -> None:
    played(shop, lambda client: asked(client, "t2"))
    listed = whisperer.ok("approvals")
    assert "t2.2" in listed
    shown = whisperer.ok("approvals", "show", "t2.2")
    assert '"amount": 5,\n  "to": "Ann \\u001b[2J\\u202eevil"' in shown
    assert not set(listed + shown) & {"\x1b", "\u202e"}
    assert "waits for approval:t2.2" in whisperer.ok("agents")
    told = whisperer.ok("approvals", "refuse", "t2.2", "--reason", "Too much.")
    assert told == "clerk may not call pay, and is told so.\n"
    assert "They say: Too much." in whisperer.ok("tasks", "show", "t2")
    assert whisperer("approvals", "approve", "t2.2").code == 1
    assert shop.paid("t2") == []
    assert whisperer.json("approvals", "list", "--all")[0]["state"] == "refused"


def test_the_tools_of_the_project_are_listed_and_a_broken_file_is_told(
    shop: Shop, server: Process, whisperer: Whisperer
) -> None:
    told = f"{shop.tools / 'broken.py'}, line 2: the file cannot be loaded: NameError: name 'undefined' is not defined"
    assert f"Tools are left out. {told}" in server.errors
    assert server.errors.count("Tools are left out") == server.errors.count("broken.py") == 1
    listed = {each["name"]: each for each in whisperer.json("tools")}
    assert listed["pay"]["source"] == str(shop.tools / "paying.py")
    assert (listed["pay"]["needsApproval"], listed["send_mail"]["kind"]) == ("always", "coordination")
    assert listed[""]["error"] == told
    line = next(line for line in whisperer.ok("tools").splitlines() if line.startswith("pay "))
    assert "asks a person" in line


def test_what_waits_outlives_a_killed_server_and_runs_once(
    shop: Shop, server: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    played(shop, lambda client: asked(client, "t3"))
    server.signal(signal.SIGKILL)
    server.process.wait(timeout=60)
    with serving(shop.data, answers=RULES):
        whisperer = Whisperer(shop.data, capsys)
        assert "t3.2" in whisperer.ok("approvals")
        assert shop.paid("t3") == []
        assert "clerk may call pay with" in whisperer.ok("approvals", "approve", "t3.2")
        assert "paid 5" in whisperer.ok("tasks", "wait", "t3")
    assert shop.paid("t3") == ["t3.2 5"]
