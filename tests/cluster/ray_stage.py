"""A real Ray with several raylets on this machine, which ask for a token, in a process of its own.

As a program (`python -m tests.cluster.ray_stage RAYLETS`) it prints the address of its head when all of it runs, and
obeys lines on its standard input: `kill NUMBER` kills that raylet, `kill head` the head, which is apart from the raylet
beside it. It ends when its input does. With no raylets it is a head alone, which takes lines `version WHICH` as well.
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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.leaks import children
from tests.postgresql import free_port

PATIENCE_SECONDS: Final = 120.0
WHY_NOT: Final = "Ray is not installed, or there is none for this machine: the extra cluster has it where there is one"
NODES_CPUS: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_LOOPBACK: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray takes 127.0.0.1 for its own address then, as on a laptop, instead of one that others reach."""
_SYSTEM: Final = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1_000,
    "health_check_timeout_ms": 5_000,
    "health_check_failure_threshold": 3,
    "enable_worker_prestart": False,
    "prestart_worker_first_driver": False,
}
"""A raylet that is gone is known to be so after three seconds, not after fifteen. No process is started for work that
no test has: each takes a second of a processor."""


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
        self._tell(f"kill {which}")

    def set_version(self, version: str) -> None:
        """Let it say that it is of this version."""
        self._tell(f"version {version}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{line}\n"


@contextmanager
def running_ray(raylets: int, *, mode: str = "token") -> Iterator[Ray]:
    """A head and so many raylets, while the block runs."""
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
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    told = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is not for whoever reads the address
    try:
        address, nodes = _started(raylets) if raylets else (_started_head(), [])
        pids = [node.all_processes["raylet"][0].process.pid for node in nodes]
        os.write(told, f"{json.dumps({'address': address, 'raylets': pids})}\n".encode())
        for line in sys.stdin:
            match line.split():
                case ["kill", "head"]:
                    nodes[0].kill_gcs_server(check_alive=False)
                case ["kill", number]:
                    nodes[int(number) - 1].kill_raylet(check_alive=False)
                case ["version", version]:
                    _set_version(address, version)
            os.write(told, line.encode())
    finally:
        _end_what_is_left()


def _started(raylets: int) -> tuple[str, list[Any]]:
    """A head and so many raylets, the first of them beside it."""
    from ray._private import services
    from ray._private.node import Node
    from ray.cluster_utils import Cluster

    Node.start_api_server = lambda _, **__: None  # nobody looks at its pages
    services.get_node = _patient(services.get_node)
    common: dict[str, Any] = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20, "num_cpus": NODES_CPUS}
    head = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True, "_system_config": _SYSTEM}
    cluster = Cluster(shutdown_at_exit=False)
    nodes = [cluster.add_node(wait=False, **common, **(head if not number else {})) for number in range(raylets)]
    cluster.wait_for_nodes(PATIENCE_SECONDS)
    return cluster.address, nodes


def _patient(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Ask until it is answered: Ray itself gives up on a machine that is busy after half a minute."""

    def asked(*given: Any) -> Any:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return ask(*given)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    return asked


def _started_head() -> str:
    """A head without anything that it could place nodes on."""
    import ray
    from ray._private.services import start_gcs_server

    folder, port = os.environ["RAY_TMPDIR"], free_port()
    start_gcs_server(
        "",
        folder,
        None,
        None,
        "alone",
        config={},
        gcs_server_port=port,
        metrics_agent_port=0,
        node_ip_address="127.0.0.1",
        session_dir=folder,
        node_id=secrets.token_hex(28),
    )
    _set_version(f"127.0.0.1:{port}", ray.__version__)
    return f"127.0.0.1:{port}"


def _set_version(address: str, version: str) -> None:
    from ray._raylet import GcsClient

    told = json.dumps({"ray_version": version}).encode()
    GcsClient(address=address).internal_kv_put(b"CLUSTER_METADATA", told, True, b"cluster")  # noqa: FBT003


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
