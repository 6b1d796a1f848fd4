"""Where a running server can be reached: a file in its data folder tells it to those who may read the folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import msgspec

from ai_whisperer.store.folder_lock import ADDRESS_FILE, FolderLock

__all__ = ["ADDRESS_FILE", "Address", "find_address"]


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a running server can be reached; kept in its data folder for the person who may read it.

    `certificate` is the file of the one that it shows, if it has TLS. One that is `temporary` leaves when the work that
    it was started for is done. `in_postgresql` tells that its sessions are kept there, and not in the folder.
    """

    url: str
    token: str
    pid: int
    certificate: str | None = None
    temporary: bool = False
    in_postgresql: bool = False

    @property
    def page(self) -> str:
        """The address for a browser."""
        return f"{self.url}/?{urlencode({'token': self.token})}"


def find_address(data: Path) -> Address | None:
    """Where the server of that data folder can be reached; None if none runs there.

    A server that was killed leaves its address behind, but not the lock on its folder, which another may have now.
    """
    try:
        address = msgspec.json.decode((data / ADDRESS_FILE).read_bytes(), type=Address)
    except (OSError, msgspec.MsgspecError):
        return None
    return address if FolderLock.holder(data) in (str(address.pid), "unknown") else None
