"""What one look at the search path found, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_

import msgspec

from ai_whisperer.errors import TemplateError
from ai_whisperer.templates.drafts import Draft
from ai_whisperer.templates.folders import Listing, TemplateFile


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

    def __init__(self, listings: Sequence[Listing]) -> None:
        self._listings = listings
        self.further: dict[str, list[Found]] | None = None

    def __iter__(self) -> Iterator[Found]:
        for position, listing in enumerate(self._listings):
            yield from (Found(file, position) for file in listing.files)

    def is_of(self, listings: Sequence[Listing]) -> bool:
        """Whether these are the same files, read at the same time."""
        return all(map(_are_same, self._listings, listings))

    def first(self, *names: str, below: int = -1) -> Found | None:
        """The first file with that normalized name, or else with the next, below that place in the search path."""
        for name in names:
            for position, listing in enumerate(self._listings[below + 1 :], below + 1):
                if name and name in listing.by_name:
                    return Found(listing.by_name[name], position)
        return None

    def firsts(self) -> list[Found]:
        """The first file of each name, by name."""
        names = sorted({name for listing in self._listings for name in listing.by_name})
        return [found for name in names if (found := self.first(name)) is not None]


def _are_same(known: Listing, now: Listing) -> bool:
    return known is now or (len(known.files) == len(now.files) and all(map(is_, known.files, now.files)))
