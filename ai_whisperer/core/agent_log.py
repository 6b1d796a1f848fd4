"""The log of an agent: those of the session's notifications that are about it, as entries of a log.

There is no other copy of it: whoever reads an agent's log reads the numbered log of its session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.moments import timestamp
from ai_whisperer.core.telling import told
from ai_whisperer.domain.levels import Level
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.secrets import redacted_data

LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")

_RANKS = {level: rank for rank, level in enumerate(LEVELS)}
_MAX_TEXT = 2_048
_MAX_ENTRY_BYTES = 64 << 10
_REDACTED_AT_MOST = 16 << 10
"""So much of a long text is searched for secrets: far more than is shown, so that none is cut in two and missed."""


def level_of(event: str) -> Level:
    """How much a notification of this name matters in a log."""
    kind = NOTIFICATIONS.get(event)
    return "info" if kind is None else kind.level


def reaches(event: str, least: Level) -> bool:
    """Whether a notification of this name is in a log that begins at this level."""
    return _RANKS[level_of(event)] >= _RANKS[least]


def checked_level(level: str) -> Level:
    """The level, if there is one of that name; raises `InvalidInputError`."""
    for known in LEVELS:
        if known == level:
            return known
    raise InvalidInputError(f"There is no level {level!r}. Levels: {', '.join(LEVELS)}.")


def agents_of(note: Notification) -> list[str]:
    """In whose logs the notification belongs: a mail in those of both sides. A piece of a stream is in none."""
    params = note.params
    if note.seq == 0:
        return []
    named = (params["agentId"],) if "agentId" in params else (params.get("sender"), params.get("recipient"))
    return [each for each in dict.fromkeys(named) if isinstance(each, str) and _is_agent(each)]


def log_entry(note: Notification, agent_id: str | None, redact: Callable[[str], str]) -> dict[str, Any]:
    """The notification as an entry of the log of an agent, with what it says in words as `text`.

    Secrets are redacted, long texts are cut, and params that are too large all in all are left out; the entry says so.
    """

    def shown(text: str) -> str:
        if len(text) <= _MAX_TEXT:
            return redact(text)
        return f"{redact(text[:_REDACTED_AT_MOST])[:_MAX_TEXT]}… [cut: {len(text):,} characters in all]"

    try:
        params = redacted_data(note.params, shown)
        size = len(msgspec.json.encode(params))
        cut = f"{size:,} bytes" if size > _MAX_ENTRY_BYTES else None
    except RecursionError:
        cut = "nested too deeply"
        params = redacted_data({k: each for k, each in note.params.items() if not isinstance(each, list | dict)}, shown)
    words = told(note.name, params)
    return {
        "time": timestamp(note.at),
        "level": level_of(note.name),
        "session": note.session_id,
        "agent": agent_id,
        "event": note.name,
        "text": note.name if words is None else " ".join(words),
        "seq": note.seq,
        "cause": note.cause,
        "params": params if cut is None else {"cut": cut},
    }


def _is_agent(name: str) -> bool:
    """Whether it can be an agent: not the person, and not a schedule that sends an event."""
    try:
        check_agent_id(name)
    except InvalidInputError:
        return False
    return True
