"""Names of sessions and agents as names of files and folders.

They are told apart by any file system: by one that ignores case, one that takes two ways to write a letter for one, and
one on which some names are devices and dots at the end are dropped. So all but small letters, digits, `_`, `-` and `.`
is written as `%` and the code of its bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

_UNSAFE = re.compile(rb"[^a-z0-9_.\-]")
_UNSAFE_BEFORE = re.compile(rb"[^A-Za-z0-9_.\-]")
_MAX_NAME = 150
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def file_name(name: str) -> str:
    """A name for a file or folder that no other name shares and that holds no separator."""
    before = file_name_before(name)
    if "~" in before or before == "%":
        return before  # it ends in a digest, which no other name has
    encoded = _encoded(name, _UNSAFE)
    if encoded.startswith(".") or _DEVICE.fullmatch(encoded):
        encoded = _without_first(encoded)
    if encoded.endswith("."):
        encoded = f"{encoded[:-1]}%2E"
    return encoded if len(encoded) <= _MAX_NAME else _with_digest(_encoded(name, _UNSAFE_BEFORE), name)


def file_name_before(name: str) -> str:
    """The name that a file or folder had in data of earlier versions, in which `A` and `a` were told apart by case."""
    encoded = _encoded(name, _UNSAFE_BEFORE)
    if not encoded:
        return "%"
    if encoded.startswith("."):
        encoded = _without_first(encoded)
    return encoded if len(encoded) <= _MAX_NAME else _with_digest(encoded, name)


def renamed(found: Iterable[str]) -> dict[str, str]:
    """Which of these names of earlier versions are others now."""
    changes: dict[str, str] = {}
    for each in found:
        name = _decoded(each)
        if name is not None and file_name_before(name) == each != file_name(name):
            changes[each] = file_name(name)
    return changes


def _encoded(name: str, unsafe: re.Pattern[bytes]) -> str:
    return unsafe.sub(lambda match: b"%%%02X" % match[0][0], name.encode(errors="surrogatepass")).decode()


def _without_first(encoded: str) -> str:
    """The same with its first letter as a code, if it is not one already."""
    return encoded if encoded.startswith("%") else f"%{ord(encoded[0]):02X}{encoded[1:]}"


def _with_digest(encoded: str, name: str) -> str:
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{encoded[:100]}~{digest}"


def _decoded(found: str) -> str | None:
    try:
        return unquote_to_bytes(found).decode(errors="surrogatepass")
    except UnicodeError:
        return None  # somebody else's
