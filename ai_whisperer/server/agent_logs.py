"""Debug logs of agents: what the session's notifications say about an agent, one JSON object a line, in its own file.

The notifications are taken on the event loop and written by a thread. When the disk is slower than the agents, the
oldest lines give way, those of debugging first; how many were lost is a line of the log. Nothing that happens here
reaches an agent.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.base import Level
from ai_whisperer.errors import InvalidInputError, StoreError
from ai_whisperer.secrets import redacted_data, redactor
from ai_whisperer.server.log_files import LogFiles, log_folder, log_path, take_over_logs, timestamp
from ai_whisperer.server.log_reading import last_numbers

LOST = "log.lost"
"""The event of a line that tells how many lines are missing."""

_RANKS: dict[Level, int] = {"debug": 0, "info": 1, "warning": 2, "error": 3}
_MAX_WAITING = 10_000
_MAX_TEXT = 2_048
_MAX_LINE_BYTES = 64 << 10
_REDACTED_AT_MOST = 16 << 10
"""So much of a long text is searched for secrets: far more than is shown, so that none is cut in two and missed."""
CLOSE_SECONDS = 5.0
"""So long the disk may take for what is left when the logs are closed."""
_GATHER_SECONDS = 0.05
_LINES_AT_MOST = 500
_CAUGHT_UP_AT_MOST = 2_000
_LINES_AT_ONCE = 20
_REST_SECONDS = 0.0005
"""After some lines the thread rests, since the event loop has to wait while the thread computes."""

_log = logging.getLogger(__name__)


class _Owner(NamedTuple):
    """Whose log it is; None for what belongs to no agent of the session."""

    session_id: str
    agent_id: str | None


class _Waiting(NamedTuple):
    arrival: int
    note: Notification


class _Loss(NamedTuple):
    lines: int
    at: float


class _Line(NamedTuple):
    """A line to be written, and how many are lost with it if it cannot be."""

    content: bytes
    stands_for: int
    at: float
    seq: int = 0


class AgentLogs:
    """Writes `logs/SESSION/AGENT.log` in the data folder. Use it from one thread; `close` ends the thread it owns.

    `debug` also writes what happens to single steps and mails, `warning` and `error` only what went wrong.
    """

    def __init__(self, data: Path, *, max_bytes: int = 5_000_000, backups: int = 3, level: Level = "info") -> None:
        self._data = data
        self._least = _RANKS[level]
        self._files = LogFiles(max_bytes=max_bytes, backups=backups)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_details: deque[_Waiting] = deque()
        self._lost: dict[_Owner, _Loss] = {}
        self._ends: dict[Path, int] = {}
        self._arrivals = 0
        self._filled = threading.Event()
        self._closed = threading.Event()
        self._is_reported = False
        self._thread = threading.Thread(target=self._run, name="whisperer-agent-logs", daemon=True)
        self._thread.start()

    def write(self, notes: Sequence[Notification]) -> None:
        """Take notifications to be written soon. Never waits for the disk, never raises."""
        if self._closed.is_set():
            return
        with self._lock:
            for note in notes:
                rank = _RANKS[level_of(note.name)]
                if rank < self._least or note.seq == 0:
                    continue
                if len(self._waiting) + len(self._waiting_details) >= _MAX_WAITING:
                    self._give_way()
                self._arrivals += 1
                queue = self._waiting if rank else self._waiting_details
                queue.append(_Waiting(self._arrivals, note))
            if self._waiting or self._waiting_details:
                self._filled.set()

    def resume(self, session_id: str, *, last_seq: int) -> int:
        """The number after which to hand in the notifications of a session that is opened.

        The process may have ended before the last ones were written. A line that is there is not written again. Of a
        session that went on for long without these logs, the last ones are written. It waits for the disk: on an event
        loop, call it through `asyncio.to_thread`.
        """
        folder = log_path(self._data, session_id, None).parent
        with self._writing:
            take_over_logs(self._data, session_id)
            self._write_waiting()
            ends = {path: number for path, number in last_numbers(folder).items() if number <= last_seq}
            self._ends |= ends
        # A batch is written file by file, so what is before the end of one file may be missing in another.
        return max(max(ends.values(), default=0) - _LINES_AT_MOST, last_seq - _CAUGHT_UP_AT_MOST, 0)

    def remove(self, session_id: str) -> None:
        """Remove the logs of a session that has ended: one of the same id may be somebody else's.

        Raises `StoreError` if they cannot be removed. It waits for the disk: on an event loop, call it through
        `asyncio.to_thread`.
        """
        folder = log_path(self._data, session_id, None).parent
        with self._writing:
            with self._lock:
                self._waiting = deque(each for each in self._waiting if each.note.session_id != session_id)
                self._waiting_details = deque(
                    each for each in self._waiting_details if each.note.session_id != session_id
                )
                self._lost = {owner: loss for owner, loss in self._lost.items() if owner.session_id != session_id}
            self._ends = {path: number for path, number in self._ends.items() if path.parent != folder}
            take_over_logs(self._data, session_id)
            try:
                self._files.remove(folder)
            except OSError as error:
                raise StoreError(
                    f"The logs in '{folder}' cannot be removed ({error.strerror}). Remove them, and delete the session "
                    "again."
                ) from error

    def close(self, *, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Write what is left and end; what comes later is not taken.

        It waits for the disk, at most so long: on an event loop, call it through `asyncio.to_thread`.
        """
        self._closed.set()
        self._filled.set()
        self._thread.join(timeout_seconds)

    def _give_way(self) -> None:
        oldest = (self._waiting_details or self._waiting).popleft().note
        for owner in _owners(oldest):
            self._lose(owner, 1, oldest.at)

    def _lose(self, owner: _Owner, count: int, at: float) -> None:
        before = self._lost.get(owner)
        self._lost[owner] = _Loss(count + (before.lines if before else 0), at)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._filled.wait()
            self._filled.clear()
            closing = self._closed.wait(_GATHER_SECONDS)
            with self._writing:
                self._write_waiting()
        self._files.close()

    def _write_waiting(self) -> None:
        try:
            self._write_in_batches()
        except Exception:  # noqa: BLE001 - a fault of ours costs some lines, not the logs of all agents
            _log.exception("some lines of the agents' logs could not be made")

    def _write_in_batches(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            details, self._waiting_details = self._waiting_details, deque()
            lost, self._lost = self._lost, {}
        lines = {owner: [_loss_line(owner, loss)] for owner, loss in lost.items()}
        redact = redactor()
        for number, (_, note) in enumerate(sorted([*waiting, *details]), 1):
            for owner in _owners(note):
                lines.setdefault(owner, []).append(_Line(_encoded(owner, note, redact), 1, note.at, note.seq))
            if number % _LINES_AT_ONCE == 0:
                self._closed.wait(_REST_SECONDS)
            if number % _LINES_AT_MOST == 0:
                self._append(lines)
                lines = {}
        self._append(lines)

    def _append(self, lines: dict[_Owner, list[_Line]]) -> None:
        for owner, offered in lines.items():
            path = log_path(self._data, owner.session_id, owner.agent_id)
            some = self._new(path, offered)
            written, error = self._files.append(path, [line.content for line in some])
            if error is not None:
                self._report(error)
                unwritten = some[written:]
                with self._lock:
                    self._lose(owner, sum(line.stands_for for line in unwritten), unwritten[-1].at)

    def _new(self, path: Path, lines: list[_Line]) -> list[_Line]:
        """Those of the lines that are not in the log since before the session was opened."""
        end = self._ends.get(path)
        if end is None:
            return lines
        if lines[-1].seq > end:
            del self._ends[path]
        return [line for line in lines if line.seq == 0 or line.seq > end]

    def _report(self, error: OSError) -> None:
        if not self._is_reported:
            self._is_reported = True
            _log.warning(
                "The logs of agents in '%s' cannot be written: %s. Agents continue; lost lines are counted there.",
                log_folder(self._data),
                error.strerror or error,
            )


def level_of(event: str) -> Level:
    """How much a notification of this name matters in a log."""
    kind = NOTIFICATIONS.get(event)
    return "info" if kind is None else kind.level


def _owners(note: Notification) -> list[_Owner]:
    """In whose logs the notification belongs: a mail in those of both sides."""
    params = note.params
    named = (params["agentId"],) if "agentId" in params else (params.get("sender"), params.get("recipient"))
    agents = dict.fromkeys(each for each in named if isinstance(each, str) and _is_agent(each))
    return [_Owner(note.session_id, agent) for agent in agents] or [_Owner(note.session_id, None)]


@lru_cache(maxsize=10_000)
def _is_agent(name: str) -> bool:
    """Whether it can be an agent: not the person, and not a schedule that sends an event."""
    try:
        check_agent_id(name)
    except InvalidInputError:
        return False
    return True


def _encoded(owner: _Owner, note: Notification, redact: Callable[[str], str]) -> bytes:
    def shown(text: str) -> str:
        if len(text) <= _MAX_TEXT:
            return redact(text)
        return f"{redact(text[:_REDACTED_AT_MOST])[:_MAX_TEXT]}… [cut: {len(text):,} characters in all]"

    try:
        params = redacted_data(note.params, shown)
        line = _entry(owner, note.at, level_of(note.name), note.name, seq=note.seq, cause=note.cause, params=params)
    except RecursionError:
        line = b""
    if 0 < len(line) <= _MAX_LINE_BYTES:
        return line
    cut = {"cut": f"{len(line):,} bytes" if line else "nested too deeply"}
    return _entry(owner, note.at, level_of(note.name), note.name, seq=note.seq, cause=note.cause, params=cut)


def _loss_line(owner: _Owner, loss: _Loss) -> _Line:
    return _Line(_entry(owner, loss.at, "warning", LOST, params={"lines": loss.lines}), loss.lines, loss.at)


def _entry(owner: _Owner, at: float, level: Level, event: str, **more: Any) -> bytes:
    entry = {
        "time": timestamp(at),
        "level": level,
        "session": owner.session_id,
        "agent": owner.agent_id,
        "event": event,
        **more,
    }
    return msgspec.json.encode(entry) + b"\n"
