"""Tools that run programs: `run_command` and `run_python`, in a sandbox, in the agent's own folder."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.domain.conversation import ToolResult, ToolRun
from ai_whisperer.domain.definition import Access
from ai_whisperer.errors import SandboxError, ToolError
from ai_whisperer.sandbox import system
from ai_whisperer.sandbox.base import Ending, Job, Outcome
from ai_whisperer.sandbox.levels import STRONG, TALKING
from ai_whisperer.tools.files.removing import remove_beneath
from ai_whisperer.tools.function import Tool, ToolContext
from ai_whisperer.tools.workplace import SETTINGS_FILE, TEMPORARY, Workplace

_log = logging.getLogger(__name__)
_DEFAULT_SECONDS = 60.0
_OUTPUT_BYTES = 64 << 10
_CODE_FILE = "code.py"
_COMMAND_BYTES = 100_000
"""The system takes no longer argument than 128 KiB."""


async def run_command(command: str, context: ToolContext, timeout_seconds: float = _DEFAULT_SECONDS) -> ToolResult:
    """Run a command line with `sh -c` in your working folder and get its exit code and output.

    It sees your own folder, the folders that you are granted (by their names) and the programs of the system, nothing
    else; TMPDIR is a folder that is empty at first and gone afterwards. There is no network unless you are granted it,
    and no input. When the command has ended, or after `timeout_seconds`, all that it started is ended too.
    """
    if "\0" in command or len(command.encode(errors="replace")) > _COMMAND_BYTES:
        raise ToolError(
            f"A command has at most {_COMMAND_BYTES} bytes and no character NUL. Write a script into a file and run it."
        )
    return await _run(lambda _: ("/bin/sh", "-c", command), context, timeout_seconds=timeout_seconds)


async def run_python(code: str, context: ToolContext, timeout_seconds: float = _DEFAULT_SECONDS) -> ToolResult:
    """Run a Python program in your working folder and get its exit code and what it printed.

    It can import the standard library and modules in your working folder. It sees what a command of `run_command` sees.
    """
    return await _run(
        lambda temporary: (system.interpreter(), "-P", "-u", "-X", "utf8", f"{temporary}/{_CODE_FILE}"),
        context,
        timeout_seconds=timeout_seconds,
        code=code,
    )


COMMAND_TOOLS = (Tool(run_command, untrusted=True), Tool(run_python, untrusted=True))


async def _run(
    argv: Callable[[str], tuple[str, ...]], context: ToolContext, *, timeout_seconds: float, code: str = ""
) -> ToolResult:
    """Run what `argv` makes of the folder for temporary files, in which `code` lies, and tell how it ended."""
    workplace = context.workplace
    if workplace is None or workplace.sandbox is None:
        raise SandboxError
    if not 0 < timeout_seconds < math.inf:
        raise ToolError("timeout_seconds must be a number of seconds greater than 0. Call again with one.")
    folder = _TemporaryFolder(workplace)
    try:
        temporary = await asyncio.to_thread(folder.make, code)
        wall_seconds = min(timeout_seconds, workplace.limits.max_tool_seconds)
        job = job_for(workplace, argv(temporary), temporary=temporary, wall_seconds=wall_seconds)
        outcome = await workplace.sandbox.run(job, lambda output: context.progress(output.decode(errors="replace")))
    finally:
        # Shielded, since a thread that has not begun yet would not begin any more when this is cancelled again.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, folder.remove))
    return ToolResult(
        content=_told(outcome, job, workplace), is_error=not outcome.succeeded, run=_counted(outcome, job, workplace)
    )


class _TemporaryFolder:
    """A folder for temporary files where the agent itself can change nothing. It is gone after `remove`.

    Both methods are called in threads. Whoever does not wait for `make` can call `remove` all the same: a folder that
    is being made is removed after that, and otherwise it is never made.
    """

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._session = workplace.own.path.parents[1]
        self._name = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._removed = False

    def make(self, code: str) -> str:
        """Make the folders of the agent and this one with the code in it; returns its real path."""
        with self._lock:
            if self._removed:
                raise SandboxError
            _check_apart(self._workplace)
            self._workplace.prepare()
            _make_hidden(self._workplace)
            folder = self._session.resolve() / TEMPORARY / self._name
            folder.mkdir(parents=True, mode=0o700)
            if code:
                (folder / _CODE_FILE).write_bytes(code.encode(errors="replace"))
            return str(folder)

    def remove(self) -> None:
        with self._lock:
            self._removed = True
            root = self._session.resolve()
            try:
                remove_beneath(root, root / TEMPORARY / self._name)
            except OSError as error:
                _log.warning("the temporary folder %s of a program could not be removed: %s", self._name, error)


def _make_hidden(workplace: Workplace) -> None:
    """Make what is hidden in folders that may be written: only what is there can be hidden from programs."""
    for folder in workplace.folders.values():
        for path in map(Path, folder.hidden_paths if folder.access is Access.WRITE else ()):
            try:
                if path.name == SETTINGS_FILE:
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
                elif not os.path.lexists(path):
                    path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SandboxError(
                    f"Programs are to be kept from '{path}', which is not there and cannot be made: {error.strerror}. "
                    "Make it, or do not grant the folder around it."
                ) from error


def _check_apart(workplace: Workplace) -> None:
    """Raise `SandboxError` if a folder that programs may see holds the folders of the agents, and so all the data.

    A granted folder may, if the data is hidden in it.
    """
    own = workplace.own.path.resolve()
    granted = [folder for name, folder in workplace.folders.items() if name and own.is_relative_to(folder.path)]
    seen = [*system.FOLDERS, *system.interpreter_folders()]
    seen += [str(each.path) for each in granted if not each.hides(own.relative_to(each.path).as_posix())]
    around = system.folder_around(str(workplace.own.path), seen)
    if around is not None:
        raise SandboxError(
            f"The data folder lies in {around}, which programs of the agent may see, so nothing was run. Choose a data "
            "folder that lies elsewhere, or do not grant that folder."
        )


def job_for(workplace: Workplace, argv: tuple[str, ...], *, temporary: str, wall_seconds: float) -> Job:
    """The job that runs a program for the agent: what it may see and take."""
    # These are real paths since the session began. To follow links now would be to follow what agents put there.
    own, working = str(workplace.own.path), str(workplace.folders[workplace.working].path)
    granted = [(str(folder.path), folder.access) for name, folder in workplace.folders.items() if name]
    limits = workplace.limits
    return Job(
        argv=argv,
        cwd=working,
        env={
            "PATH": f"{os.path.dirname(system.interpreter())}:{system.PATH}",
            "HOME": own,
            "TMPDIR": temporary,
            "LANG": "C.UTF-8",
            "PYTHONPATH": working,
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        readable=(*system.interpreter_folders(), *(path for path, access in granted if access is Access.READ)),
        writable=(own, *(path for path, access in granted if access is Access.WRITE)),
        hidden=_hidden(workplace),
        owned=tuple(str(workplace.folders[name].path) for name in workplace.made_by_the_runtime),
        temporary=temporary,
        network=workplace.network,
        wall_seconds=wall_seconds,
        cpu_seconds=limits.max_tool_cpu_seconds,
        memory_bytes=limits.max_tool_memory_bytes,
        processes=limits.max_tool_processes,
        file_bytes=limits.max_file_bytes,
        output_bytes=min(_OUTPUT_BYTES, limits.max_result_bytes // 2),
    )


def _hidden(workplace: Workplace) -> tuple[str, ...]:
    """What programs must not see. Of what they can only read, that is only what is there."""
    folders = workplace.folders.values()
    written = (path for each in folders if each.access is Access.WRITE for path in each.hidden_paths)
    read = (path for each in folders for path in each.hidden_paths if os.path.lexists(path))
    return tuple(dict.fromkeys((*written, *read)))


def _told(outcome: Outcome, job: Job, workplace: Workplace) -> str:
    output = outcome.output.decode(errors="replace").replace("\0", "\ufffd").strip("\n")
    parts = [_ending(outcome, job, workplace.limits.max_tool_seconds), output or "(It wrote nothing.)"]
    below = [grant for grant in workplace.network if grant.startswith("*.")]
    level = outcome.run.sandbox
    if workplace.network and level in STRONG and level not in TALKING:
        parts.append(f"(It had no network: {level}, the sandbox here, cannot open it for the granted hosts alone.)")
    elif below and level in TALKING:
        parts.append(f"(It could not talk to {', '.join(below)}: programs need each host by its full name.)")
    return "\n\n".join(parts)


def _ending(outcome: Outcome, job: Job, most_seconds: float) -> str:
    """The first line of the result, which says how it ended and, if a limit was reached, what to do."""
    match outcome.ending:
        case Ending.EXITED:
            return f"Exit code {outcome.status}.{_want_of_memory(outcome, job)}"
        case Ending.SIGNALLED:
            return f"Ended by the signal {_signal_name(outcome.status)}.{_want_of_memory(outcome, job)}"
        case Ending.TIMED_OUT:
            said = (
                f"Timed out after {job.wall_seconds:g} s and was ended, with all that it had started. Do less at once"
            )
            if job.wall_seconds >= most_seconds:
                return f"{said}: more than {most_seconds:g} s is not allowed (limit max_tool_seconds)."
            return f"{said}, or call again with a larger timeout_seconds."
        case Ending.OUT_OF_CPU:
            return f"Ended: it used more than {job.cpu_seconds:g} s of CPU time. Do less at once."
        case Ending.OUT_OF_MEMORY:
            return f"Ended: it used more than {job.memory_bytes >> 20} MiB of memory. Keep less in memory at once."
        case Ending.TOO_MANY_PROCESSES:
            return f"Ended: it had more than {job.processes} processes at once. Start fewer."
        case Ending.TOO_MUCH_OUTPUT:
            return f"Ended: it wrote more than {job.flood_bytes >> 20} MiB of output. Write less, or into a file."
        case Ending.CANCELLED:
            return "Cancelled."


def _want_of_memory(outcome: Outcome, job: Job) -> str:
    if not _lacked_memory(outcome, job):
        return ""
    return (
        f" It got no more than {job.memory_bytes >> 20} MiB of memory (limit max_tool_memory_bytes). Keep less in "
        "memory at once."
    )


def _lacked_memory(outcome: Outcome, job: Job) -> bool:
    """Whether a program that ended badly did so for want of memory.

    The kernel gives it no more and tells nobody but the program. That it had nearly all of it, or that the last thing
    that it wrote is what runtimes say then, is the evidence that there is.
    """
    if outcome.succeeded or outcome.ending not in (Ending.EXITED, Ending.SIGNALLED):
        return False
    if outcome.run.memory_bytes >= _NEARLY_ALL * job.memory_bytes:
        return True
    said = outcome.output[-_LAST_WORDS_BYTES:].lower()
    return any(words in said for words in _WORDS_FOR_NO_MEMORY)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


_NEARLY_ALL = 0.9
_LAST_WORDS_BYTES = 1_000
_WORDS_FOR_NO_MEMORY = (
    b"memoryerror",
    b"cannot allocate memory",
    b"std::bad_alloc",
    b"out of memory",
    b"memory exhausted",
    b"memory allocation of",
)
"""What Python, C, C++, Node, the JVM, awk and Rust say, in small letters."""

_LIMITS = {
    Ending.OUT_OF_CPU: "max_tool_cpu_seconds",
    Ending.OUT_OF_MEMORY: "max_tool_memory_bytes",
    Ending.TOO_MANY_PROCESSES: "max_tool_processes",
}


def _counted(outcome: Outcome, job: Job, workplace: Workplace) -> ToolRun:
    """What the job took, and the limit that it was ended for; the time that its call gave it is none."""
    limit = _LIMITS.get(outcome.ending, "")
    if outcome.ending is Ending.TIMED_OUT and job.wall_seconds >= workplace.limits.max_tool_seconds:
        limit = "max_tool_seconds"
    elif _lacked_memory(outcome, job):
        limit = "max_tool_memory_bytes"
    return replace(outcome.run, limit=limit)
