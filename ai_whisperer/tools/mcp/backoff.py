"""When an MCP server that failed may be started again."""

from __future__ import annotations

from collections import deque

_MAX_FAILURES = 5
_WINDOW_SECONDS = 600.0
_FIRST_DELAY_SECONDS = 1.0


class Backoff:
    """When a server that failed may be started again: each time later, and not for a while after many failures."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque(maxlen=_MAX_FAILURES)

    def failed(self, now: float) -> float:
        """Count a failure; returns when the next start may be."""
        while self._failures and self._failures[0] <= now - _WINDOW_SECONDS:
            self._failures.popleft()
        self._failures.append(now)
        if self.gave_up:
            return self._failures[0] + _WINDOW_SECONDS
        if len(self._failures) == 1:
            return now
        return now + _FIRST_DELAY_SECONDS * 2.0 ** (len(self._failures) - 2)

    @property
    def gave_up(self) -> bool:
        return len(self._failures) == _MAX_FAILURES
