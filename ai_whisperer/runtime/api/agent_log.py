"""Reading the log of an agent in the numbered log of its session, and passing it on to whoever wants it elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ai_whisperer.core.agent_log import LEVELS, agents_of, level_of, log_entry, reaches
from ai_whisperer.core.recent import PAGE_NOTES
from ai_whisperer.domain.levels import Level
from ai_whisperer.domain.notification import LogEntries, Notification
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.runtime.session.reads import Reads
from ai_whisperer.secrets import redactor

AGENTS = logging.getLogger("ai_whisperer.agents")
"""Where programs get the logs of agents: they attach a handler, and set a level. Each record has its `entry`."""
AGENTS.propagate = False  # the log of the process is about the process

_NUMBERS = {level: logging.getLevelNamesMapping()[level.upper()] for level in LEVELS}
_SLICE = 1_000
"""So many notifications are looked at before others have their turn; that takes about half a millisecond."""


class AgentLog:
    """The log of one agent of an open session."""

    def __init__(self, reads: Reads, agent_id: str, *, level: Level, first_seq: int = 1) -> None:
        """`first_seq` is where the log of the session begins."""
        self._reads = reads
        self._agent_id = agent_id
        self._level = level
        self._first_seq = first_seq

    async def last(self, limit: int, *, last_seq: int) -> LogEntries:
        """The last entries up to this number. What was told before the agent was created is not looked at."""
        found: list[Notification] = []
        before = last_seq + 1
        while before > self._first_seq and len(found) < limit:
            first = max(before - _SLICE, self._first_seq)
            some = await self._reads.last_notifications_naming(
                self._agent_id, after=first - 1, before=before, limit=PAGE_NOTES
            )
            found += (note for note in some if self._has(note))
            if any(note.name == "agent.created" and note.params.get("agentId") == self._agent_id for note in some):
                break
            before = some[-1].seq if len(some) == PAGE_NOTES else first
            await asyncio.sleep(0)
        return self._page(found[:limit][::-1], last_seq)

    async def following(self, after: int, limit: int, *, last_seq: int) -> LogEntries:
        """The entries after one number up to the other.

        A number that is not there yet is one of an earlier life of the session: the log is read from its start.
        """
        after = max(0 if after > last_seq else after, self._first_seq - 1)
        found: list[Notification] = []
        while after < last_seq and len(found) < limit:
            end = min(after + _SLICE, last_seq)
            some = await self._reads.notifications_naming(self._agent_id, after=after, before=end + 1, limit=PAGE_NOTES)
            found += (note for note in some if self._has(note))
            after = some[-1].seq if len(some) == PAGE_NOTES else end
            await asyncio.sleep(0)
        return self._page(found[:limit], found[limit - 1].seq if len(found) >= limit else after)

    def _has(self, note: Notification) -> bool:
        return reaches(note.name, self._level) and self._agent_id in agents_of(note)

    def _page(self, notes: Sequence[Notification], last: int) -> LogEntries:
        redact = redactor()
        return LogEntries(entries=[log_entry(note, self._agent_id, redact) for note in notes], next=last)


async def pass_on(subscription: Subscription) -> None:
    """Give what happens to agents to the handlers of `AGENTS`, in a thread, until the session is closed.

    However slow they are, nobody waits for them, and nothing is held for them: what they have not seen is in the log.
    """
    while notes := await subscription.some():
        wanted = [note for note in notes if note.seq and AGENTS.isEnabledFor(_number(note))] if AGENTS.handlers else []
        if wanted:
            await asyncio.to_thread(_handle, wanted)
        elif subscription.lag:
            await asyncio.sleep(0)  # what has to be caught up holds nobody up


def _handle(notes: Sequence[Notification]) -> None:
    redact = redactor()
    for note in notes:
        owners: list[str | None] = [*agents_of(note)]
        for agent_id in owners or [None]:  # what belongs to no agent is told once
            entry = log_entry(note, agent_id, redact)
            AGENTS.handle(
                logging.makeLogRecord(
                    {
                        "name": AGENTS.name,
                        "levelno": _number(note),
                        "levelname": logging.getLevelName(_number(note)),
                        "msg": "%s",
                        "args": (entry["text"],),
                        "created": note.at,
                        "entry": entry,
                    }
                )
            )


def _number(note: Notification) -> int:
    return _NUMBERS[level_of(note.name)]
