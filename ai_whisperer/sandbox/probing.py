"""Whether a level holds on this machine. It is tried: a program in it does what it must not be able to do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox import system, ways_out
from ai_whisperer.sandbox.base import Job, Outcome, Sandbox
from ai_whisperer.sandbox.call_numbers import this_machine
from ai_whisperer.sandbox.cgroups import are_processes_held
from ai_whisperer.sandbox.levels import RLIMITS, STRONG, TALKING
from ai_whisperer.sandbox.ways_out import SENDS_BY_UDP, WAYS

_SECONDS = 30.0
_MOST_TOLD = 5
_HIGH_NUMBER = 400
_NOBODY = "192.0.2.1:9"


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What was found about a level: whether a program runs in it, and which ways out work there.

    `holds` if it runs and none works. `weakness` is what it lets out that is no way out.
    """

    level: str
    runs: bool = True
    reason: str = ""
    ways_out: tuple[str, ...] = ()
    weakness: str = ""

    @property
    def holds(self) -> bool:
        return self.runs and not self.ways_out


async def probe(sandbox: Sandbox) -> Probe:
    """Try every way out of the sandbox from within."""
    with contextlib.ExitStack() as stack:
        try:
            outside = Outside(await asyncio.to_thread(_folder), stack)
            outcome = await sandbox.run(outside.trial(sandbox.name))
        except (SandboxError, OSError) as error:
            return Probe(level=sandbox.name, runs=False, reason=str(error))
        return judged(sandbox.name, outcome, heard=outside.heard())


def judged(level: str, outcome: Outcome, *, heard: bool = False) -> Probe:
    """What the trial shows about the level; `heard`: something of it arrived at the server."""
    try:
        could: dict[str, str | None] = json.loads(outcome.output)
    except ValueError:
        told = outcome.output.decode(errors="replace").strip()[-300:] or f"it ended with {outcome.status}"
        return Probe(level=level, runs=False, reason=f"A program could not be run in it: {told}")
    worked = tuple(way for way in WAYS if could.get(way) is not None or (heard and way == SENDS_BY_UDP))
    found = f"{len(worked)} of {len(WAYS)} escape attempts succeed: a program in it could {_some(worked)}."
    reason = found if worked else ""
    is_held = level != RLIMITS or are_processes_held()
    weakness = "" if is_held else "a program in it can start more processes than it may, until it is ended"
    return Probe(level=level, reason=reason, ways_out=worked, weakness=weakness)


def _some(ways: Sequence[str]) -> str:
    return ", ".join(ways) if len(ways) <= _MOST_TOLD else f"{', '.join(ways[:_MOST_TOLD])} and more"


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="whisperer-probe-")).resolve()


@contextlib.contextmanager
def _number_of_this_process() -> Iterator[int]:
    """A number by which this process is known, and that no process in a world of its own has.

    In a container the server may have one of the first, which are given in each such world. So it is then that of a
    thread of this process, the first that got a high one.
    """
    if os.getpid() >= _HIGH_NUMBER:
        yield os.getpid()
        return
    done = threading.Event()
    threads: list[threading.Thread] = []
    try:
        while not threads or (threads[-1].native_id or 0) < _HIGH_NUMBER:
            thread = threading.Thread(target=done.wait, daemon=True)
            thread.start()
            threads.append(thread)
        yield threads[-1].native_id or 0
    except RuntimeError as error:
        raise SandboxError(f"There are too few threads to test the sandbox: {error}.") from error
    finally:
        done.set()
        for thread in threads:
            thread.join()


class Outside:
    """What a program is to be kept from: a data folder, a folder that may only be read, and sockets that listen.

    It is there until the stack is left; the folder is gone then.
    """

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._word = secrets.token_hex(8)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in ("own", "own/only-read", "readable", "data"):
            (folder / name).mkdir(mode=0o700)
        (folder / "readable/open").write_text("open")
        (folder / "data/token").write_text(secrets.token_hex(8))
        (folder / "data/token").chmod(0o600)
        (folder / "data/link").symlink_to("token")
        self._listen(stack)
        self._server = stack.enter_context(_number_of_this_process())

    def _listen(self, stack: contextlib.ExitStack) -> None:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._udp.bind(("127.0.0.1", 0))
        self._udp.setblocking(False)  # noqa: FBT003 - the socket's own words
        self._ports = {"tcp": tcp.getsockname()[1], "udp": self._udp.getsockname()[1]}
        heard = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        heard.bind(f"{self.folder}/readable/heard")
        for address in (f"\0{self._word}", f"{self.folder}/data/socket", f"{self.folder}/readable/socket"):
            named = stack.enter_context(socket.socket(socket.AF_UNIX))
            named.bind(address)
            named.listen()

    def trial(self, level: str) -> Job:
        """The job that tries all ways out. Where hosts can be granted, one is that no way leads to."""
        own = f"{self.folder}/own"
        told = {
            "data": f"{self.folder}/data",
            "readable": f"{self.folder}/readable",
            "server": self._server,
            "started": int(Path(f"/proc/{self._server}/stat").read_text().rpartition(")")[2].split()[19]),
            "is_root": os.geteuid() == 0,
            "is_alone": level not in TALKING and level in STRONG,
            "own": own,
            "abstract": self._word,
            "word": self._word,
            "numbers": this_machine().numbers,
            **self._ports,
        }
        return Job(
            argv=(system.interpreter(), "-I", "-S", "-c", ways_out.program(), json.dumps(told)),
            cwd=own,
            env={"PATH": system.PATH},
            readable=(*system.interpreter_folders(), f"{self.folder}/readable", f"{own}/only-read"),
            writable=(own,),
            owned=(own,),
            network=(_NOBODY,) if level in TALKING else (),
            wall_seconds=_SECONDS,
        )

    def heard(self) -> bool:
        """Whether something arrived of what was sent without a connection."""
        with contextlib.suppress(BlockingIOError):
            return bool(self._udp.recv(100))
        return False
