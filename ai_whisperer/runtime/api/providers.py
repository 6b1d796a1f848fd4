"""The accounts of providers, as people are shown them."""

from __future__ import annotations

from ai_whisperer.domain.providers import ProviderAccount
from ai_whisperer.runtime.api.mcp import SessionMcp


class SessionProviders(SessionMcp):
    """The part of the session manager that shows the accounts of providers."""

    def list_provider_accounts(self) -> list[ProviderAccount]:
        return self._session.gates.accounts()
