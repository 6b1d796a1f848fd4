"""Which account of a provider a model is asked through: said without the key itself."""

from __future__ import annotations

from hashlib import sha256

from ai_whisperer.domain.providers import Account
from ai_whisperer.models.http.address import Endpoint

_KEYS = ("authorization", "x-api-key")
_DIGITS = 8
_PORTS = (80, 443)


def account_of(provider: str, endpoint: Endpoint) -> Account:
    """The account behind an endpoint."""
    origin = endpoint.origin
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    key = next((endpoint.headers[name] for name in _KEYS if name in endpoint.headers), b"")
    path = endpoint.line.split(b" ", 2)[1].decode().partition("?")[0]
    if "://" in path:  # a request to a proxy names all of the address
        path = "/" + path.partition("://")[2].partition("/")[2]
    address = host if origin.port in _PORTS else f"{host}:{origin.port}"
    return Account(provider=provider, address=address + path.removesuffix("/chat/completions"), key=digest_of(key))


def digest_of(key: bytes) -> str:
    """What tells keys apart and says nothing of them; empty if there is none."""
    return sha256(key).hexdigest()[:_DIGITS] if key else ""
