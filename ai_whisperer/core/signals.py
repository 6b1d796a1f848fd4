"""What may be an event."""

from __future__ import annotations

from typing import Any

import msgspec

from ai_whisperer.core.text import check_text
from ai_whisperer.errors import InvalidInputError, TooLargeError

MAX_NAME_BYTES = 200
_MAX_DATA_BYTES = 256 << 10


def check_event_name(name: str) -> None:
    """Raise `InvalidInputError` unless the name can be that of an event. Any name nobody knows yet is fine."""
    check_text("event name", name, max_bytes=MAX_NAME_BYTES)
    if not name.strip() or not name.isprintable() or name == "*":
        raise InvalidInputError(f"{name!r} cannot name an event: use printable characters, for instance 'data_ready'.")


def check_event(name: str, data: Any) -> None:
    """Raise `InvalidInputError` unless an event of this name with this data can be broadcast."""
    check_event_name(name)
    try:
        encoded = msgspec.json.encode(data)
        encoded.decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"The data of event '{name}' is not JSON: {error}. Nothing was broadcast.") from error
    if len(encoded) > _MAX_DATA_BYTES:
        raise TooLargeError(
            f"The data of event '{name}' has {len(encoded):,} bytes, at most {_MAX_DATA_BYTES:,} are allowed; nothing "
            "was broadcast. Send a reference to it instead."
        )
