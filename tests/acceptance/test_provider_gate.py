"""Many agents at a provider that takes few requests at a time, over real HTTP."""

from __future__ import annotations

import asyncio
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.cli.doctor.findings import Level
from ai_whisperer.cli.doctor.providers import check_running_providers
from ai_whisperer.client import Client
from ai_whisperer.domain.providers import Account
from ai_whisperer.models.openai_chat import OpenAIChatModel
from ai_whisperer.models.pydantic_ai import PydanticAIModel
from ai_whisperer.server.address import Address
from ai_whisperer.server.serving import running
from ai_whisperer.settings import Settings
from ai_whisperer.testing.model_server import ModelServer, Reply
from tests.acceptance.command_stage import Whisperer

pytestmark = pytest.mark.usefixtures("provider_environment")

KEY = "sk-never-shown-0123456789"
QUICK = {"retry": {"first_delay_seconds": 0.02, "max_delay_seconds": 0.1}, "limits": {"max_retry_after_seconds": 0.1}}


@pytest.mark.parametrize("retry_after", ["", "0.05", "-5", "soon", "31536000", "9" * 400])
def test_a_crowd_loses_no_task_whatever_the_provider_asks_for(
    retry_after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(120),
            ModelServer(most_at_once=3, retry_after=retry_after, latency_seconds=0.01) as server,
        ):
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            async with AsyncAgentSessionManager(model="openai-chat:test-model") as manager:
                for number in range(40):
                    await manager.create_agent(f"a{number}", QUICK)
                tasks = [await manager.send_task(f"a{number}", "go") for number in range(40)]
                ended = [await manager.wait_task(task) for task in tasks]
                (account,) = manager.list_provider_accounts()
        assert {task.state for task in ended} == {TaskState.COMPLETED}
        assert server.refused > 0
        assert (account.refusals, account.under_way, account.waiting) == (server.refused, 0, 0)

    asyncio.run(run())


def test_an_account_is_told_by_its_address_and_a_digest_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[str]:
        async with asyncio.timeout(60), ModelServer(lambda *_: Reply(text="Hello.")) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            shown = []
            for key in (KEY, KEY, f"{KEY}-other"):
                monkeypatch.setenv("OPENAI_API_KEY", key)
                async with AsyncAgentSessionManager(model="openai-chat:test-model") as manager:
                    await manager.create_agent("a")
                    await manager.run_task("a", "go")
                    shown += [each.account for each in manager.list_provider_accounts()]
        return shown

    first, again, other = asyncio.run(run())
    assert first == again != other
    assert first.startswith("openai at 127.0.0.1:")
    assert KEY not in first


@pytest.mark.parametrize(
    ("url", "key", "address"),
    [
        ("", KEY, "api.openai.com/v1"),
        ("http://127.0.0.1:9/v1", KEY, "127.0.0.1:9/v1"),
        ("http://127.0.0.1:9/v1", "", "127.0.0.1:9/v1"),
        ("http://[::1]:9/some/v1/", "", "[::1]:9/some/v1"),
    ],
)
def test_all_interfaces_and_both_clients_of_a_provider_share_its_account(
    url: str, key: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", key)):
        if value:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name, raising=False)

    async def accounts() -> set[Account | None]:
        prefixes = ("openai", "openai-chat", "openai-responses")
        return {
            OpenAIChatModel("openai-chat:any").account,
            *(PydanticAIModel(f"{each}:any").account for each in prefixes),
        }

    (account,) = asyncio.run(accounts())
    assert account is not None
    assert (account.provider, account.address, bool(account.key)) == ("openai", address, bool(key))


def test_a_server_shows_a_provider_that_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> None:
        settings = Settings(data=tmp_path, port=0, model="openai-chat:test-model")
        async with asyncio.timeout(120), ModelServer(lambda *_: Reply(status=503, error="overloaded")) as provider:
            monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
            async with running(settings) as server, Client(server.address.url, server.address.token) as client:
                held = asyncio.create_task(_told(client, "provider.held"))
                for number in range(8):
                    await client.create_agent(f"a{number}", {"retry": {"first_delay_seconds": 5.0}})
                    await client.send_task(f"a{number}", "go")
                told = await held
                assert told["state"] == "down"
                reached = await _told(client, "limit.reached")
                assert (reached["limit"], reached["account"], reached["max"]) == (
                    "max_requests_per_account",
                    told["account"],
                    0,
                )
                (account,) = await client.list_provider_accounts()
                assert (account.state, account.account) == ("down", told["account"])
                assert "overloaded" in account.reason
                (found,) = await asyncio.to_thread(lambda: list(check_running_providers(tmp_path, "default")))
                assert found.level is Level.WARNING
                assert "down" in found.found
                (listed,) = await asyncio.to_thread(Whisperer(tmp_path, capsys).json, "providers")
                assert (listed["account"], listed["state"]) == (account.account, "down")
                metrics = await asyncio.to_thread(_metrics, server.address)
                assert f'whisperer_provider_down{{account="{account.account}"}} 1.0' in metrics
                assert "whisperer_provider_outages_total" in metrics

    asyncio.run(run())


async def _told(client: Client, name: str) -> dict[str, object]:
    async for note in client.events(after=0):
        if note.name == name:
            return note.params
    raise AssertionError("the server ended")


def _metrics(address: Address) -> str:
    connection = HTTPConnection(address.url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {address.token}"})
    with closing(connection):
        return connection.getresponse().read().decode()
