"""Names of sessions and agents as names of files and folders."""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(rb"[^A-Za-z0-9_.\-]")
_MAX_NAME = 150
_NOTHING = re.compile(r"(?!)")


def file_name(name: str, *, taken: re.Pattern[str] = _NOTHING) -> str:
    """A name for a file or folder that no other name shares, that holds no separator and is not `taken` already."""
    encoded = _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], name.encode(errors="surrogatepass")).decode()
    if not encoded:
        return "%"
    if encoded.startswith(".") or taken.fullmatch(encoded):
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}"
    if len(encoded) <= _MAX_NAME:
        return encoded
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{encoded[:100]}~{digest}"
