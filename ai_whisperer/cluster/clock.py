"""The clock that all nodes go by: that of the database, as far as a machine's own differs from it."""

from __future__ import annotations

import logging
from typing import Final

from ai_whisperer.domain.clock import SystemClock

TOLERATED_SECONDS: Final = 2.0
"""So far the clocks of machines may be apart: to correct less would move times at each beat, for nothing."""

_log = logging.getLogger(__name__)


class ClusterClock(SystemClock):
    """Shows what the machine's clock shows, corrected if that is wrong."""

    def __init__(self) -> None:
        self._ahead = 0.0

    @property
    def ahead(self) -> float:
        """How far the time of the database is ahead of the machine's; 0 if that is good enough."""
        return self._ahead

    def now(self) -> float:
        return SystemClock.now() + self._ahead

    def notice(self, ahead: float | None) -> None:
        """Take note of how far the database was ahead just now, if that is known."""
        if ahead is None:
            return
        least = TOLERATED_SECONDS / 2 if self._ahead else TOLERATED_SECONDS  # or it would go to and fro
        wanted = ahead if abs(ahead) > least else 0.0
        if bool(wanted) == bool(self._ahead) and abs(wanted - self._ahead) <= TOLERATED_SECONDS:
            return
        self._ahead = wanted
        if wanted:
            side = "behind" if wanted > 0 else "ahead of"
            _log.warning(
                "the clock of this machine is %.0f s %s that of the database: sessions go by the database's. Set the "
                "machine's clock (NTP)",
                abs(wanted),
                side,
            )
        else:
            _log.info("the clock of this machine agrees with that of the database again")
