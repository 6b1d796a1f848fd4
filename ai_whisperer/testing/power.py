"""What a disk has after the power was cut: what was synced, and of the rest any part, in any order.

The rules are those that SQLite relies on, and no more:

- A file has what it had when it was last synced. Of what was written since then each sector has or has not reached the
  disk, whatever was written before or after it; a page of several sectors may be torn.
- A file that has grown may have its new size without its new content: zeros or anything else.
- A name in a folder is durable when the folder was synced. A file that was made, deleted or renamed since then may or
  may not be there under that name, however well its content was synced.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

SECTOR_BYTES = 512

_Change = tuple[int, bytes | None]
"""Something written at an offset; without bytes, the file is cut there."""


class WrittenFile:
    """A file: what is durable of it, and what was done to it since."""

    __slots__ = ("_durable", "_since", "size")

    def __init__(self, durable: bytes = b"") -> None:
        self._durable = bytearray(durable)
        self._since: list[_Change] = []
        self.size = len(durable)

    def write(self, offset: int, data: bytes) -> None:
        self._since.append((offset, data))
        self.size = max(self.size, offset + len(data))

    def truncate(self, size: int) -> None:
        self._since.append((size, None))
        self.size = size

    def sync(self) -> None:
        for offset, data in self._since:
            _apply(self._durable, offset, data)
        self._since.clear()

    def after_cut(self, chance: random.Random) -> bytes:
        """What is in the file when the power is back."""
        count = len(self._since)
        mood = chance.choice(("nothing", "all", "in order", "any", "any"))
        if count == 0 or mood == "nothing":
            return bytes(self._durable)
        if mood == "all":
            return self._replayed(lambda _: count, known=count)
        if mood == "in order":
            reached = chance.randint(0, count)
            return self._replayed(lambda _: reached, known=reached, chance=chance)
        likely = chance.random()
        by_sector: dict[int, int] = {}

        def reached_of(sector: int) -> int:
            if sector not in by_sector:
                by_sector[sector] = count if chance.random() < likely else chance.randint(0, count)
            return by_sector[sector]

        return self._replayed(reached_of, known=chance.randint(0, count), chance=chance)

    def _replayed(self, reached: Callable[[int], int], *, known: int, chance: random.Random | None = None) -> bytes:
        """The content if so many changes have reached each sector, and so many the file's size.

        What the size shows and nothing has reached is zeros, or junk if there is a chance.
        """
        content = bytearray(self._durable)
        size = len(content)
        for number, (offset, data) in enumerate(self._since):
            if number < known:
                size = offset if data is None else max(size, offset + len(data))
            if data is None:
                if number < known:
                    _apply(content, offset, None)
                continue
            for start in range(offset - offset % SECTOR_BYTES, offset + len(data), SECTOR_BYTES):
                if number < reached(start // SECTOR_BYTES):
                    first, last = max(start, offset), min(start + SECTOR_BYTES, offset + len(data))
                    _apply(content, first, data[first - offset : last - offset])
        if len(content) < size:
            missing = size - len(content)
            content += chance.randbytes(missing) if chance and chance.random() < 0.5 else bytes(missing)
        del content[size:]
        return bytes(content)


class WrittenFolder:
    """The names in a folder: those that are durable, and what was done since, name by name."""

    def __init__(self, files: Mapping[str, WrittenFile] | None = None) -> None:
        self.files = dict(files or {})
        self._durable = dict(self.files)
        self._since: dict[str, list[WrittenFile | None]] = {}

    def open(self, name: str) -> WrittenFile:
        """The file of that name, which is made if there is none."""
        if name not in self.files:
            self.files[name] = WrittenFile()
            self._since.setdefault(name, []).append(self.files[name])
        return self.files[name]

    def delete(self, name: str) -> None:
        if self.files.pop(name, None) is not None:
            self._since.setdefault(name, []).append(None)

    def sync(self) -> None:
        self._durable = dict(self.files)
        self._since.clear()

    def after_cut(self, chance: random.Random) -> dict[str, bytes]:
        """What is in the folder when the power is back."""
        found = dict(self._durable)
        for name, since in self._since.items():
            reached = chance.randint(0, len(since))
            if reached and (file := since[reached - 1]) is not None:
                found[name] = file
            elif reached:
                found.pop(name, None)
        return {name: file.after_cut(chance) for name, file in found.items()}


class WrittenTree:
    """A folder in a folder that has always been there. Its own name is durable when the outer one was synced."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        """With files, they and their folder are durable; without, the folder is about to be made."""
        self.folder = WrittenFolder({name: WrittenFile(content) for name, content in (files or {}).items()})
        self._is_named = files is not None

    def sync_outer(self) -> None:
        self._is_named = True

    def after_cut(self, chance: random.Random) -> dict[str, bytes] | None:
        """What is in the folder when the power is back; None if the folder is not there."""
        if not self._is_named and chance.random() < 0.5:
            return None
        return self.folder.after_cut(chance)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content += bytes(offset - len(content))
    content[offset : offset + len(data)] = data
