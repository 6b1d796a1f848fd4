"""Commands in processes that need not import anything: one that has it all imported is forked for each.

A shim stands in the place of the program on the path. It hands over what a process is given (arguments, environment,
folder and standard streams), passes signals on, and ends with the code of the command. What is a program of its own, as
a server that is to be killed, runs as such.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from ai_whisperer import cli
from ai_whisperer.cli.main import main

_MOST_BYTES = 1 << 20
_PROGRAMS_OF_THEIR_OWN = ("serve", "demo")
_USED_BY_COMMANDS = ("ai_whisperer.client", "ai_whisperer.examples.workflows", "ai_whisperer.server.serving")

_SHIM = """#!{python} -IS
import array, json, os, signal, socket, sys
if any(name in sys.argv for name in {own!r}):
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
preloaded = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
preloaded.connect({address!r})
order = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
preloaded.sendmsg([order], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
process = int(preloaded.recv(16))
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(process, number))
os._exit(int(preloaded.recv(16) or 70))  # nothing is said by a command that was killed
"""


@contextmanager
def preloaded(folder: Path) -> Iterator[Path]:
    """Have everything imported while the block runs. Yields the folder that is to come first on the path."""
    address, programs = folder / "preloaded", folder / "programs"
    programs.mkdir()
    own = str(Path(sys.executable).with_name("whisperer"))
    shim = programs / "whisperer"
    shim.write_text(_SHIM.format(python=sys.executable, own=_PROGRAMS_OF_THEIR_OWN, program=own, address=str(address)))
    shim.chmod(0o755)
    command = [sys.executable, "-m", "tests.acceptance.preloaded", str(address)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield programs
        process.communicate()  # the end of its input is the end of the process


def _keep(address: str) -> None:
    """Fork a process for each order, until the input ends."""
    commands = [each.name for each in pkgutil.walk_packages(cli.__path__, "ai_whisperer.cli.")]
    for name in (*commands, *_USED_BY_COMMANDS):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen(16)
        print("ready", flush=True)
        while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
            with listening.accept()[0] as connection:
                if os.fork() == 0:
                    listening.close()
                    _run(connection)


def _run(connection: socket.socket) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        order, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
        arguments, folder, environment = json.loads(order)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (_stream(number) for number in range(3))
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        sys.argv[1:] = arguments
        connection.send(str(os.getpid()).encode())
        code = main(arguments)
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - told as a program of its own would, whatever it was
        traceback.print_exc()
    finally:
        connection.send(str(code).encode())
        os._exit(code)


def _stream(number: int) -> io.TextIOWrapper:
    buffering = 1 if number == 2 else -1
    return open(number, "r" if number == 0 else "w", buffering=buffering, encoding="utf-8", closefd=False)


if __name__ == "__main__":
    _keep(sys.argv[1])
