"""Tools stay in: what a program in a sandbox tries, and must not be able to do."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.tools.sandbox.base import Job
from ai_whisperer.tools.sandbox.sandlock import policy
from tests.acceptance.sandbox_stage import STRONG_LEVELS, Stage, staged

SECRET = "canary-7f3a9c"  # noqa: S105 - it stands for one

ATTEMPTS = r"""
import ctypes, json, os, resource, socket, sys
told = json.loads(sys.argv[1])
data, server = told["data"], told["server"]

def read(path):
    return lambda: open(path, "rb").read(4096).decode(errors="replace")

def linked(link):
    def attempt():
        link(data + "/token", "link")
        return open("link").read()
    return attempt

def written(path):
    return lambda: open(path, "w").write("x")

def connected(family, kind, address):
    def attempt():
        with socket.socket(family, kind) as one:
            one.settimeout(2)
            one.connect(address)
            one.send(b"x")
    return attempt

def traced():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, server, 0, 0) != 0:
        raise OSError("refused")

def called(name, *arguments):
    def attempt():
        if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
            raise OSError("refused")
    return attempt

def watched():
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(0)
    added = libc.inotify_add_watch(watch, data.encode(), 0xfff)
    os.close(watch)
    if added < 0:
        raise OSError("refused")

attempts = {
    "reads the token": read(data + "/token"),
    "reads the folder of another agent": read(data + "/work/s/agents/bob/secret"),
    "lists the folder of another agent": lambda: os.listdir(data + "/work/s/agents/bob"),
    "lists the data folder": lambda: os.listdir(data) and read(data + "/token")(),
    "reads through a symlink of its own": linked(os.symlink),
    "reads through a hard link": linked(os.link),
    "reads through its own root": read("/proc/self/root" + data + "/token"),
    "writes into the data folder": written(data + "/written"),
    "writes into a folder that it may only read": written(told["readable"] + "/written"),
    "writes into the system": written("/usr/written-by-a-test"),
    "reads the environment of the server": read(f"/proc/{server}/environ"),
    "reads the files of the server": lambda: os.listdir(f"/proc/{server}/fd"),
    "reads the memory of the server": read(f"/proc/{server}/mem"),
    "reads the environment of its keeper": read(f"/proc/{os.getppid()}/environ"),
    "signals the server": lambda: os.kill(server, 0),
    "traces the server": traced,
    "limits the CPU time of the server": lambda: resource.prlimit(server, resource.RLIMIT_CPU, (9999, 9999)),
    "reads the limits of the server": lambda: resource.prlimit(server, resource.RLIMIT_CORE),
    "takes priority from the server": lambda: os.setpriority(os.PRIO_PROCESS, server, 1),
    "schedules the server": lambda: os.sched_setscheduler(server, os.SCHED_BATCH, os.sched_param(0)),
    "takes processors from the server": lambda: os.sched_setaffinity(server, os.sched_getaffinity(0)),
    "changes the mode of the token": lambda: os.chmod(data + "/token", 0o666),
    "changes the times of the token": lambda: os.utime(data + "/token", (0, 0)),
    "changes the owner of the token": lambda: os.chown(data + "/token", os.getuid(), os.getgid()),
    "gives the token an attribute": lambda: os.setxattr(data + "/token", "user.x", b"x"),
    "changes the mode of what it may only read": lambda: os.chmod(told["readable"] + "/open", 0o4755),
    "changes the times of what it may only read": lambda: os.utime(told["readable"] + "/open", (0, 0)),
    "sees that the token is there": lambda: os.stat(data + "/token"),
    "reads where a link of others leads": lambda: os.readlink(data + "/link"),
    "watches the data folder": watched,
    "makes memory that no limit counts": lambda: os.memfd_create("x"),
    "makes secret memory": called("syscall", 447, 0),
    "makes shared memory": called("shmget", 0x7272, 1 << 20, 0o1600),
    "makes a ring of calls": called("syscall", 425, 4, ctypes.create_string_buffer(200)),
    "makes a user namespace": called("unshare", 0x10000000),
    "connects by TCP": connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", told["tcp"])),
    "sends by UDP": connected(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", told["udp"])),
    "connects to an abstract socket": connected(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + told["abstract"]),
    "connects to a socket in the data folder": connected(socket.AF_UNIX, socket.SOCK_STREAM, data + "/socket"),
    "opens a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "reads what it may": read(told["readable"] + "/open"),
    "writes where it may": written("written"),
}
done = {}
for name, attempt in attempts.items():
    try:
        done[name] = repr(attempt())
    except Exception as error:
        done[name] = None
    finally:
        if os.path.lexists("link"):
            os.unlink("link")
print(json.dumps({
    "done": done,
    "environment": dict(os.environ),
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1],
    "stdin": sys.stdin.read(),
}))
"""

FORBIDDEN = [
    "reads the token",
    "reads the folder of another agent",
    "lists the folder of another agent",
    "lists the data folder",
    "reads through a symlink of its own",
    "reads through a hard link",
    "reads through its own root",
    "writes into the data folder",
    "writes into a folder that it may only read",
    "writes into the system",
    "reads the environment of the server",
    "reads the files of the server",
    "reads the memory of the server",
    "signals the server",
    "traces the server",
    "limits the CPU time of the server",
    "reads the limits of the server",
    "takes priority from the server",
    "schedules the server",
    "takes processors from the server",
    "changes the mode of the token",
    "changes the times of the token",
    "changes the owner of the token",
    "gives the token an attribute",
    "changes the mode of what it may only read",
    "changes the times of what it may only read",
    "sees that the token is there",
    "reads where a link of others leads",
    "watches the data folder",
    "makes memory that no limit counts",
    "makes secret memory",
    "makes shared memory",
    "makes a ring of calls",
    "makes a user namespace",
    "connects by TCP",
    "connects to an abstract socket",
    "connects to a socket in the data folder",
    "opens a raw socket",
]


class Seen:
    """What a program in the sandbox could do, and what the server's side saw of it."""

    def __init__(self, stage: Stage, report: dict[str, Any], heard: bytes) -> None:
        self.stage = stage
        self.report = report
        self.heard = heard

    def could(self, attempt: str) -> str | None:
        found: str | None = self.report["done"][attempt]
        return found


@pytest.fixture(scope="module", params=STRONG_LEVELS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("sandbox")
    data = folder / "data"
    (data / "work/s/agents/bob").mkdir(parents=True)
    (data / "work/s/agents/bob/secret").write_text(SECRET)
    (data / "token").write_text(SECRET)
    (data / "link").symlink_to("token")
    (folder / "readable").mkdir()
    (folder / "readable/open").write_text("open")
    with (
        pytest.MonkeyPatch.context() as patch,
        staged(request.param, folder) as stage,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        patch.setenv("OPENAI_API_KEY", SECRET)
        patch.setenv("WHISPERER_TOKEN", SECRET)
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)  # noqa: FBT003 - the socket's own words
        abstract.bind(f"\0whisperer-{os.getpid()}-{request.param}")
        abstract.listen()
        patch.chdir(data)
        named.bind("socket")
        named.listen()
        told = {
            "data": str(data),
            "readable": str(folder / "readable"),
            "server": os.getpid(),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": f"whisperer-{os.getpid()}-{request.param}",
        }
        outcome = stage.python(ATTEMPTS, json.dumps(told), readable=(str(folder / "readable"),))
        assert outcome.succeeded, outcome.output.decode(errors="replace")
        try:
            heard = udp.recv(100)
        except BlockingIOError:
            heard = b""
        yield Seen(stage, json.loads(outcome.output), heard)


@pytest.mark.parametrize("attempt", FORBIDDEN)
def test_a_program_in_a_sandbox_is_kept_from_what_is_not_its_own(seen: Seen, attempt: str) -> None:
    assert seen.could(attempt) is None


def test_every_attempt_is_judged(seen: Seen) -> None:
    elsewhere = {"sends by UDP", "reads the environment of its keeper"}  # judged by what arrives, by what it holds
    allowed = {"reads what it may", "writes where it may", *elsewhere}
    assert set(seen.report["done"]) == set(FORBIDDEN) | allowed


def test_a_program_in_a_sandbox_can_do_what_it_may(seen: Seen) -> None:
    assert seen.could("reads what it may") == repr("open")
    assert (seen.stage.own / "written").read_text() == "x"


def test_nothing_of_the_server_is_in_the_environment_of_a_program(seen: Seen) -> None:
    assert SECRET not in json.dumps(seen.report)
    assert set(seen.report["environment"]) <= {"PATH", "PWD", "LC_CTYPE"}


def test_a_program_has_no_descriptors_but_its_three_streams(seen: Seen) -> None:
    assert seen.report["descriptors"] == ["0", "1", "2"]


def test_the_input_of_a_program_is_closed(seen: Seen) -> None:
    assert seen.report["stdin"] == ""


def test_what_a_program_sends_by_udp_does_not_arrive(seen: Seen) -> None:
    assert seen.heard == b""


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
