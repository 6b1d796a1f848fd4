"""What one look at the search path found, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_

import msgspec

from ai_whisperer.core.addresses import normalized
from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.drafts import Draft
from ai_whisperer.templates.folders import TemplateFile


class Found(msgspec.Struct, frozen=True):
    """A file, and how far down the search path it was found."""

    file: TemplateFile
    position: int

    @property
    def draft(self) -> Draft:
        if isinstance(self.file.content, TemplateError):
            raise TemplateError(self.file.content.message)
        return self.file.content


class Shelf:
    """The files of all folders, in the order of the search path. It does not change.

    `further` leads from further names (`display_name`, `aliases`) to the templates that have them; whoever needs it
    makes it once.
    """

    def __init__(self, files: Sequence[Sequence[TemplateFile]]) -> None:
        self._files = files
        self._by_name: dict[str, list[Found]] = {}
        self.further: dict[str, list[Found]] | None = None
        for found in self:
            self._by_name.setdefault(normalized(found.file.name), []).append(found)
        self._by_name.pop("", None)  # folders that cannot be looked at

    def __iter__(self) -> Iterator[Found]:
        for position, files in enumerate(self._files):
            yield from (Found(file, position) for file in files)

    def is_of(self, files: Sequence[Sequence[TemplateFile]]) -> bool:
        """Whether these are the same files, read at the same time."""
        pairs = zip(self._files, files, strict=True)
        return all(len(known) == len(now) and all(map(is_, known, now)) for known, now in pairs)

    def first(self, name: str, *, below: int = -1) -> Found | None:
        """The first file with that normalized name, further down the search path than `below`."""
        return next((each for each in self._by_name.get(name, ()) if each.position > below), None)

    def firsts(self) -> list[Found]:
        """The first file of each name, by name."""
        return [self._by_name[name][0] for name in sorted(self._by_name)]
