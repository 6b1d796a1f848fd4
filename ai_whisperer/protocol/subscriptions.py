"""The methods `events.*`: following the numbered log of a session, and how a notification looks on the wire."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.domain.notification import Notification
from ai_whisperer.protocol.jsonrpc import notification_frame
from ai_whisperer.protocol.method import Effect, InSession, Method

NOTIFICATIONS = "notifications"
EXPLICIT = "explicit"
"""A WebSocket that is opened as `/ws?notifications=explicit` gets what `events.subscribe` asks for, nothing else."""


class Subscribe(InSession, frozen=True, kw_only=True):
    """Send the session's notifications to this connection, from the one after `after` on.

    0 is from the start; without it, from now on. If what follows `after` was pruned, the error `log_pruned` has the
    first number that is kept as `firstSeq`: take `session.snapshot` and subscribe after its `lastSeq`. With `deltas`
    the pieces of answers come along as they are streamed: these are not numbered (`seq` 0) and not kept. A connection
    has one subscription for a session; another replaces it.
    The first call of a method `async.*` in a session subscribes the connection to it from then on, without deltas,
    unless it was opened as `/ws?notifications=explicit` or has called `events.subscribe` or `events.unsubscribe` for
    the session.
    """

    after: int | None = None
    deltas: bool = False


class Unsubscribe(InSession, frozen=True, kw_only=True):
    """Stop sending notifications of the session. The answer has the number of the last that was sent."""


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    """`after` is where the subscription begins or ended, `last_seq` the newest notification that there is.

    The log begins at `first_seq`.

    A session that was deleted and made again under the same id has another `created_at`, and another log.
    """

    session_id: str
    after: int
    last_seq: int
    first_seq: int = 1
    created_at: float = 0.0


class ListNotifications(InSession, frozen=True, kw_only=True):
    after: int = 0
    limit: int = 1000


class NotificationList(msgspec.Struct, frozen=True, kw_only=True):
    """Notifications, in order; `last_seq` is the number of the newest that there is."""

    notifications: list[Notification]
    last_seq: int


def frame_of(note: Notification) -> bytes:
    """The notification as clients get it: its params, and with them what every notification has."""
    head = {"sessionId": note.session_id, "seq": note.seq, "cause": note.cause, "at": note.at}
    return notification_frame(note.name, msgspec.json.encode({**note.params, **head}))


class _Stamps(msgspec.Struct, frozen=True, rename="camel"):
    """What the params of all notifications have in them."""

    seq: int
    session_id: str
    cause: str
    at: float


_stamps = msgspec.json.Decoder(_Stamps).decode
_params = msgspec.json.Decoder(dict[str, Any]).decode


def note_in(name: str, written: bytes | msgspec.Raw) -> Notification:
    """The notification with that name whose params on the wire are these; raises `msgspec.MsgspecError`."""
    stamps, params = _stamps(written), _params(written)
    for field in _Stamps.__struct_encode_fields__:
        del params[field]
    return Notification(
        seq=stamps.seq, session_id=stamps.session_id, name=name, cause=stamps.cause, at=stamps.at, params=params
    )


SUBSCRIBE = Method("events.subscribe", Subscribe, Subscribed)
UNSUBSCRIBE = Method("events.unsubscribe", Unsubscribe, Subscribed)
LIST_NOTIFICATIONS = Method("events.list", ListNotifications, NotificationList, "notifications", Effect.READS)
