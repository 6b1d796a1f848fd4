"""What is read from rows that are not records as they are kept: parts of them, sums, and agents that share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict

from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.mail import MailState
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.sessions import SessionSummary
from ai_whisperer.domain.snapshot import InboxMail, Link, LinkKind
from ai_whisperer.domain.tasks import Priority
from ai_whisperer.store.packing import Packing
from ai_whisperer.store.tables import AGENT, SESSION, Row

_definition = msgspec.json.Decoder(AgentDefinition).decode
_params = msgspec.json.Decoder(dict[str, Any]).decode


def agent_reader() -> Callable[[Row], AgentRecord]:
    """Reads the agents of a session. Those whose definitions are equal share one: many are made of one template."""
    definitions: dict[str, AgentDefinition] = {}

    def definition_of(text: str) -> AgentDefinition:
        found = definitions.get(text)
        if found is None:
            found = definitions[text] = _definition(text)
        return found

    return AGENT.reader(definition=definition_of)


def summary_from(row: Row) -> SessionSummary:
    return SessionSummary(**asdict(SESSION.read(row[:-1])), agents=row[-1])


def inbox_from(row: Row) -> InboxMail:
    return InboxMail(
        mail_id=row[0],
        thread_id=row[1],
        sender=row[2],
        subject=row[3],
        priority=Priority(row[4]),
        is_read=row[5] != MailState.QUEUED,
        at=row[6],
        arrival=row[7],
    )


def mails_received(links: Iterable[Link]) -> dict[str, int]:
    """How many mails each has received: they are counted by who reached whom."""
    counts: Counter[str] = Counter()
    for link in links:
        if link.kind is LinkKind.MAIL:
            counts[link.recipient] += link.count
    return dict(counts)


def notification_reader(packing: Packing) -> Callable[[Row], Notification]:
    read = packing.read

    def notification_from(row: Row) -> Notification:
        session_id, seq, name, cause, at, params, shape, told = row
        if shape is not None:
            return read(session_id, seq, at, shape, told)
        return Notification(seq=seq, session_id=session_id, name=name, cause=cause, at=at, params=_params(params))

    return notification_from
