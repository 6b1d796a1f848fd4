"""Notifications about the accounts of providers."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.notifications.base import OfAgent, Told, notification
from ai_whisperer.domain.providers import GateState


class ProviderTold(Told, frozen=True, kw_only=True):
    who = "The account {account}"

    account: str


@notification(
    "provider.held",
    "[state=down?is down|is not asked by anybody]; the next request is made at {retryAt:time}"
    "[waiting>0?, {waiting:count} wait][: {reason}]",
    level="warning",
)
class ProviderHeld(ProviderTold, frozen=True, kw_only=True):
    """Nobody asks the account until `retry_at`: the provider asks for that, or is down. All requests wait.

    It is told again after a minute at the earliest.
    """

    state: GateState
    retry_at: float
    waiting: int
    reason: str


@notification("provider.opened", "takes requests again")
class ProviderOpened(ProviderTold, frozen=True, kw_only=True):
    """The provider takes requests of the account again; those that wait are made, first a few and then more."""


@notification("model.skipped", "does not ask its model {model}[ until {until:time}]: {reason}", level="warning")
class ModelSkipped(OfAgent, frozen=True, kw_only=True):
    """One of several models of an agent cannot be asked, or refuses its requests: others are asked in its place.

    `until` is when it is asked again; without it that is when it first would be.
    """

    model: str
    reason: str
    until: float | UnsetType = UNSET
