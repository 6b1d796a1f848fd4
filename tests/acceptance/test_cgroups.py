"""Control groups: found as the kernel tells of them, and real ones where this machine lets root have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ai_whisperer.tools.sandbox import cgroups
from ai_whisperer.tools.sandbox.base import Job
from ai_whisperer.tools.sandbox.cgroups import JobGroup, group_for, own_groups, remove_left_over

OLD_MOUNTS = """\
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/pids\\040here cgroup rw,relatime,pids 0 0
proc /proc proc rw 0 0
"""
OLD_GROUPS = "8:pids:/\n1:cpu,cpuacct:/user.slice/a:b\n0::/user.slice\n"
NEW_MOUNTS = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n"
FORKS = """
import os, time
made = 0
try:
    while made < 50:
        if os.fork() == 0: time.sleep(60)
        made += 1
except BlockingIOError:
    print(made, flush=True)
os.killpg(0, 9)
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


def a_group(processes: int) -> JobGroup:
    group = group_for(Job(argv=("",), cwd="/", processes=processes), extra=0)
    if group is None:
        pytest.skip("only root needs control groups, and none can be made here below the own one")
    return group


def folders() -> list[Path]:
    return [folder for parent in cgroups._parents().values() for folder in parent.glob(f"whisperer-{os.getpid()}-*")]


def test_the_kernel_refuses_a_job_more_processes_than_its_group_may_have() -> None:
    group = a_group(processes=2)
    ran = subprocess.run(
        [sys.executable, "-S", "-c", FORKS],
        preexec_fn=group.enter,
        start_new_session=True,
        capture_output=True,
        check=False,
    )
    assert int(ran.stdout) == Job(argv=("",), cwd="/", processes=2).threads - 1
    group.remove()
    assert folders() == []


def test_groups_of_the_killed_are_removed_and_those_of_the_living_stay() -> None:
    group = a_group(processes=2)
    ended = subprocess.run(
        [sys.executable, "-S", "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    left = [parent / f"whisperer-{int(ended.stdout)}-1" for parent in cgroups._parents().values()]
    for folder in left:
        folder.mkdir()
    remove_left_over()
    assert [folder for folder in left if folder.exists()] == []
    assert folders() != []
    group.remove()
