"""Locks over the wire: taken, kept, given back, broken and checked by clients, scripts and commands."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.client import Client
from ai_whisperer.errors import InvalidInputError, LockHeldError, LockNotHeldError
from ai_whisperer.scripting.sync_client import SyncClient
from tests.acceptance.client_stage import StagedServer
from tests.acceptance.command_stage import Ran, Whisperer


async def told(client: Client, name: str, *, times: int) -> None:
    """Return when this was announced so often."""
    async with client.events(after=0) as events:
        async for note in events:
            times -= note.name == name
            if not times:
                return


def test_a_client_takes_renews_checks_and_releases_a_lock(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        lock = await client.acquire_lock("door", ttl_seconds=30, holder="the nightly job")
        assert (lock.holder, lock.token, lock.task_id) == ("the nightly job", 1, None)
        renewed = await client.renew_lock("door", lock.token, 300)
        assert renewed.expires_at is not None
        assert lock.expires_at is not None
        assert renewed.expires_at > lock.expires_at + 200
        assert (await client.check_lock("door", lock.token)).is_current
        with pytest.raises(LockHeldError, match="held by the nightly job"):
            await client.acquire_lock("door")
        assert (await client.release_lock("door", lock.token)).token == lock.token
        check = await client.check_lock("door", lock.token)
        assert (check.is_current, check.ended and check.ended.ending) == (False, "released")
        with pytest.raises(LockNotHeldError, match="'the nightly job' released it, with token 1"):
            await client.renew_lock("door", lock.token)
        assert await client.list_locks() == []

    server.play(scenario, session_id=session_id)


def test_clients_get_a_lock_in_the_order_in_which_they_asked(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        held = await client.acquire_lock("door")
        waits = []
        for number in range(3):
            waits.append(asyncio.ensure_future(client.acquire_lock("door", wait_seconds=20, holder=f"no. {number}")))
            await told(client, "lock.waiting", times=number + 1)
        for number, wait in enumerate(waits):
            await client.release_lock("door", held.token)
            held = await wait
            assert (held.holder, held.token) == (f"no. {number}", number + 2)

    server.play(scenario, session_id=session_id)


def test_a_client_that_gives_up_or_goes_away_waits_no_more(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        held = await client.acquire_lock("door")
        async with Client(server.address.page, session_id=session_id) as other:
            gives_up = asyncio.ensure_future(client.acquire_lock("door", wait_seconds=20))
            goes_away = asyncio.ensure_future(other.acquire_lock("door", wait_seconds=20))
            await told(client, "lock.waiting", times=2)
            gives_up.cancel()
            await told(client, "lock.wait_ended", times=1)
        await asyncio.wait([gives_up, goes_away])
        await told(client, "lock.wait_ended", times=2)
        await client.release_lock("door", held.token)
        assert await client.list_locks() == []
        outcomes = [note.params["outcome"] for note in await client.notifications() if note.name == "lock.wait_ended"]
        assert outcomes == ["abandoned", "abandoned"]

    server.play(scenario, session_id=session_id)


def test_a_person_breaks_a_lock_and_everybody_is_told(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        held = await client.acquire_lock("door", holder="a script that hangs")
        next_one = asyncio.ensure_future(client.acquire_lock("door", wait_seconds=20))
        await told(client, "lock.waiting", times=1)
        assert (await client.break_lock("door", "it hangs")).holder == "a script that hangs"
        assert (await next_one).token == 2
        with pytest.raises(
            LockNotHeldError, match=r"user broke the lease.* \('it hangs'\).*user holds it now with token 2"
        ):
            await client.release_lock("door", held.token)
        (broken,) = [note.params for note in await client.notifications() if note.name == "lock.broken"]
        assert (broken["holder"], broken["token"], broken["by"]) == ("a script that hangs", 1, "user")
        with pytest.raises(LockNotHeldError, match="Nobody holds lock 'gate'"):
            await client.break_lock("gate")

    server.play(scenario, session_id=session_id)


def test_what_makes_no_sense_is_refused_before_it_is_sent(server: StagedServer, session_id: str) -> None:
    async def scenario(client: Client) -> None:
        for wrong in (
            client.acquire_lock(""),
            client.acquire_lock("door", ttl_seconds=-1),
            client.acquire_lock("door", wait_seconds=float("inf")),
            client.renew_lock("door", 0),
            client.check_lock("door", -1),
        ):
            with pytest.raises(InvalidInputError):
                await wrong

    server.play(scenario, session_id=session_id)


def test_a_script_works_with_locks_without_asyncio(server: StagedServer) -> None:
    with SyncClient(server.address.page) as client:
        lock = client.acquire_lock("script")
        assert client.check_lock("script", lock.token).is_current
        client.renew_lock("script", lock.token, 30)
        assert [each.name for each in client.list_locks()] == ["script"]
        client.release_lock("script", lock.token)
        client.acquire_lock("script")
        assert client.break_lock("script", "enough").holder == "user"


@pytest.fixture
def whisperer(server: StagedServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Whisperer:
    monkeypatch.setenv("WHISPERER_URL", server.address.page)
    return Whisperer(Path("data-of-nobody"), capfd)


def token_of(ran: Ran) -> str:
    return str(ran.json["token"])


def test_the_command_takes_renews_checks_lists_and_releases_a_lock(whisperer: Whisperer) -> None:
    token = token_of(whisperer("lock", "acquire", "tape", "--ttl", "30", "--as", "ann", "--json"))
    assert whisperer.ok("lock", "renew", "tape", token, "--ttl", "60").startswith(
        f"ann holds 'tape' with token {token}"
    )
    assert whisperer.ok("lock", "check", "tape", token) == f"ann holds lock 'tape' with token {token}.\n"
    (line,) = [line for line in whisperer.ok("lock", "list").splitlines() if line.startswith("tape")]
    assert line.split()[:2] == ["tape", "ann"]
    assert whisperer.ok("lock", "release", "tape", token) == "Lock 'tape' was released.\n"


def test_the_command_says_why_it_could_not_and_ends_with_1(whisperer: Whisperer) -> None:
    token = token_of(whisperer("lock", "acquire", "tape", "--json"))
    taken = whisperer("lock", "acquire", "tape", "--wait", "0.01", "--json")
    assert (taken.code, taken.error["code"]) == (1, "lock_held")
    assert "was taken from user" in whisperer.ok("lock", "break", "tape", "--reason", "I need it")
    for again in (["renew"], ["release"], ["check"]):
        refused = whisperer("lock", *again, "tape", token)
        assert (refused.code, "user broke the lease of user" in refused.err) == (1, True)
    checked = whisperer("lock", "check", "tape", token, "--json")
    assert (checked.code, checked.json["isCurrent"], checked.json["ended"]["ending"]) == (1, False, "broken")
    assert whisperer("lock", "renew", "tape", "none").code == 2


def test_the_command_holds_a_lock_while_another_command_runs(whisperer: Whisperer, server: StagedServer) -> None:
    look = f"{sys.executable} -m ai_whisperer lock list --json; exit 7"
    ran = whisperer("lock", "acquire", "tape", "--ttl", "30", "--", "sh", "-c", look)
    assert ran.code == 7
    assert [each["name"] for each in ran.json] == ["tape"]
    with SyncClient(server.address.page) as client:
        assert client.list_locks() == []


def is_running(pid: int) -> bool:
    """Whether the process is there and has not ended; one that has ended may still wait to be seen off."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_command_that_lost_its_lock_is_ended_with_all_that_it_started(whisperer: Whisperer, tmp_path: Path) -> None:
    lose = f"{sys.executable} -m ai_whisperer lock break tape >/dev/null"
    child = tmp_path / "child"
    script = f"sleep 60 & echo $! > {child}; {lose}; wait"
    ran = whisperer("lock", "acquire", "tape", "--ttl", "3", "--", "sh", "-c", script)
    assert (ran.code, "user broke the lease of user" in ran.err) == (1, True)
    assert not is_running(int(child.read_text())), "what the command had started goes on"


def test_a_command_that_is_not_there_is_told_and_leaves_no_lock(whisperer: Whisperer) -> None:
    ran = whisperer("lock", "acquire", "tape", "--", "no-such-program-anywhere")
    assert (ran.code, "There is no command 'no-such-program-anywhere'" in ran.err) == (2, True)
    assert whisperer.json("lock") == []


HOLD_AND_DIE = """
import asyncio, os, signal, sys
from ai_whisperer import AsyncAgentSessionManager

async def main():
    async with AsyncAgentSessionManager(sys.argv[1], templates=()) as manager:
        await manager.acquire_lock("short", ttl_seconds=0.01, holder="ann")
        await manager.acquire_lock("long", ttl_seconds=1000, holder="ann")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_leases_go_on_over_kill_9_and_those_whose_time_is_over_end(tmp_path: Path) -> None:
    died = subprocess.run(
        [sys.executable, "-W", "error", "-c", HOLD_AND_DIE, str(tmp_path)], check=False, env=os.environ, timeout=60
    )
    assert died.returncode == -signal.SIGKILL

    async def main() -> None:
        async with asyncio.timeout(60), AsyncAgentSessionManager(tmp_path, templates=()) as manager:
            async for note in manager.subscribe(after=0):
                if note.name == "lock.expired":
                    break
            assert [(lock.name, lock.holder, lock.token) for lock in manager.list_locks()] == [("long", "ann", 2)]
            with pytest.raises(LockNotHeldError):
                await manager.renew_lock("short", 1)
            await manager.release_lock("long", 2)
            assert (await manager.acquire_lock("long")).token == 3

    asyncio.run(main())
