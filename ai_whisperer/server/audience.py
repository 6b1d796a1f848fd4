"""The clients that keep up with a session: what is new is read once and written to all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable, Sequence
from typing import Protocol

from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import WhispererError
from ai_whisperer.runtime.session.log import Subscription
from ai_whisperer.server.frames import NotificationFrames
from ai_whisperer.server.metrics import Metrics
from ai_whisperer.server.outbox import Outbox

_log = logging.getLogger(__name__)

_MEMBERS_AT_A_TIME = 50
_PAUSE_SECONDS_A_MEMBER = 0.00015
_SHORTEST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.1


class Member(Protocol):
    """A client as its audience sees it. `sent` is the number of the last notification that was written to it."""

    sent: int

    @property
    def outbox(self) -> Outbox: ...

    def go_alone(self, subscription: Subscription) -> None:
        """Read from this subscription from now on: the client does not keep up, or the audience is over."""


class Audiences:
    """The audiences of all sessions. Those who want the pieces of streams are apart from those who do not."""

    def __init__(self, frames: NotificationFrames, metrics: Metrics) -> None:
        self.frames = frames
        self.metrics = metrics
        self._audiences: dict[Hashable, Audience] = {}

    def of(self, subscription: Subscription) -> Audience:
        """The audience of what the subscription brings. A new one begins where the subscription has come to."""
        audience = self._audiences.get(subscription.source)
        if audience is None:
            audience = Audience(subscription.fork(after=subscription.cursor), self)
            self._audiences[subscription.source] = audience
        return audience

    def forget(self, audience: Audience, source: Hashable) -> None:
        """The audience is over; another of the same may have begun."""
        if self._audiences.get(source) is audience:
            del self._audiences[source]


class Audience:
    """Reads for its members, with a pause after each reading: the more members, the longer.

    So writing takes a small part of the time, however many they are and however much there is to tell: what comes in a
    pause is written together. A member whose client has not taken what it got goes on alone from there.
    """

    def __init__(self, subscription: Subscription, audiences: Audiences) -> None:
        self._subscription = subscription
        self._audiences = audiences
        self._members: dict[Member, None] = {}
        self._waiting: dict[Member, tuple[Subscription, asyncio.Future[bool]]] = {}
        self._task = asyncio.create_task(self._run(), name="audience of a session")

    def join(self, member: Member, subscription: Subscription) -> bool:
        """Come in with a subscription that was read to the end, if the audience's was too. It is closed then."""
        return self._subscription.is_exhausted and self._admit(member, subscription)

    async def joined(self, member: Member, subscription: Subscription) -> bool:
        """The same, if need be after the next reading. False if the client is not ready any more then."""
        if self.join(member, subscription):
            return True
        admitted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[member] = subscription, admitted
        return await admitted

    def leave(self, member: Member) -> None:
        self._members.pop(member, None)
        self._waiting.pop(member, None)
        if not self._members and not self._waiting:
            self._task.cancel()
            self._end()  # the task may not have begun, and then nothing of it runs

    async def _run(self) -> None:
        try:
            while self._members or self._waiting:
                notes, frames = await self._audiences.frames.some(self._subscription)
                if not notes:
                    break
                cursor, is_all = self._subscription.cursor, self._subscription.is_exhausted
                members = self._keep_those_who_keep_up(notes)
                if is_all:
                    self._admit_waiting()
                await self._write(frames, members, cursor=cursor)
                self._audiences.metrics.count_notifications(len(notes) * len(members))
                if is_all:
                    await self._pause()
        except WhispererError:
            pass  # each member finds the same when it goes on alone
        except Exception:  # noqa: BLE001 - as above, with the details in the log
            _log.exception("what is new in a session could not be written to all who follow it")
        finally:
            self._end()

    def _keep_those_who_keep_up(self, unread: Sequence[Notification]) -> list[Member]:
        """The members who have taken what came before; the others go on alone from there."""
        behind = [member for member in self._members if not member.outbox.is_ready]
        for member in behind:
            del self._members[member]
            member.go_alone(self._subscription.fork(after=member.sent, unread=unread))
        return list(self._members)

    async def _write(self, frames: bytes, members: Sequence[Member], *, cursor: int) -> None:
        """Write to these, some at a time, so that agents need not wait for all of them."""
        for first in range(0, len(members), _MEMBERS_AT_A_TIME):
            for member in members[first : first + _MEMBERS_AT_A_TIME]:
                if member in self._members:
                    member.outbox.put_now(frames)
                    member.sent = cursor
            await asyncio.sleep(0)

    def _admit_waiting(self) -> None:
        """Send them the little that has come since they were at the end; then they are where the audience is."""
        waiting, self._waiting = self._waiting, {}
        for member, (subscription, admitted) in waiting.items():
            if not admitted.done():
                admitted.set_result(member.outbox.is_ready and self._admit(member, subscription))

    def _admit(self, member: Member, subscription: Subscription) -> bool:
        """False if there is more than is written at once, so that the member has to go on alone."""
        notes, frames = self._audiences.frames.rest(subscription)
        if notes:
            member.outbox.put(frames)
            member.sent = subscription.cursor
            self._audiences.metrics.count_notifications(len(notes))
        if not subscription.is_exhausted:
            return False
        subscription.close()
        self._members[member] = None
        return True

    async def _pause(self) -> None:
        seconds = min(len(self._members) * _PAUSE_SECONDS_A_MEMBER, _LONGEST_PAUSE_SECONDS)
        if seconds >= _SHORTEST_PAUSE_SECONDS:
            await asyncio.sleep(seconds)

    def _end(self) -> None:
        """Whoever is left goes on alone."""
        self._audiences.forget(self, self._subscription.source)
        self._subscription.close()
        for _, admitted in self._waiting.values():
            if not admitted.done():
                admitted.set_result(False)
        members, self._members = self._members, {}
        for member in members:
            member.go_alone(self._subscription.fork(after=member.sent))
