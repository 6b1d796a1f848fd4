"""Accounts of providers: what all loops of a process ask models through."""

from __future__ import annotations

from enum import StrEnum

from ai_whisperer.domain.record import Record


class Account(Record, frozen=True, kw_only=True):
    """Whose limits a request counts against: the provider, its address, and a digest of the key, if there is one."""

    provider: str
    address: str = ""
    key: str = ""

    @property
    def id(self) -> str:
        """The account in words, without anything secret."""
        key = f" (key {self.key})" if self.key else ""
        return f"{self.provider} at {self.address}{key}" if self.address else f"{self.provider}{key}"


class GateState(StrEnum):
    """`limited`: requests wait for others to end. `held`: nobody begins, since the provider asks for that.

    `down`: an outage, in which one request at a time tries whether the provider is back.
    """

    OPEN = "open"
    LIMITED = "limited"
    HELD = "held"
    DOWN = "down"


class ProviderAccount(Record, frozen=True, kw_only=True):
    """The gate of an account as it is now, for all sessions of the process together.

    `allowed` is how many requests may be under way at once, as far as that was found out. `retry_at` is when the next
    one is made if none is now, and `reason` what the provider said. The counts are since the process began.
    """

    account: str
    provider: str
    state: GateState
    allowed: int
    under_way: int
    waiting: int
    retry_at: float | None = None
    reason: str = ""
    requests: int = 0
    refusals: int = 0
    outages: int = 0
