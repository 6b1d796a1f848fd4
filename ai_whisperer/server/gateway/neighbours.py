"""The other nodes: which of them has which session, as far as that is known here, and the links to them."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ai_whisperer.client.dialing import UnreachableError
from ai_whisperer.domain.nodes import Seen
from ai_whisperer.errors import SessionElsewhereError, WhispererError
from ai_whisperer.server.gateway.link import NodeLink

_KNOWN_PLACES = 10_000


class Place(NamedTuple):
    """A node, and where it is reached."""

    node: str
    address: str


class Neighbours:
    """Remembers where sessions were found. It may be wrong: the node there says so, and then it is forgotten."""

    def __init__(self, secret: str, *, certificate: str | None) -> None:
        """`certificate` is a file with a certificate to trust beside those that the machine trusts."""
        self._secret = secret
        self._certificate = certificate
        self._places: dict[str, Place] = {}
        self._links: dict[Place, NodeLink] = {}
        self._opening: dict[Place, asyncio.Task[NodeLink]] = {}

    def place_of(self, session_id: str) -> Place | None:
        return self._places.get(session_id)

    def learn(self, session_id: str, elsewhere: SessionElsewhereError) -> Place:
        """Remember which node has the session; raises the error if that one cannot be reached."""
        place = Place(str(elsewhere.data.get("node", "")), str(elsewhere.data.get("address", "")))
        if not place.address:
            raise elsewhere
        if len(self._places) >= _KNOWN_PLACES:
            self._places.clear()
        self._places[session_id] = place
        return place

    def forget(self, session_id: str) -> None:
        self._places.pop(session_id, None)

    async def link(self, place: Place) -> NodeLink:
        """The link to the node; raises `UnreachableError`."""
        known = self._links.get(place)
        if known is not None and known.is_open:
            return known
        opening = self._opening.get(place)
        if opening is None:
            opening = asyncio.create_task(self._opened(place), name=f"link to {place.node}")
            self._opening[place] = opening
            opening.add_done_callback(lambda _: self._opening.pop(place))
        return await asyncio.shield(opening)

    def seen(self, seen: Seen) -> None:
        """Break the links to nodes that are gone: one that is frozen would keep those who asked it waiting."""
        living = {Place(each.name, each.address) for each in seen.nodes}
        for place, link in list(self._links.items()):
            if place not in living:
                link.drop()
            if not link.is_open:
                del self._links[place]

    @property
    def links(self) -> int:
        """How many there are."""
        return sum(each.is_open for each in self._links.values())

    async def close(self) -> None:
        for opening in self._opening.values():
            opening.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        await asyncio.gather(*(each.close() for each in self._links.values()))

    async def _opened(self, place: Place) -> NodeLink:
        try:
            link = await NodeLink.open(place.node, place.address, self._secret, certificate=self._certificate)
        except WhispererError as error:
            raise UnreachableError(error.message) from error
        self._links[place] = link
        return link
