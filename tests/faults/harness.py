"""A server with a fault in it: what it is asked, what it answers, how it ends, and what there is at the next start."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self

import msgspec

from ai_whisperer.errors import WhispererError
from ai_whisperer.store.sqlite import SqliteStore
from tests.acceptance.raw_socket import (
    ONLY_WHAT_IS_SUBSCRIBED,
    ClosedError,
    RawSocket,
    RefusedError,
    frame,
    request_of,
)

from .injection import HANG, Fault
from .zygote import GRACE_SECONDS, STALLED_SECONDS, Order

PATIENCE_SECONDS = 12.0
"""A server that does not answer or end for so long never does."""

_READY = re.compile(r"ready http://127\.0\.0\.1:(\d+)/\?token=(\S+)")
_ENDINGS = (0, 1, 3)
_AGENT = "ann"


class Zygote:
    """The process that forks servers, one at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={name: value for name, value in os.environ.items() if not name.startswith("WHISPERER_")},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def start(self, order: Order) -> int:
        """The id of the server's process."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order).decode() + "\n")
        self._process.stdin.flush()
        return int(self._lines.get(timeout=60))

    def ended(self, patience_seconds: float = PATIENCE_SECONDS) -> int | None:
        """Wait for the end of the server; its exit code, None if it does not end."""
        try:
            return int(self._lines.get(timeout=patience_seconds))
        except queue.Empty:
            return None

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


class Case:
    """One server with one fault. `findings` is what it did wrong."""

    def __init__(
        self,
        zygote: Zygote,
        folder: Path,
        fault: Fault | None = None,
        *,
        bug: str | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.fault = fault
        self._patience_seconds = patience_seconds
        self.findings: list[str] = []
        self.acknowledged: list[str] = []
        self.refused = 0
        self.exit_code: int | None = None
        self._zygote = zygote
        self._bug = bug
        self._data = folder / "data"
        self._stderr = folder / "stderr"
        self._counts = folder / "counts"
        folder.mkdir(exist_ok=True)

    def play(self) -> Case:
        """Start, ask, look, end, and look at what is left."""
        pid, ready = self._start()
        try:
            self._play(pid, ready)
        finally:
            if self.exit_code is None:
                os.kill(pid, signal.SIGKILL)
                self._zygote.ended()
        self._look_at_what_is_left()
        return self

    def _play(self, pid: int, ready: re.Match[str] | None) -> None:
        if ready is None:
            self._look_at_end(by_itself=True)
        else:
            self._ask(int(ready[1]), ready[2])
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            self._look_at_end(by_itself=False)

    @property
    def told(self) -> str:
        """What went wrong, with what the server said."""
        return f"{self.fault}: {'; '.join(self.findings)}\n{self._errors[-2000:]}"

    @property
    def counts(self) -> dict[str, int]:
        """How often each call was made, in a server that has ended cleanly."""
        counted: dict[str, int] = json.loads(self._counts.read_bytes())
        return counted

    def _start(self) -> tuple[int, re.Match[str] | None]:
        stdout = self._data.with_name("stdout")
        os.mkfifo(stdout)
        grace = ("--shutdown-grace-seconds", str(GRACE_SECONDS))
        order = Order(
            arguments=["serve", "--port", "0", "--data", str(self._data), "--model", "scripted", *grace],
            stdout=str(stdout),
            stderr=str(self._stderr),
            fault=self.fault,
            bug=self._bug,
            counts=str(self._counts),
        )
        pid = self._zygote.start(order)
        with _Patience(pid, self._patience_seconds) as patience, stdout.open(encoding="utf-8") as lines:
            ready = _READY.match(lines.readline())
        if patience.is_over and not self._hangs:
            self.findings.append("it hangs at its start")
        return pid, ready

    def _ask(self, port: int, token: str) -> None:
        try:
            with RawSocket(port, path=ONLY_WHAT_IS_SUBSCRIBED, token=token, timeout=self._patience_seconds) as client:
                self._work(client)
        except (ClosedError, RefusedError, ConnectionError):
            pass  # it has ended, or is about to: its exit code tells
        except TimeoutError:
            if not self._hangs:
                self.findings.append("a request was not answered")
        self._look_at_health(port, token)

    def _work(self, client: RawSocket) -> None:
        """Ask for one thing after the other, and then for many at once."""
        if self._hangs:
            client.socket.settimeout(2 * STALLED_SECONDS)
        self._take(f"agent:{_AGENT}", client.answer("async.createAgent", sessionId="default", agentId=_AGENT))
        for number in range(6):
            self._take(f"task:alone-{number}", client.answer("async.sendTask", **_task(f"alone-{number}")))
        self._take("session:other", client.answer("session.create", sessionId="other"))
        client.answer("async.createAgent", sessionId="other", agentId=_AGENT)
        self.acknowledged = [each for each in self.acknowledged if each != "session:other"]
        client.answer("session.delete", sessionId="other")
        several = [f"many-{number}" for number in range(12)]
        for name in several:
            client.send(frame(request_of("async.sendTask", _task(name), name)))
        for _ in several:
            answer = client.receive()
            self._take(f"task:{answer['id']}", answer)
        for number in range(4):
            self._take(f"task:last-{number}", client.answer("async.sendTask", **_task(f"last-{number}")))

    def _take(self, what: str, answer: dict[str, Any]) -> None:
        if "result" in answer:
            self.acknowledged.append(what)
            return
        self.refused += 1
        message = answer["error"]["message"]
        if "Traceback" in message or not message.endswith("."):
            self.findings.append(f"an unclear error: {message}")

    def _look_at_health(self, port: int, token: str) -> None:
        """A server that says that it is well has to do what it is asked for."""
        seconds = 5 * STALLED_SECONDS if self._hangs else self._patience_seconds
        try:
            with RawSocket(port, path=ONLY_WHAT_IS_SUBSCRIBED, token=token, timeout=seconds) as client:
                answer = client.answer("session.create")
        except (ClosedError, RefusedError, ConnectionError):
            return
        except TimeoutError:
            answer = None
        if not _says_ok(port, seconds):
            return
        if answer is None:
            self.findings.append("healthz says ok, and nothing is answered")
        elif "error" in answer and answer["error"]["data"]["code"] in ("store_failed", "store_full"):
            self.findings.append("healthz says ok, and the store has failed")

    @property
    def _hangs(self) -> bool:
        return self.fault is not None and self.fault.kind == HANG

    def _look_at_end(self, *, by_itself: bool) -> None:
        self.exit_code = self._zygote.ended(self._patience_seconds)
        if self.exit_code is None:
            self.findings.append("it does not end" if by_itself else "SIGTERM does not end it")
            return
        if self.exit_code not in _ENDINGS:
            self.findings.append(f"it ended with {self.exit_code}")
        if "Traceback" in self._errors:
            self.findings.append("it ended with a traceback")
        if self.exit_code and not self._errors.rstrip().endswith("."):
            self.findings.append("it ended without a sentence")
        if self.exit_code == 0 and "store has failed" in self._errors:
            self.findings.append("it goes on although its store has failed")

    def _look_at_what_is_left(self) -> None:
        """The next start has all that was acknowledged."""
        try:
            kept = asyncio.run(_kept(self._data))
        except WhispererError as error:
            self.findings.append(f"the next start fails: {error}")
            return
        lost = [each for each in self.acknowledged if each not in kept]
        if lost:
            self.findings.append(f"{', '.join(lost)} was acknowledged and is lost")

    @property
    def _errors(self) -> str:
        return self._stderr.read_text(encoding="utf-8") if self._stderr.exists() else ""


def _says_ok(port: int, seconds: float) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _task(name: str) -> dict[str, str]:
    return {"sessionId": "default", "agentId": _AGENT, "prompt": "x" * 1_000, "taskId": name}


async def _kept(data: Path) -> set[str]:
    """What is on disk."""
    store = SqliteStore.open(data)
    try:
        others = {f"agent:{agent.id}" for agent in (await store.load("default")).agents}
        others |= {f"session:{session.id}" for session in await store.sessions("local", limit=1000)}
        return others | {f"task:{task.id}" for task in await store.tasks("default", limit=1000)}
    finally:
        await store.close()


class _Patience:
    """Ends the process if the block takes too long: whoever waits for its output would wait for ever."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._timer = threading.Timer(seconds, self._end)
        self.is_over = False

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
