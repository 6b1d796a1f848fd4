"""The base of all records."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all rows. Records hold no cycles, so the garbage collector need not walk them (`gc=False`)."""
