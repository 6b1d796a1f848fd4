"""Control groups: found as the kernel tells of them, and real ones where this machine lets root have them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import cgroups
from ai_whisperer.sandbox.cgroups import own_groups, remove_left_over
from ai_whisperer.sandbox.launcher import Launcher
from tests.acceptance.sandbox_stage import Stage, a_name, processes_of, staged, until

OLD_MOUNTS = """\
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/pids\\040here cgroup rw,relatime,pids 0 0
proc /proc proc rw 0 0
"""
OLD_GROUPS = "8:pids:/\n1:cpu,cpuacct:/user.slice/a:b\n0::/user.slice\n"
NEW_MOUNTS = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n"
HELD = """
import signal
group.enter()
group.hold(8)
print(os.getpid())
made = []
try:
    while len(made) < 50:
        made.append(os.fork())
        if made[-1] == 0: signal.pause()
except BlockingIOError:
    print(len(made))
print(group.holds)
for each in made:
    os.kill(each, signal.SIGKILL)
    os.waitpid(each, 0)
group.remove()
"""
STEPPED_BACK = """
import signal
group.enter()
child = os.fork()
if child == 0: signal.pause()
group.step_back()
members = [(folder / "cgroup.procs").read_text().split() for folder in group._folders()]
print(all(str(os.getpid()) not in each for each in members))
print(all(str(child) in each for each in members))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
group.remove()
"""
BESIDE_OTHERS = """
from pathlib import Path
from ai_whisperer.sandbox import cgroups
parent = Path({parent!r})
(parent / "cgroup.procs").write_text("0")
(parent / "other").mkdir()
(parent / "other/cgroup.type").write_text("threaded")  # as the controllers make it of all below
cgroups._parents = lambda: {{"pids": parent}}
group.enter()
print(Path("/proc/self/cgroup").read_text().split("0::")[1].count("whisperer_job_"))
group.remove()
(parent / "other").rmdir()
(parent.parent / "cgroup.procs").write_text("0")
parent.rmdir()
"""


def test_each_controller_of_the_old_kind_has_a_hierarchy_of_its_own() -> None:
    assert dict(own_groups(OLD_MOUNTS, OLD_GROUPS)) == {
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct/user.slice/a:b"),
        "pids": Path("/sys/fs/cgroup/pids here"),
    }


def test_the_new_kind_has_one_hierarchy_for_all() -> None:
    group = Path("/sys/fs/cgroup/system.slice/it.service")
    assert dict(own_groups(NEW_MOUNTS, "0::/system.slice/it.service\n")) == {"cpu": group, "pids": group}


def test_without_a_mount_there_is_no_group() -> None:
    assert dict(own_groups("proc /proc proc rw 0 0\n", OLD_GROUPS)) == {}


@pytest.mark.parametrize("name", ["a\x85b", "a\u2028b", "a\xa0b c", os.fsdecode(b"a\xffb"), "a\\134x"])
def test_other_mounts_may_be_called_anything(name: str) -> None:
    others = f"/dev/sdb /media/{name.replace(' ', chr(92) + '040')} vfat rw 0 0\n"
    assert dict(own_groups(others + OLD_MOUNTS, OLD_GROUPS)) == dict(own_groups(OLD_MOUNTS, OLD_GROUPS))


def test_a_group_counts_as_there_only_if_what_is_made_below_has_the_controller(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    assert not cgroups._can_have_others("pids", tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["cgroup.procs"]


def need_groups() -> None:
    if "pids" not in cgroups._parents():
        pytest.skip("only root needs control groups, and none can be made here below the own one")


def folders_of(pid: int) -> list[Path]:
    return [folder for parent in cgroups._parents().values() for folder in parent.glob(f"whisperer_job_{pid}_*")]


def in_another_process(code: str) -> list[str]:
    """What it prints, line by line."""
    begin = f"import os\nfrom ai_whisperer.sandbox.cgroups import JobGroup\ngroup = JobGroup()\n{code}"
    ran = subprocess.run([sys.executable, "-c", begin], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_the_kernel_refuses_a_job_more_processes_than_its_group_may_have() -> None:
    need_groups()
    pid, made, holds = in_another_process(HELD)
    assert (made, holds) == ("8", "True")
    assert folders_of(int(pid)) == []


def test_who_goes_out_of_a_group_leaves_there_what_it_has_started() -> None:
    need_groups()
    is_out, is_in = in_another_process(STEPPED_BACK)
    assert (is_out, is_in) == ("True", "True")


def test_groups_of_the_killed_are_removed_and_those_of_the_living_stay() -> None:
    need_groups()
    pid, *_ = in_another_process("group.enter()\nprint(os.getpid(), flush=True)\nos._exit(0)")
    others = [parent / "whisperer_job_web_1" for parent in cgroups._parents().values()]
    own = [parent / f"whisperer_job_{os.getpid()}_0" for parent in cgroups._parents().values()]
    for folder in (*own, *others):
        folder.mkdir()
    assert folders_of(int(pid)) != []
    remove_left_over()
    assert (folders_of(int(pid)), folders_of(os.getpid())) == ([], own)
    for folder in (*own, *others):
        folder.rmdir()


def test_a_group_of_the_new_kind_is_entered_beside_processes_of_its_parent() -> None:
    uppermost = next((Path(line.split()[1]) for line in mounts() if line.split()[2] == "cgroup2"), None)
    if os.geteuid() != 0 or uppermost is None or not os.access(uppermost, os.W_OK):
        pytest.skip("there is no hierarchy of the new kind here in which root may make groups")
    parent = uppermost / f"whisperer-test-{uuid.uuid4()}"
    parent.mkdir()
    assert in_another_process(BESIDE_OTHERS.format(parent=str(parent))) == ["1"]
    assert not parent.exists()


def mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_the_group_of_a_keeper_that_is_killed_is_removed_while_the_server_goes_on(tmp_path: Path) -> None:
    need_groups()

    async def killed(stage: Stage) -> int:
        name = a_name()
        running = asyncio.create_task(stage.sandbox.run(stage.job("/bin/sleep", name)))
        assert await asyncio.to_thread(until, lambda: bool(processes_of(name)))
        keeper = parent_of(processes_of(name)[0])
        os.kill(keeper, signal.SIGKILL)
        with pytest.raises(SandboxError):
            await running
        return keeper

    with staged("rlimits", tmp_path) as stage:
        keeper = asyncio.run(killed(stage))
        assert until(lambda: folders_of(keeper) == [])


class WithoutGroups(Launcher):
    """The keepers are on a machine that has no control groups."""

    program = Launcher.program.replace(
        "from ai_whisperer.sandbox.zygote import main; ",
        "from ai_whisperer.sandbox import cgroups, zygote\ncgroups._parents = lambda: {}\nmain = zygote.main; ",
    )


def test_without_a_group_the_keeper_goes_before_all_others_and_the_job_does_not(tmp_path: Path) -> None:
    urgent = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    if os.geteuid() != 0 or subprocess.run([sys.executable, "-c", urgent], capture_output=True, check=False).returncode:
        pytest.skip("only root may go before others, and here not even root")
    policies = "import os; print(os.sched_getscheduler(os.getppid()), os.sched_getscheduler(0))"
    with staged("rlimits", tmp_path, WithoutGroups()) as stage:
        keeper, job = map(int, stage.python(policies).output.split())
    assert (keeper, job) == (os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.SCHED_OTHER)
