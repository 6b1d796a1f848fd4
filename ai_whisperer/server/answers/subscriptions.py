"""Answers to `events.*`."""

from __future__ import annotations

from msgspec.structs import replace

from ai_whisperer.protocol import subscriptions
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.server.calls import Caller, answers, reads


@answers(subscriptions.SUBSCRIBE)
async def subscribe(caller: Caller, params: subscriptions.Subscribe) -> subscriptions.Subscribed:
    session = await caller.session(params.session_id)
    record = await caller.host.get(caller.principal, params.session_id)
    return replace(caller.peer.subscribe(session, params), created_at=record.created_at)


@answers(subscriptions.UNSUBSCRIBE)
async def unsubscribe(caller: Caller, params: subscriptions.Unsubscribe) -> subscriptions.Subscribed:
    session = await caller.session(params.session_id)
    record = await caller.host.get(caller.principal, params.session_id)
    return replace(caller.peer.unsubscribe(session), created_at=record.created_at)


@reads(subscriptions.LIST_NOTIFICATIONS)
async def list_notifications(
    session: AsyncAgentSessionManager, params: subscriptions.ListNotifications
) -> subscriptions.NotificationList:
    notes = await session.notifications(after=params.after, limit=params.limit)
    return subscriptions.NotificationList(notifications=notes, last_seq=session.last_seq)
