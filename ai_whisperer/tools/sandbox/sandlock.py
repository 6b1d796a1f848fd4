"""The level of sandlock: Landlock holds files and network, seccomp the calls to the kernel."""

from __future__ import annotations

import contextlib
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ai_whisperer.errors import SandboxError
from ai_whisperer.tools.sandbox import system
from ai_whisperer.tools.sandbox.base import Ending, Job
from ai_whisperer.tools.sandbox.held import Held, Status, existing, limit_this_process

if TYPE_CHECKING:
    from sandlock import Process

_PRIVATE = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
)
_WAIT_SECONDS = 5.0


class SandlockLevel:
    """Holds files, network by host, signals and processes without namespaces."""

    def start(self, job: Job) -> Held:
        try:
            import sandlock
        except (ImportError, OSError, RuntimeError) as error:
            raise SandboxError(
                f"The package sandlock cannot be used: {error}. Install it: pip install sandlock"
            ) from error
        limit_this_process(job)
        try:
            sandbox = sandlock.Sandbox(**policy(job))
            process = sandbox.popen(list(job.argv))
        except (OSError, RuntimeError, ValueError, sandlock.SandlockError) as error:
            hosts = f" Check that each of these hosts has an address: {', '.join(job.network)}." if job.network else ""
            raise SandboxError(f"sandlock could not start {job.argv[0]}: {error}.{hosts}") from error
        return _Process(sandbox, process)

    def warm_up(self, job: Job) -> None:
        with contextlib.suppress(ImportError, OSError, RuntimeError):
            import sandlock

            sandlock.Sandbox(**policy(job))


class _Process:
    def __init__(self, sandbox: object, process: Process) -> None:
        self._sandbox = sandbox  # the library ends the process when this is collected
        self._process = process
        self.pid = process.pid or 0

    def status(self) -> Status:
        result = self._process.wait(_WAIT_SECONDS)
        if result.reason is not None and result.reason.name == "EXITED":
            return Status(ending=Ending.EXITED, number=result.exit_code)
        return Status(ending=Ending.SIGNALLED, number=result.signal if result.signal > 0 else 9)


def policy(job: Job) -> dict[str, Any]:
    """The job in the library's words."""
    temporary = [job.temporary] if job.temporary else []
    return {
        "fs_readable": existing([*system.FOLDERS, *system.ETC, *system.DEVICES, "/proc", *job.readable]),
        "fs_writable": [*job.writable, *temporary, "/dev/null"],
        "cwd": job.cwd,
        "clean_env": True,
        "env": dict(job.env),
        "max_processes": job.processes,
        "no_coredump": True,
        "extra_deny_syscalls": ["memfd_create"],  # such files take memory that no limit counts
        **_network(job.network),
    }


def _network(granted: tuple[str, ...]) -> dict[str, list[str]]:
    if not granted:
        return {}
    if "*" in granted:
        return {"net_allow": ["*:*"], "net_deny": _private_networks()}
    return {"net_allow": [f"[{host}]:*" if ":" in host else f"{host}:*" for host in granted]}


def _private_networks() -> list[str]:
    """The networks that are not public, without the name servers: nothing could be looked up otherwise."""
    networks = [ipaddress.ip_network(each) for each in _PRIVATE]
    for server in _name_servers():
        split: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for network in networks:
            if isinstance(network, ipaddress.IPv4Network) and isinstance(server, ipaddress.IPv4Address):
                one = ipaddress.IPv4Network(server)
                split += network.address_exclude(one) if one.subnet_of(network) else [network]
            else:
                split.append(network)
        networks = split
    return [str(each) for each in networks]


def _name_servers() -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        lines = Path("/etc/resolv.conf").read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for words in (line.split() for line in lines):
        if len(words) > 1 and words[0] == "nameserver":
            try:
                found.append(ipaddress.ip_address(words[1].partition("%")[0]))
            except ValueError:
                continue
    return found
