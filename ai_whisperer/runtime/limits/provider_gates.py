"""The accounts of providers as one session knows them: its limit for them, what it is told of them, what it shows."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.domain.notifications.providers import ProviderHeld, ProviderOpened, ProviderTold
from ai_whisperer.domain.providers import Account, GateState, ProviderAccount
from ai_whisperer.runtime.limits.provider_turns import SharedGate, gate_of
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.session.kernel import Kernel

_LIMIT = "max_requests_per_account"
_QUIET_SECONDS = 60.0
"""That an account is held in the same way is told again after so long."""


_SHUT = (GateState.HELD, GateState.DOWN)


class _Told(NamedTuple):
    """That an account lets nobody in, as it was told last, and whether that is still how it was told last."""

    state: GateState
    at: float
    is_held: bool = True


class ProviderGates:
    """The gates of the accounts that the session has asked."""

    def __init__(self, kernel: Kernel, stated: StatedLimits, reached: ReachedLimits) -> None:
        self._kernel = kernel
        self._stated = stated
        self._reached = reached
        self._gates: dict[Account, SharedGate] = {}
        self._told: dict[Account, _Told] = {}

    @property
    def most(self) -> int:
        """How many requests to one account may be under way beside one of this session; 0 if that is found out."""
        return self._stated.whole.max_requests_per_account

    def gate(self, account: Account) -> SharedGate:
        gate = self._gates.get(account)
        if gate is None:
            gate = self._gates[account] = gate_of(account, self._kernel.event_loop)
            gate.listeners[self] = self._tell
        return gate

    def accounts(self) -> list[ProviderAccount]:
        """The accounts that the session has asked, as they are now."""
        return [self._shown(gate) for gate in self._gates.values()]

    def waits(self, shared: SharedGate) -> None:
        """A request of the session has to wait for its turn: that is announced, now and then."""
        shown = self._shown(shared)
        if shown.state not in _SHUT:  # else it was told
            self._reached.tell_alone(_reached(shown, used=shown.under_way, most=shown.allowed))

    def look_again(self) -> None:
        """The limits have changed."""
        for gate in self._gates.values():
            gate.look_again()

    def close(self) -> None:
        """The session is told nothing any more."""
        for gate in self._gates.values():
            gate.listeners.pop(self, None)

    def _tell(self, shared: SharedGate) -> None:
        if self._kernel.closing or self._kernel.log.failure is not None:
            return
        shown, now = self._shown(shared), self._kernel.clock.now()
        last = self._told.get(shared.account)
        if shown.state not in _SHUT:
            if last is None or not last.is_held:
                return
            self._told[shared.account] = last._replace(is_held=False)
            self._submit(ProviderOpened(account=shown.account))
        elif last is not None and last.state is shown.state and now < last.at + _QUIET_SECONDS:
            return
        else:
            self._told[shared.account] = _Told(shown.state, now)
            retry_at = now if shown.retry_at is None else shown.retry_at
            held = ProviderHeld(
                account=shown.account,
                state=shown.state,
                retry_at=retry_at,
                waiting=shown.waiting,
                reason=shown.reason,
            )
            seconds = max(shared.gate.held_until - shared.now(), 0.0)
            wanted = shown.under_way + shown.waiting
            self._submit(held, _reached(shown, used=wanted, most=0, retry_after_seconds=seconds))

    def _submit(self, told: ProviderTold, reached: LimitReached | None = None) -> None:
        decision = self._kernel.decide("provider")
        decision.tell(told)
        if reached is not None:
            self._reached.tell(decision, reached)
        decision.submit()

    def _shown(self, shared: SharedGate) -> ProviderAccount:
        gate, now, clock = shared.gate, shared.now(), self._kernel.clock
        is_held = gate.held_until > now
        return ProviderAccount(
            account=shared.account.id,
            provider=shared.account.provider,
            state=gate.state,
            allowed=min(int(gate.allowed), self.most) if self.most else int(gate.allowed),
            under_way=gate.under_way,
            waiting=gate.waiting,
            retry_at=clock.shown(clock.now() + gate.held_until - now) if is_held else None,
            reason=gate.reason,
            requests=gate.requests,
            refusals=gate.refusals,
            outages=gate.outages,
        )


def _reached(
    shown: ProviderAccount, *, used: int, most: int, retry_after_seconds: float | UnsetType = UNSET
) -> LimitReached:
    """That requests to the account have to wait, since no more than `most` may be under way now."""
    return LimitReached(
        scope=LimitScope.SERVER,
        limit=_LIMIT,
        action=LimitAction.WAITING,
        used=used,
        most=most,
        agent_id=None,
        task_id=None,
        retry_after_seconds=retry_after_seconds,
        account=shown.account,
    )
