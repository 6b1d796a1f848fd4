"""Where binary data goes that MCP servers send: into a folder of the agent's own, under its digest."""

from __future__ import annotations

import os

from msgspec.structs import replace

from ai_whisperer.domain.definition import Access
from ai_whisperer.errors import ToolError
from ai_whisperer.tools.files.beneath import DIRECTORY
from ai_whisperer.tools.files.drafts import Target
from ai_whisperer.tools.files.opening import OpenPlace, opened
from ai_whisperer.tools.mcp.binary import Binary
from ai_whisperer.tools.workplace import OWN, OWN_AS_WRITTEN, Workplace

FOLDER = "received"
_MAX_BYTES = 256 << 20
_MAX_FILES = 10_000
_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/svg+xml": ".svg",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "application/pdf": ".pdf",
    "application/zip": ".zip",
    "application/gzip": ".gz",
}


def keep(workplace: Workplace | None, found: Binary) -> str:
    """Write the data to disk unless it is there; returns where it is, or why it is not. Call this in a thread."""
    if workplace is None:
        return "not kept"
    if len(found.data) > workplace.limits.max_file_bytes:
        return f"not kept: at most {workplace.limits.max_file_bytes:,} bytes are (max_file_bytes)"
    path = f"{FOLDER}/{found.digest}{_ENDINGS.get(found.kind, '.bin')}"
    try:
        # Only the own folder: one that was granted may have the same name.
        own = replace(workplace, folders={OWN: workplace.own}, working=OWN)
        with opened(own, path, access=Access.WRITE) as place:
            trouble = _trouble(place, found.data)
    except ToolError as error:
        trouble = error.message
    if trouble is not None:
        return f"not kept: {trouble}"
    return f"kept as {path}" if workplace.working == OWN else f"kept as {OWN_AS_WRITTEN}/{path}"


def _trouble(place: OpenPlace, data: bytes) -> str | None:
    """Write the data; returns why that cannot be done."""
    target = Target(place, makes_folders=True)
    try:
        if target.current is None:
            if not _has_room(place, len(data)):
                return f"'{FOLDER}' is full, delete what is not needed there"
            target.write_draft(data)
            target.add()  # if somebody was first: under this name it is the same data
    finally:
        target.close()
    return None


def _has_room(place: OpenPlace, size: int) -> bool:
    folder = place.open(FOLDER, DIRECTORY)
    try:
        with os.scandir(folder) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
    finally:
        os.close(folder)
    return len(sizes) < _MAX_FILES and sum(sizes) + size <= _MAX_BYTES
