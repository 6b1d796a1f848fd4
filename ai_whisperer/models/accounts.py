"""Which account of a provider a model is asked through: said without the key itself.

Whoever asks it, our own client or the library, and by whichever of its interfaces: it is one account.
"""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import urlsplit

from ai_whisperer.domain.providers import Account
from ai_whisperer.models.http.address import Endpoint

_KEYS = ("authorization", "x-api-key")
_DIGITS = 8
_PORTS = (None, 80, 443)
_INTERFACES = ("-chat", "-responses")
"""What the prefix of a model ends with that says by which interface of its provider it is asked."""
_PATHS = ("/chat/completions", "/messages")
"""What comes after the address of a provider in our own requests."""


def account_of(prefix: str, endpoint: Endpoint) -> Account:
    """The account behind an endpoint of our own client."""
    origin = endpoint.origin
    line = next((endpoint.headers[name] for name in _KEYS if name in endpoint.headers), b"")
    path = endpoint.line.split(b" ", 2)[1].decode().partition("?")[0]
    if "://" in path:  # a request to a proxy names all of the address
        path = "/" + path.partition("://")[2].partition("/")[2]
    for ending in _PATHS:
        path = path.removesuffix(ending)
    key = line.partition(b":")[2].strip().removeprefix(b"Bearer ")
    return _account(prefix, origin.host, origin.port, path, key)


def account_at(prefix: str, url: str, key: str) -> Account:
    """The account at an address, with the key for it, if there is one."""
    address = urlsplit(url)
    return _account(prefix, address.hostname or "", address.port, address.path, key.encode())


def _account(prefix: str, host: str, port: int | None, path: str, key: bytes) -> Account:
    provider = prefix
    for interface in _INTERFACES:
        provider = provider.removesuffix(interface)
    named = f"[{host}]" if ":" in host else host
    address = (named if port in _PORTS else f"{named}:{port}") + path.rstrip("/")
    return Account(provider=provider, address=address, key=sha256(key).hexdigest()[:_DIGITS] if key else "")
