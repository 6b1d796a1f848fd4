"""The methods `providers.*`: the accounts of providers that agents ask their models through."""

from __future__ import annotations

import msgspec

from ai_whisperer.domain.providers import ProviderAccount
from ai_whisperer.protocol.method import Effect, InSession, Method


class ProviderAccountList(msgspec.Struct, frozen=True):
    """Accounts, in the order in which they were first asked."""

    accounts: list[ProviderAccount]


class ListProviderAccounts(InSession, frozen=True, kw_only=True):
    """The accounts of providers that the session has asked: how many requests are under way, and who waits."""


LIST_PROVIDER_ACCOUNTS = Method(
    "providers.list", ListProviderAccounts, ProviderAccountList, "list_provider_accounts", Effect.READS
)
