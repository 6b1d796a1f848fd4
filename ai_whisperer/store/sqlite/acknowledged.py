"""What the store has acknowledged last, in a small file beside the database: so a loss is found when it is opened.

SQLite cannot tell that something is missing. A write-ahead log that was deleted is an empty one, one that is damaged
ends where the damage begins, and an old database is a good one. So the last notification of a commit is noted in
`whisperer.acknowledged`, some times a second at most: while commits follow each other, and when they pause. It is
written after the commit is on disk and never before, and not synced: it may be behind what is there, but never ahead.

The file has two places that are written in turn, each with a checksum: one that was torn leaves the other.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import msgspec

from ai_whisperer.domain.note import Note
from ai_whisperer.domain.retention import Horizon
from ai_whisperer.store.durable_folders import sync_folder

ACKNOWLEDGED_NAME = "whisperer.acknowledged"
PAUSE_SECONDS = 0.05
"""So long nothing is written after a claim. What was acknowledged meanwhile is written then."""
_PLACE_BYTES = 512
_HEX = 8

_log = logging.getLogger(__name__)


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last notification that was acknowledged; without a number, that there is a database.

    A claim whose loss was accepted says nothing: what is there counts.
    """

    number: int = 0
    session_id: str = ""
    seq: int = 0
    at: float = 0.0
    accepted: bool = False

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return f"notification {self.seq} of session '{self.session_id}' at {when}"


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Claim)


def read_claim(folder: Path) -> Claim | None:
    """What was acknowledged in this folder; None if nobody has noted anything, or it cannot be read."""
    try:
        content = (folder / ACKNOWLEDGED_NAME).read_bytes()
    except OSError:
        return None
    places = [_read(content[start : start + _PLACE_BYTES]) for start in (0, _PLACE_BYTES)]
    return max((each for each in places if each is not None), key=lambda claim: claim.number, default=None)


class Acknowledged:
    """The file, while the database is open. Nothing here raises: without it the store is as good as it was before."""

    def __init__(self, folder: Path, *, synced: bool = True) -> None:
        """The folder is this process's, and its database is what the last claim says or was accepted."""
        last = read_claim(folder)
        self._path = folder / ACKNOWLEDGED_NAME
        self._synced = synced
        self._number = 0 if last is None else last.number
        self._claim = Claim() if last is None or last.accepted else last
        self._last: Note | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._file: int | None = None
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            self._give_up(error)
        if last is None or last.accepted:
            self._write_both()

    def note(self, last: Note, loop: asyncio.AbstractEventLoop) -> None:
        """This is on disk now, and so is all before it."""
        self._last = last
        if self._pause is None:
            self._write_last()
            if PAUSE_SECONDS and self._synced:  # a disk that is simulated has no time of its own
                self._pause = loop.call_later(PAUSE_SECONDS, self._paused, loop)

    def _paused(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pause = None
        if self._last is not None:
            self.note(self._last, loop)

    def _write_last(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            self._number += 1
            self._claim = Claim(number=self._number, session_id=last.session_id, seq=last.seq, at=last.at)
            self._write(self._claim)

    def forget(self, session_ids: Collection[str], horizons: Collection[Horizon] = ()) -> Callable[[], None]:
        """These sessions are about to be deleted, and what is before these horizons: claim nothing of them.

        That is on disk when what this returns was called, which waits for the disk: on any thread, before the commit.
        Nothing may be noted in between.

        What is on disk may be older than what was written last, so both places are written anew.
        """
        self._write_last()
        claim = self._claim
        firsts = {each.session_id: each.first_seq for each in horizons}
        if claim.session_id in session_ids or claim.seq < firsts.get(claim.session_id, 0):
            self._claim = Claim()
        return self._write_both

    def close(self) -> None:
        self._write_last()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._sync()
        if self._file is not None:  # it may have been given up just now
            os.close(self._file)
            self._file = None

    def _write_both(self) -> None:
        for _ in range(2):
            self._number += 1
            self._write(msgspec.structs.replace(self._claim, number=self._number))
        self._sync()

    def _write(self, claim: Claim) -> None:
        if self._file is None:
            return
        place = _place(claim)
        if len(place) > _PLACE_BYTES:
            return  # of a session with so long an id nothing is claimed
        try:
            os.pwrite(self._file, place, claim.number % 2 * _PLACE_BYTES)
        except OSError as error:
            self._give_up(error)

    def _sync(self) -> None:
        if self._file is not None and self._synced:
            try:
                os.fsync(self._file)
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Without the file a loss is not found. One that stayed as it is could claim what is deleted from now on."""
        _log.warning("what is acknowledged can no longer be noted: %s", error)
        if self._file is not None:
            os.close(self._file)
            self._file = None
        with suppress(OSError):
            os.unlink(self._path)
            sync_folder(self._path.parent)  # or a power cut would bring it back


def accept(folder: Path) -> None:
    """Let the next opening take what is there for all there was; raises `OSError`. Nobody may have the folder open."""
    last = read_claim(folder)
    number = 0 if last is None else last.number
    with (folder / ACKNOWLEDGED_NAME).open("wb") as file:
        os.chmod(file.fileno(), 0o600)
        for later in (number + 1, number + 2):
            file.seek(later % 2 * _PLACE_BYTES)
            file.write(_place(Claim(number=later, accepted=True)))
        file.flush()
        os.fsync(file.fileno())


def _place(claim: Claim) -> bytes:
    content = _encode(claim)
    return (b"%08x %b" % (crc32(content), content)).ljust(_PLACE_BYTES - 1) + b"\n"


def _read(place: bytes) -> Claim | None:
    content = place[_HEX + 1 :].rstrip()
    if place[:_HEX] != b"%08x" % crc32(content):
        return None
    try:
        return _decoder.decode(content)
    except msgspec.DecodeError:
        return None
