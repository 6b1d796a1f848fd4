"""Tools stay in: what a program in a sandbox tries, and must not be able to do."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.probing import probe
from ai_whisperer.sandbox.sandlock import policy
from ai_whisperer.sandbox.ways_out import WAYS
from tests.acceptance.sandbox_stage import STRONG_LEVELS, Stage, staged

SECRET = "canary-7f3a9c"  # noqa: S105 - it stands for one

SEEN = """
import json, os, sys
print(json.dumps({
    "environment": dict(os.environ),
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1],
    "stdin": sys.stdin.read(),
    "open": open(sys.argv[1] + "/open").read(),
    "written": open("written", "w").write("x"),
}))
"""


class Seen:
    """What a program in the sandbox could do, and what it saw."""

    def __init__(self, stage: Stage, report: dict[str, Any], ways_out: tuple[str, ...]) -> None:
        self.stage = stage
        self.report = report
        self.ways_out = ways_out


@pytest.fixture(scope="module", params=STRONG_LEVELS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("sandbox")
    readable = folder / "readable"
    readable.mkdir()
    (readable / "open").write_text("open")
    with pytest.MonkeyPatch.context() as patch, staged(request.param, folder) as stage:
        patch.setenv("OPENAI_API_KEY", SECRET)
        patch.setenv("WHISPERER_TOKEN", SECRET)
        outcome = stage.python(SEEN, str(readable), readable=(str(readable),))
        assert outcome.succeeded, outcome.output.decode(errors="replace")
        found = asyncio.run(probe(stage.sandbox))
        assert found.runs, found.reason
        yield Seen(stage, json.loads(outcome.output), found.ways_out)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_in_a_sandbox_cannot(seen: Seen, way: str) -> None:
    assert way not in seen.ways_out


def test_a_program_in_a_sandbox_can_do_what_it_may(seen: Seen) -> None:
    assert seen.report["open"] == "open"
    assert (seen.stage.own / "written").read_text() == "x"


def test_nothing_of_the_server_is_in_the_environment_of_a_program(seen: Seen) -> None:
    assert SECRET not in json.dumps(seen.report)
    assert set(seen.report["environment"]) <= {"PATH", "PWD", "LC_CTYPE"}


def test_a_program_has_no_descriptors_but_its_three_streams(seen: Seen) -> None:
    assert seen.report["descriptors"] == ["0", "1", "2"]


def test_the_input_of_a_program_is_closed(seen: Seen) -> None:
    assert seen.report["stdin"] == ""


def test_a_granted_folder_is_there_and_its_sibling_is_not(seen: Seen, tmp_path: Path) -> None:
    (tmp_path / "granted").mkdir()
    (tmp_path / "granted/file").write_text("granted")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text(SECRET)
    outcome = seen.stage.sh(
        f"cat {tmp_path}/granted/file; cat {tmp_path}/other/file", readable=(str(tmp_path / "granted"),)
    )
    assert b"granted" in outcome.output
    assert SECRET.encode() not in outcome.output


def test_processes_of_a_program_can_share_memory_and_its_streams_have_names(seen: Seen) -> None:
    code = """
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(sum(pool.map(abs, [-1, -2])), open("/dev/stdin").read(), end="")
"""
    outcome = seen.stage.python(code)
    assert (outcome.output == b"3 ") == (seen.stage.level != "sandlock"), outcome.output


def test_a_program_without_granted_hosts_can_talk_to_itself(seen: Seen) -> None:
    code = """
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    if family == socket.AF_INET or socket.has_dualstack_ipv6():
        with socket.create_server((host, 0), family=family) as server:
            socket.create_connection(server.getsockname()[:2], 10).close()
print("talked")
"""
    outcome = seen.stage.python(code)
    assert (outcome.output == b"talked\n") == (seen.stage.level != "sandlock")


CONNECT = """
import json, socket, sys
for host, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((host, port), 2).close()
        print(host, "reached")
    except OSError:
        print(host, "refused")
"""


def reached(stage: Stage, targets: list[tuple[str, int]], *network: str) -> list[bool]:
    outcome = stage.python(CONNECT, json.dumps(targets), network=network)
    assert outcome.succeeded, outcome.output
    return [line.endswith("reached") for line in outcome.output.decode().splitlines()]


def test_the_network_is_open_at_the_granted_port_and_at_no_other(seen: Seen) -> None:
    with socket.create_server(("", 0)) as one, socket.create_server(("", 0)) as other:
        port, closed = one.getsockname()[1], other.getsockname()[1]
        targets = [("127.0.0.1", port), ("127.0.0.1", closed), ("127.0.0.2", port)]
        is_open = seen.stage.level == "sandlock"
        assert reached(seen.stage, targets, f"127.0.0.1:{port}") == [is_open, False, False]
        assert reached(seen.stage, targets, f"localhost:{port}", "*.example.org") == [is_open, False, False]
        assert reached(seen.stage, targets, "127.0.0.1") == [False, False, False]
        assert reached(seen.stage, targets, "*.example.org") == [False, False, False]


def test_a_grant_of_an_ipv6_address_holds(seen: Seen) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as one:
        port = one.getsockname()[1]
        is_open = seen.stage.level == "sandlock"
        assert reached(seen.stage, [("::1", port), ("127.0.0.1", port)], f"[::1]:{port}") == [is_open, False]


def test_a_grant_of_all_public_hosts_leads_to_no_private_one(seen: Seen) -> None:
    with socket.create_server(("", 0)) as listening:
        port = listening.getsockname()[1]
        targets = [("127.0.0.1", port), ("127.0.0.2", port), ("::ffff:127.0.0.1", port)]
        assert reached(seen.stage, targets, f"*:{port}") == [False, False, False]
        is_open = seen.stage.level == "sandlock"
        assert reached(seen.stage, targets, f"*:{port}", f"127.0.0.2:{port}") == [False, is_open, False]


def test_a_name_that_leads_to_a_link_local_address_is_not_followed_by_programs() -> None:
    rules = policy(Job(argv=("x",), cwd="/", network=("example.org",)))
    assert "169.254.0.0/16" in rules["net_deny"]
    granted = policy(Job(argv=("x",), cwd="/", network=("example.org", "169.254.169.254:80")))
    assert not any(ip_address("169.254.169.254") in ip_network(each) for each in granted["net_deny"])
    assert "169.254.0.0/17" in granted["net_deny"]
