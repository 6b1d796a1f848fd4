"""What may be an event."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ai_whisperer.core.text import check_text
from ai_whisperer.errors import InvalidInputError, TooLargeError

MAX_NAME_BYTES = 200
_MAX_DATA_BYTES = 256 << 10
_MAX_DEPTH = 100


def check_event_name(name: str) -> None:
    """Raise `InvalidInputError` unless the name can be that of an event. Any name nobody knows yet is fine."""
    check_text("event name", name, max_bytes=MAX_NAME_BYTES)
    if not name.strip() or not name.isprintable() or name == "*":
        raise InvalidInputError(f"{name!r} cannot name an event: use printable characters, for instance 'data_ready'.")


def check_depth(data: Any, levels: int = _MAX_DEPTH) -> None:
    """Raise `ValueError` if the data is nested deeper than can be read again wherever it is put."""
    if levels < 0:
        raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")
    within = data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ()
    for each in within:
        check_depth(each, levels - 1)


def check_event_data(data: Any) -> None:
    """Raise `InvalidInputError` unless this can go along with an event."""
    try:
        check_depth(data)
        json.dumps(data, allow_nan=False)  # msgspec writes what is not a number as null
        size = len(msgspec.json.encode(data).decode().encode())
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"The data of an event must be JSON: {error}. Nothing was changed.") from error
    if size > _MAX_DATA_BYTES:
        raise TooLargeError(
            f"The data of an event has {size:,} bytes, at most {_MAX_DATA_BYTES:,} are allowed; nothing was changed. "
            "Send a reference to it instead."
        )
