"""Pruning by itself: once a day all sessions of a server lose what has been over for long enough."""

from __future__ import annotations

import asyncio
import logging

from ai_whisperer.core.retention import age_in_seconds
from ai_whisperer.errors import ClosedError, NodeFencedError, SessionElsewhereError, WhispererError
from ai_whisperer.server.host import SessionHost

FIRST_AFTER_SECONDS = 60.0
"""So long after the start it begins: whatever has to be taken up comes first."""
EVERY_SECONDS = 86_400.0
_PAUSE_SECONDS = 0.1
"""Between one session and the next."""

_log = logging.getLogger(__name__)


async def prune_daily(host: SessionHost, older_than: str) -> None:
    """Prune again and again, until this is cancelled."""
    await asyncio.sleep(FIRST_AFTER_SECONDS)
    while True:
        await prune_all(host, older_than)
        await asyncio.sleep(EVERY_SECONDS)


async def prune_all(host: SessionHost, older_than: str) -> None:
    """Prune the sessions that have something old; one that cannot be pruned keeps no other from it."""
    for session_id in await host.aged_sessions(age_in_seconds(older_than)):
        try:
            report = await host.prune(session_id, older_than=older_than)
        except (ClosedError, NodeFencedError):
            return  # nothing more is done here
        except SessionElsewhereError:
            continue  # the node that has it prunes it
        except WhispererError as error:
            _log.warning("session '%s' could not be pruned: %s", session_id, error.message)
        else:
            if report is not None and report.erased:
                erased = report.erased
                _log.info(
                    "session '%s' was pruned: %d threads, %d tasks, %d mails and %d entries of the log",
                    session_id,
                    erased.threads,
                    erased.tasks,
                    erased.mails,
                    erased.notifications,
                )
        await asyncio.sleep(_PAUSE_SECONDS)
