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
from ai_whisperer.sandbox import privileges, seccomp, system
from ai_whisperer.sandbox.apart import Apart
from ai_whisperer.sandbox.base import Ending, Job
from ai_whisperer.sandbox.held import Status, check_nothing_hidden, limit_this_process, threads_in_use
from ai_whisperer.sandbox.system import existing

if TYPE_CHECKING:
    from sandlock import Process

_WAIT_SECONDS = 5.0

_PYTHON = os.path.realpath(system.interpreter())
"""By its own name: a job need not see the virtual environment."""
_SEEN_BY_THE_LIBRARY = ("openat2",)
"""Calls that it carries out for the program, after it has looked at what they are about."""
_DENIED = tuple(name for name in seccomp.WATCHING if name not in _SEEN_BY_THE_LIBRARY)
"""Calls that only who watches over the job may need."""

_DENIED_IN_THE_OPEN = (
    *("prlimit64", "setpriority", "ioprio_set"),
    *("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
    *("inotify_add_watch", "fanotify_init"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    *("chown", "fchown", "lchown", "fchownat"),
)
"""Calls that reach processes and files of others where there is no world of its own for the job."""


class Sandlock:
    """What the holder does: go apart, and let the library start the program, which may talk to the granted hosts."""

    goes_apart = True
    denied: tuple[str, ...] = _DENIED

    def __init__(self, job: Job) -> None:
        self._apart = Apart(network=bool(job.network))

    def prepare(self, *, apart: bool) -> None:
        self._apart.prepare(apart=apart)
        _load_library()

    def begin(self, job: Job) -> _Process:
        sandlock = _library()
        self._enter(job)
        sockets = seccomp.Sockets.GRANTED if job.network else seccomp.Sockets.LOCAL
        its_own = sockets | seccomp.Sockets.ADDRESSES
        try:
            # the library's own name has the process's number in it, which is the same in every namespace
            sandbox = sandlock.Sandbox(**policy(job, self.denied), name=f"whisperer-{os.urandom(8).hex()}")
            self._give_up_privileges()
            # The library itself has to do what the program must not, so the program takes on the rest by itself.
            seccomp.take_on(sockets=its_own, left_out=seccomp.WATCHING)
            process = sandbox.popen([*seccomp.starter(_PYTHON, sockets=sockets), *job.argv])
        except (OSError, RuntimeError, ValueError, sandlock.SandlockError) as error:
            hosts = f" Check that each of these hosts has an address: {', '.join(job.network)}." if job.network else ""
            raise SandboxError(f"sandlock could not start {job.argv[0]}: {error}.{hosts}") from error
        return _Process(sandbox, process)

    def _enter(self, job: Job) -> None:
        self._apart.enter(job)

    def _give_up_privileges(self) -> None:
        privileges.become_job_user()
        privileges.be_open_to_itself()  # the library looks into the files of its child there


class Landlock(Sandlock):
    """The same without a world of its own, for where there are no namespaces.

    Contents of files and the network are held there too, but not what a user may do with names, modes and times of its
    own files, all of which are still there. So it does not hold, and is used only if it is named.
    """

    goes_apart = False
    denied = (*_DENIED, *_DENIED_IN_THE_OPEN)

    def prepare(self, *, apart: bool) -> None:
        del apart
        threads_in_use()
        _load_library()

    def _enter(self, job: Job) -> None:
        check_nothing_hidden(job, "landlock")
        limit_this_process(job)

    def _give_up_privileges(self) -> None:
        privileges.drop_bounding_set()
        privileges.drop_capabilities()


def _library() -> Any:
    try:
        import sandlock
    except (ImportError, OSError, RuntimeError) as error:
        raise SandboxError(f"The package sandlock cannot be used: {error}. Install it: pip install sandlock") from error
    return sandlock


def _load_library() -> None:
    """Go once through what a job needs of it."""
    with contextlib.suppress(SandboxError, OSError, RuntimeError):
        _library().Sandbox(**policy(Job(argv=("",), cwd="/")))


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


def policy(job: Job, denied: Sequence[str] = _DENIED) -> dict[str, Any]:
    """The job in the library's words."""
    temporary = [job.temporary, *([system.TEMPORARY] if system.is_temporary_free(job) else [])] if job.temporary else []
    readable = [*system.FOLDERS, *system.ETC, *system.DEVICES, *system.interpreter_folders(), "/proc", *job.readable]
    return {
        "fs_readable": existing(readable),
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
