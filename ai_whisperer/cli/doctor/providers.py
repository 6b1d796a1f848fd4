"""How the accounts of providers are that the server which runs asks its models through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ai_whisperer.cli.doctor.findings import Finding, ok, warning
from ai_whisperer.cli.doctor.running import asked_of_session
from ai_whisperer.client import Client
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.providers import GateState, ProviderAccount

_CHECK = "Accounts"
_ADVICE = {
    GateState.DOWN: "Requests wait until it is back. Check its status page, and the address.",
    GateState.HELD: "All requests wait until then. Ask the provider for a higher limit, or let fewer loops run.",
}


def check_running_providers(data: Path, session_id: str) -> Iterator[Finding]:
    """One finding for each account that the session of the server that runs has asked."""
    for each in asked_of_session(data, session_id, Client.list_provider_accounts):
        found = f"{each.account}: {told(each)}"
        advice = _ADVICE.get(each.state)
        yield ok(_CHECK, found) if advice is None else warning(_CHECK, found, advice)


def told(account: ProviderAccount) -> str:
    """How the account is, in words."""
    again = "" if account.retry_at is None else f", next request at {moment(account.retry_at)}"
    counts = f"{account.under_way} of {account.allowed} requests under way, {account.waiting} wait"
    reason = f": {account.reason}" if account.reason else ""
    return f"{account.state}, {counts}{again}{reason}"
