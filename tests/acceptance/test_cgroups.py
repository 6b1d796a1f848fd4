"""Control groups: found as the kernel tells of them, and real ones where this machine lets root have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ai_whisperer.tools.sandbox import cgroups
from ai_whisperer.tools.sandbox.cgroups import own_groups, remove_left_over

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


def need_groups() -> None:
    if "pids" not in cgroups._parents():
        pytest.skip("only root needs control groups, and none can be made here below the own one")


def folders_of(pid: int) -> list[Path]:
    return [folder for parent in cgroups._parents().values() for folder in parent.glob(f"whisperer-{pid}-*")]


def in_another_process(code: str) -> list[str]:
    """What it prints, line by line."""
    begin = f"import os\nfrom ai_whisperer.tools.sandbox.cgroups import JobGroup\ngroup = JobGroup()\n{code}"
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
    own = [parent / f"whisperer-{os.getpid()}-0" for parent in cgroups._parents().values()]
    for folder in own:
        folder.mkdir()
    assert folders_of(int(pid)) != []
    remove_left_over()
    assert (folders_of(int(pid)), folders_of(os.getpid())) == ([], own)
    for folder in own:
        folder.rmdir()
