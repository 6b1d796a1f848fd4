"""Notifications about agents that wait for the answers of others."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.notifications.base import OfStep, notification


class OfSwitch(OfStep, frozen=True, kw_only=True):
    to_agent: str
    mail_id: str


@notification("switch.began", "asked {@toAgent} and waits for the answer[depth>1? (depth {depth})]")
class SwitchBegan(OfSwitch, frozen=True, kw_only=True):
    """An agent asked another and waits for the answer."""

    depth: int
    deadline_at: float


@notification("switch.ended", "no longer waits for {@toAgent}: {outcome:words}")
class SwitchEnded(OfSwitch, frozen=True, kw_only=True):
    """An agent no longer waits for another's answer."""

    outcome: str
    reply_id: str | UnsetType = UNSET
