"""The ways out are real attempts: where a wall is taken away, those that it closes are found to work."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher
from ai_whisperer.sandbox.probing import Probe, probe
from ai_whisperer.sandbox.ways_out import SENDS_BY_UDP, WAYS
from tests.acceptance.sandbox_stage import need, until

_WITHOUT = """
from ai_whisperer.sandbox import apart, bubblewrap, namespaces, own_world, privileges, sandlock, seccomp, zygote
{damage}
main = zygote.main; """

NO_FILTER = "seccomp.take_on = lambda **_: None"
ANY_SOCKET = "whole = seccomp._rules; seccomp._rules = lambda _: {**whole(_), 'socket': []}"
ANY_ARGUMENT = "seccomp._rules = lambda _: {}"
NO_DENIED_CALLS = "seccomp._DENIED = seccomp.WATCHING = (); seccomp._FIRST_UNKNOWN = 1 << 31"
NETWORK_OF_THE_MACHINE = (
    "whole = namespaces.Root.__init__\n"
    "namespaces.Root.__init__ = lambda self, *, network, **rest: whole(self, network=True, **rest)"
)
NOTHING_OF_ITS_OWN = "seccomp.starter = lambda *_, **__: []"
READABLE_FIRST = "namespaces.sorted = lambda paths: sorted(paths, key=lambda path: -len(path))"
ANY_ADDRESS = "whole = seccomp._rules; seccomp._rules = lambda sockets: whole(sockets | seccomp.Sockets.ADDRESSES)"
KEEPS_CAPABILITIES = "privileges.become_job_user = lambda: None"


class Damaged(Launcher):
    """Its keepers have a bug."""

    def __init__(self, damage: str) -> None:
        super().__init__()
        self.program = Launcher.program.replace(
            "from ai_whisperer.sandbox.zygote import main; ", _WITHOUT.format(damage=damage)
        )


def probed(level: str, damage: str) -> Probe:
    need(level)

    async def look() -> Probe:
        launcher = Damaged(damage)
        try:
            return await probe(KeptSandbox(level, launcher))
        finally:
            await launcher.close()

    return asyncio.run(look())


@pytest.mark.parametrize(
    ("level", "damage", "worked"),
    [
        ("namespaces", NO_FILTER, {"make a setuid file by chmod", "make a user namespace", "use memfd_create"}),
        ("namespaces", NO_DENIED_CALLS, {"use memfd_create", "share memory or messages by shmget"}),
        ("namespaces", ANY_ARGUMENT, {"make a setuid file by open", "make a user namespace by clone"}),
        (
            "namespaces",
            ANY_SOCKET,
            {"open a socket to the routes of the kernel", "connect to a socket in a folder that it may only read"},
        ),
        ("namespaces", READABLE_FIRST, {"write into what it may only read in a folder that it may write"}),
        ("sandlock", ANY_ADDRESS, {"listen on the network of the machine without an address"}),
        ("namespaces", NETWORK_OF_THE_MACHINE, {"connect by TCP", SENDS_BY_UDP}),
        ("sandlock", NOTHING_OF_ITS_OWN, {"make a setuid file by openat2"}),
        ("bubblewrap", ANY_ARGUMENT, {"make a setuid file by open", "open a socket to the routes of the kernel"}),
    ],
)
def test_what_a_wall_closes_works_without_it(level: str, damage: str, worked: set[str]) -> None:
    found = probed(level, damage)
    assert found.runs, found.reason
    assert not found.holds
    assert worked <= set(found.ways_out)
    assert f"{len(found.ways_out)} of {len(WAYS)} escape attempts succeed" in found.reason


def test_what_root_could_do_is_found_where_programs_stay_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only a server that is run by root has privileges to give up")
    worked = {"run as root of the machine", "keep a capability", "become another user"}
    assert worked <= set(probed("namespaces", KEEPS_CAPABILITIES).ways_out)


def test_with_limits_alone_nearly_everything_works() -> None:
    found = probed("rlimits", "pass")
    assert {"read the token", "connect by TCP", "signal the server", SENDS_BY_UDP} <= set(found.ways_out)
    if os.geteuid() == 0:
        assert "change the mode of the token" in found.ways_out


def left_by_others() -> set[str]:
    """What stays on a machine when the process that made it has gone: mounts, memory and queues that are shared."""
    shared = [Path(f"/proc/sysvipc/{kind}") for kind in ("shm", "msg", "sem")]
    made = {f"{path.name} {' '.join(line.split()[:2])}" for path in shared for line in path.read_text().splitlines()}
    mounted = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    return made | {path for path in mounted if "whisperer-probe-" in path}


def test_a_trial_of_what_holds_nothing_leaves_nothing_on_the_machine() -> None:
    before = left_by_others()
    found = probed("rlimits", "pass")
    assert "share memory or messages by shmget" in found.ways_out
    assert until(lambda: not left_by_others() - before)  # a test beside this one may be trying just now


def test_the_ways_out_are_many_and_none_is_there_twice() -> None:
    assert len(WAYS) == len(set(WAYS)) >= 60
