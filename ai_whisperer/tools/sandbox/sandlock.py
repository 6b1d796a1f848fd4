"""The level of sandlock: Landlock holds files and network, seccomp the calls to the kernel."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ai_whisperer.core.address_kinds import AddressKind, IPAddress, address_in, networks_of, without
from ai_whisperer.core.network import Grant, grants_of
from ai_whisperer.errors import SandboxError
from ai_whisperer.tools.sandbox import namespaces, priority, system
from ai_whisperer.tools.sandbox.base import Ending, Job
from ai_whisperer.tools.sandbox.held import Held, Status, check_nothing_hidden, existing, limit_this_process
from ai_whisperer.tools.sandbox.holder import Holder
from ai_whisperer.tools.sandbox.rlimits import limit_processes, threads_in_use

if TYPE_CHECKING:
    from sandlock import Process

_WAIT_SECONDS = 5.0

DENIED = ("memfd_create", "memfd_secret")
"""Calls whose files take memory that no limit counts."""

DENIED_IN_THE_OPEN = (
    *DENIED,
    *("prlimit64", "setpriority", "ioprio_set"),
    *("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
    *("inotify_add_watch", "fanotify_init"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    *("chown", "fchown", "lchown", "fchownat"),
)
"""Calls that reach processes and files of others where there is no world of its own for the job."""


class SandlockLevel:
    """Holds files, network by host, signals and processes; in namespaces of their own where these can be had."""

    def __init__(self) -> None:
        self._waiting: Holder | None = None

    def start(self, job: Job) -> Held:
        try:
            import sandlock  # noqa: F401 - to say so here
        except (ImportError, OSError, RuntimeError) as error:
            raise SandboxError(
                f"The package sandlock cannot be used: {error}. Install it: pip install sandlock"
            ) from error
        check_nothing_hidden(job, "sandlock")
        holder = self._waiting or Holder(_Sandlock())
        holder.start(job)
        return holder

    def warm_up(self, job: Job) -> None:  # noqa: ARG002 - its holder is the same for all jobs
        self._waiting = Holder(_Sandlock())

    def clear_up(self) -> None:
        """Nothing was made beside its processes."""


class _Sandlock:
    """What the holder does."""

    def __init__(self) -> None:
        self._root: namespaces.Root | None = None
        self._laid_out = (*system.FOLDERS, *system.ETC, *system.interpreter_folders())

    def prepare(self, *, apart: bool) -> None:
        threads_in_use()
        if apart:
            with contextlib.suppress(OSError):
                self._root = namespaces.Root(readable=existing(self._laid_out), devices=existing(system.DEVICES))
        with contextlib.suppress(ImportError, OSError, RuntimeError):
            import sandlock

            sandlock.Sandbox(**policy(Job(argv=("",), cwd="/")))

    def begin(self, job: Job) -> _Process:
        import sandlock

        if self._root is not None:
            temporary = [job.temporary] if job.temporary else []
            self._root.enter(
                readable=[path for path in existing(job.readable) if path not in self._laid_out],
                writable=existing([*job.writable, *temporary]),
            )
        priority.give_up_urgency()
        limit_this_process(job)
        limit_processes(job)
        denied = DENIED if self._root is not None else DENIED_IN_THE_OPEN
        try:
            # the library's own name has the process's number in it, which is the same in every namespace
            sandbox = sandlock.Sandbox(**policy(job, denied), name=f"whisperer-{os.urandom(8).hex()}")
            process = sandbox.popen(list(job.argv))
        except (OSError, RuntimeError, ValueError, sandlock.SandlockError) as error:
            hosts = f" Check that each of these hosts has an address: {', '.join(job.network)}." if job.network else ""
            raise SandboxError(f"sandlock could not start {job.argv[0]}: {error}.{hosts}") from error
        return _Process(sandbox, process)


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


def policy(job: Job, denied: Sequence[str] = DENIED) -> dict[str, Any]:
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
        "extra_deny_syscalls": list(denied),
        **_network(job.network),
    }


def _network(granted: tuple[str, ...]) -> dict[str, list[str]]:
    """The grants in the library's words. A host is looked up when the job starts; hosts below one have no words."""
    grants = grants_of(granted).grants
    named = [grant for grant in grants if not grant.below]
    everywhere = [grant for grant in grants if grant.below and not grant.host]
    if not named and not everywhere:
        return {}
    allowed = [_rule(grant.host, grant.ports) for grant in named]
    for grant in everywhere:
        allowed += [_rule(str(network), grant.ports) for network in networks_of((AddressKind.PUBLIC,))]
    servers = _name_servers() if everywhere else []
    for server in servers:
        allowed += [_rule(str(server), (53,), "udp"), _rule(str(server), (53,))]
    return {"net_allow": allowed, "net_deny": _never_by_name(named, servers)}


def _rule(host: str, ports: tuple[int, ...], protocol: str = "tcp") -> str:
    written = f"[{host}]" if ":" in host else host
    return f"{protocol}://{written}:{','.join(map(str, ports))}"


def _never_by_name(named: list[Grant], servers: list[IPAddress]) -> list[str]:
    """The networks that a name must not lead to: all but public, private and loopback, and what is granted itself."""
    addresses = [*(address_in(grant.host) for grant in named), *servers]
    taken_out = [ip_network(address) for address in addresses if address is not None]
    kinds = (AddressKind.LINK_LOCAL, AddressKind.MULTICAST, AddressKind.RESERVED)
    return [str(left) for network in networks_of(kinds) for left in without(network, taken_out)]


def _name_servers() -> list[IPAddress]:
    try:
        lines = Path("/etc/resolv.conf").read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for words in (line.split() for line in lines):
        if len(words) > 1 and words[0] == "nameserver":
            try:
                found.append(ip_address(words[1].partition("%")[0]))
            except ValueError:
                continue
    return found
