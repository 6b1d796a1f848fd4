"""What a node does after each beat: it takes what nobody has, and lets go of what others are to have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.nodes import Seen
from ai_whisperer.errors import WhispererError
from ai_whisperer.server.host import SessionHost

_FIRST_PAUSE_BEATS: Final = 2
_LONGEST_PAUSE_BEATS: Final = 120
_SWEEP_BEATS: Final = 7_200
"""About an hour."""

_log = logging.getLogger(__name__)
_limits = msgspec.json.Decoder(SessionLimits).decode


class _Pause:
    """How many beats pass before something that failed is tried again: twice as many each time."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE_BEATS
        self._left = 0

    def begin(self) -> None:
        self._left, self._next = self._next, min(2 * self._next, _LONGEST_PAUSE_BEATS)

    def is_over(self) -> bool:
        """Whether it is, after one beat more."""
        self._left -= 1
        return self._left <= 0


class Duties:
    """Acts on what a node sees when it beats, for as long as its server runs. Each duty is done once at a time."""

    def __init__(self, host: SessionHost, *, grace_seconds: float) -> None:
        self._host = host
        self._grace_seconds = grace_seconds
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._limits: str | None = None
        self._unopened: dict[str, _Pause] = {}
        self._beats = 0
        host.membership.watch(self._seen)

    async def close(self) -> None:
        """End what is under way; the sessions are closed by whoever ends the server."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _seen(self, seen: Seen) -> None:
        if self._host.is_closing:
            return
        if seen.wanted:
            self._do("taking", self._take(seen))
        for session_id, pause in list(self._unopened.items()):
            if pause.is_over():
                self._do(f"opening {session_id}", self._open(session_id))
        for session_id in seen.moving:
            self._do(f"moving {session_id}", self._host.let_go(session_id, grace_seconds=self._grace_seconds))
        if self._host.membership.is_draining(seen) and self._host.membership.held:
            self._do("draining", self._drain())
        if self._beats % _SWEEP_BEATS == 0:
            self._do("removing the files of deleted sessions", self._host.remove_left_files())
        self._beats += 1
        if self._host.has_unsound:
            self._do("dropping", self._host.drop_unsound())
        self._look_at_limits(seen.limits)

    def _look_at_limits(self, limits: str) -> None:
        """Those of the server may have been set at another node."""
        if limits != self._limits:
            self._limits = limits
            if limits:
                self._do("limits", self._host.take_limits(_limits(limits)))

    async def _take(self, seen: Seen) -> None:
        """Take up this node's share of the sessions that have work and nobody."""
        taken = await self._host.membership.take(seen)
        if taken:
            _log.info("%d sessions are taken up that no other node has", len(taken))
        await asyncio.gather(*map(self._open, taken))

    async def _open(self, session_id: str) -> None:
        """One that cannot be opened stays with this node: it is tried again, and whoever asks for it is told why."""
        if session_id not in self._host.membership.held:
            self._unopened.pop(session_id, None)  # it went elsewhere meanwhile
            return
        try:
            await self._host.open_claimed(session_id)
        except (WhispererError, OSError) as error:
            _log.error("session %s could not be taken up: %s", session_id, error)
            self._unopened.setdefault(session_id, _Pause()).begin()
        else:
            self._unopened.pop(session_id, None)

    async def _drain(self) -> None:
        _log.info("this node is being drained: its sessions go to others")
        going = (self._host.let_go(each, grace_seconds=self._grace_seconds) for each in self._host.membership.held)
        for outcome in await asyncio.gather(*going, return_exceptions=True):
            if isinstance(outcome, BaseException):
                _log.error("a session could not be let go: %s", outcome)

    def _do(self, what: str, doing: Coroutine[Any, Any, None]) -> None:
        if what in self._under_way:
            doing.close()
            return
        task = asyncio.create_task(doing, name=what)
        self._under_way[what] = task
        task.add_done_callback(lambda done: self._done(what, done))

    def _done(self, what: str, task: asyncio.Task[None]) -> None:
        del self._under_way[what]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed: %s", what, error)
