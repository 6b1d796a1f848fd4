"""Where a running server can be reached: a file in its data folder tells it to those who may read the folder."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlencode

import msgspec

ADDRESS_FILE = "server.json"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running server can be reached; kept in its data folder for the person who may read it."""

    url: str
    token: str
    pid: int

    @property
    def page(self) -> str:
        """The address for a browser."""
        return f"{self.url}/?{urlencode({'token': self.token})}"


def find_address(data: Path) -> Address | None:
    """Where the server of that data folder can be reached; None if none runs there."""
    try:
        address = msgspec.json.decode((data / ADDRESS_FILE).read_bytes(), type=Address)
        os.kill(address.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    return address
