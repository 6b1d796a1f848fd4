"""Whether and how Anthropic's models can be reached, as the environment says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

KEY = "ANTHROPIC_API_KEY"


class AnthropicAccess(NamedTuple):
    """What the environment says; each may be empty, not all. Another address may want no key."""

    key: str
    token: str
    url: str


def anthropic_access(environment: Mapping[str, str]) -> AnthropicAccess | None:
    """How to reach the provider; None if there is neither a key nor a token nor another address."""
    names = (KEY, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
    access = AnthropicAccess(*(environment.get(name, "").strip() for name in names))
    return access if any(access) else None
