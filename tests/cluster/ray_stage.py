"""A real Ray with several raylets on this machine, which ask for a token, in a process of its own.

As a program (`python -m tests.cluster.ray_stage RAYLETS`) it prints the address of its head when all of it runs, and
obeys lines on its standard input: `kill NUMBER` kills that raylet, `kill head` the head. It ends when its input does.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.leaks import children

PATIENCE_SECONDS: Final = 60.0
WHY_NOT: Final = "ray, which is large, is not installed: 'make demo-cluster' installs it, or the extra cluster"
NODES_CPUS: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_LOOPBACK: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray takes 127.0.0.1 for its own address then, as on a laptop, instead of one that others reach."""
_SYSTEM: Final = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1_000,
    "health_check_timeout_ms": 5_000,
    "health_check_failure_threshold": 3,
}
"""A raylet that is gone is known to be so after three seconds, not after fifteen."""


def is_installed() -> bool:
    return importlib.util.find_spec("ray") is not None


class Ray:
    """A Ray that runs: its address, its raylets' processes, and the environment that a program needs to use it."""

    def __init__(self, process: subprocess.Popen[str], told: dict[str, Any], environment: dict[str, str]) -> None:
        self.address: str = told["address"]
        self.raylets: list[int] = told["raylets"]
        self.environment = environment
        self._process = process

    def kill(self, which: str) -> None:
        """Kill the head, or a raylet by its number from 1; returns when it is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"kill {which}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == f"killed {which}"


@contextmanager
def running_ray(raylets: int, *, mode: str = "token") -> Iterator[Ray]:
    """So many raylets beside the head, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="wray-", ignore_cleanup_errors=True) as folder:
        own = {
            **_LOOPBACK,
            "RAY_AUTH_MODE": mode,
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        if mode != "token":
            del own["RAY_AUTH_TOKEN"]
        errors = Path(folder) / "errors"
        with errors.open("wb") as told:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.cluster.ray_stage", str(raylets)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                text=True,
                env={**os.environ, **own},
                cwd=Path(__file__).parents[2],
                process_group=0,  # Ctrl-C is for whoever started it, who ends it in order
            )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, errors.read_text(errors="replace")[-2000:]
            yield Ray(process, json.loads(line), own)
        finally:
            process.communicate(timeout=PATIENCE_SECONDS)


def main(raylets: int) -> None:
    from ray.cluster_utils import Cluster

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    told = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is not for whoever reads the address
    common: dict[str, Any] = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20}
    head = {"num_cpus": 0, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    cluster = Cluster(initialize_head=True, head_node_args={**common, **head, "_system_config": _SYSTEM})
    nodes = [cluster.add_node(wait=False, num_cpus=NODES_CPUS, **common) for _ in range(raylets)]
    cluster.wait_for_nodes(PATIENCE_SECONDS)
    pids = [node.all_processes["raylet"][0].process.pid for node in nodes]
    os.write(told, f"{json.dumps({'address': cluster.address, 'raylets': pids})}\n".encode())
    try:
        for line in sys.stdin:
            which = line.split()[1]
            node = cluster.head_node if which == "head" else nodes[int(which) - 1]
            node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
            os.write(told, f"killed {which}\n".encode())
    finally:
        for node in (*nodes, cluster.head_node):
            with suppress(OSError):
                node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        _end_what_is_left()


def _end_what_is_left() -> None:
    """Raylets that are killed leave others behind for a while; all that they have started is ours by now."""
    while left := children():
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
