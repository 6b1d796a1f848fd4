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
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ai_whisperer.errors import SandboxError
from ai_whisperer.tools.sandbox import system
from ai_whisperer.tools.sandbox.base import Job, Outcome, Sandbox
from ai_whisperer.tools.sandbox.cgroups import are_processes_held

RLIMITS = "rlimits"
STRONG = ("sandlock", "bubblewrap")
"""The levels that keep a program away from files and network, the best first."""
HIDING = ("bubblewrap",)
"""Those that can keep a program from a part of a folder that it may see. Landlock cannot, and what sandlock has beside
it (`fs_denied`) lets folders be made in that part, and does not know it any more when a folder above is renamed."""
_COUNTING = ("sandlock",)
"""Those that count the processes of a job themselves, root's too."""
ALL = (*STRONG, RLIMITS)

_SECONDS = 10.0
_TRIAL = """
import json, os, resource, socket, sys
secret, port, outside, server = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def can(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True

print(json.dumps({
    "read a file that is not its own": can(lambda: open(secret).read()),
    "write outside its folder": can(lambda: open(outside, "w").write("x")),
    "talk to the network": can(lambda: socket.create_connection(("127.0.0.1", port), 5).close()),
    "limit the server": can(lambda: resource.prlimit(server, resource.RLIMIT_CORE)),
    "change the priority of the server": can(lambda: os.setpriority(os.PRIO_PROCESS, server, 0)),
    "change the mode and times of files that are not its own": can(lambda: os.chmod(secret, 0o600)),
}))
"""
_BEARABLE = ("change the mode and times of files that are not its own",)
"""What a level may let out that still keeps contents and network: sandlock does so where it has no namespaces."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What was found about a level: whether it `holds`, and if not, why.

    `weakness` is what it lets out all the same; a level without is used before one with it.
    """

    level: str
    holds: bool
    reason: str = ""
    weakness: str = ""


async def probe(sandbox: Sandbox) -> Probe:
    """Try what the sandbox lets a program do. Limits alone count as held if a program runs under them."""
    with contextlib.ExitStack() as stack:
        try:
            folder = await asyncio.to_thread(_prepared)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            outcome = await sandbox.run(_trial(folder, listening.getsockname()[1]))
        except (SandboxError, OSError) as error:
            return Probe(level=sandbox.name, holds=False, reason=str(error))
    return judged(sandbox.name, outcome)


def judged(level: str, outcome: Outcome) -> Probe:
    """What the trial shows about the level."""
    try:
        could = json.loads(outcome.output)
    except ValueError:
        told = outcome.output.decode(errors="replace").strip()[-300:] or f"it ended with {outcome.status}"
        return Probe(level=level, holds=False, reason=f"A program could not be run in it: {told}")
    weak = [] if level in _COUNTING or are_processes_held() else ["start more processes than it may, until it is ended"]
    if level == RLIMITS:
        return Probe(level=level, holds=True, weakness=_told(weak))
    broken = [what for what, done in could.items() if done and what not in _BEARABLE]
    if broken:
        return Probe(level=level, holds=False, reason=f"A program in it could {', '.join(broken)}.")
    weak += [what for what in _BEARABLE if could.get(what)]
    return Probe(level=level, holds=True, weakness=_told(weak))


def _told(weak: Sequence[str]) -> str:
    return f"a program in it can {', '.join(weak)}" if weak else ""


def _prepared() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="whisperer-probe-")).resolve()
    (folder / "own").mkdir()
    (folder / "secret").write_text(secrets.token_hex(8))
    return folder


def _trial(folder: Path, port: int) -> Job:
    program = (system.interpreter(), "-I", "-S", "-c", _TRIAL)
    return Job(
        argv=(*program, str(folder / "secret"), str(port), str(folder / "written"), str(os.getpid())),
        cwd=str(folder / "own"),
        env={"PATH": system.PATH},
        readable=system.interpreter_folders(),
        writable=(str(folder / "own"),),
        wall_seconds=_SECONDS,
    )
