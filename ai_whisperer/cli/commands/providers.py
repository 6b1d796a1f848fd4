"""`whisperer providers`: the accounts that models are asked through."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from ai_whisperer.cli.calling import Connected, command
from ai_whisperer.cli.output import Column
from ai_whisperer.core.moments import moment
from ai_whisperer.domain.providers import ProviderAccount


def register(app: typer.Typer) -> None:
    command(app, providers)


async def providers(call: Connected) -> None:
    """Show the accounts of providers: how many requests are under way, who waits, and which provider is down.

    All sessions of the server share them. How many requests may be under way at once is found out; the limit
    max_requests_per_account says how many at most.
    """
    accounts = await call.client.list_provider_accounts()
    call.output.table(accounts, ACCOUNTS, empty="No provider was asked yet since the server was started.")


ACCOUNTS: Sequence[Column[ProviderAccount]] = (
    Column("ACCOUNT", lambda each: each.account, whole=True),
    Column("STATE", lambda each: each.state),
    Column("UNDER WAY", lambda each: f"{each.under_way} of {each.allowed}", right=True),
    Column("WAIT", lambda each: str(each.waiting), right=True),
    Column("NEXT", lambda each: moment(each.retry_at)),
    Column("REQUESTS", lambda each: f"{each.requests:,}", right=True),
    Column("REFUSED", lambda each: f"{each.refusals:,}", right=True),
    Column("OUTAGES", lambda each: f"{each.outages:,}", right=True),
    Column("REASON", lambda each: each.reason),
)
