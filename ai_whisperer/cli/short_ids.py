"""Ids that people have not written to their end: as long as only one begins so, it is meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.errors import InvalidInputError

if TYPE_CHECKING:
    from ai_whisperer.client import Client

_NAMED = 10


async def whole_id(client: Client, kind: IdKind, given: str) -> str:
    """The id that begins so; raises `InvalidInputError` with those that do if there are several.

    Where none does, it is what was given: whoever is asked for it says what there is.
    """
    if not given:
        return given
    return _only(kind, given, await client.find_ids(kind, given, limit=_NAMED + 1))


async def whole_session_id(client: Client, given: str) -> str:
    """The same for a session of the caller."""
    known = sorted(each.id for each in await client.list_sessions())
    return _only("session", given, [each for each in known if each.startswith(given)][: _NAMED + 1])


def _only(kind: str, given: str, found: Sequence[str]) -> str:
    if not found or found[0] == given:
        return given
    if len(found) == 1:
        return found[0]
    more = " and more" if len(found) > _NAMED else ""
    named = ", ".join(found[:_NAMED])
    raise InvalidInputError(f"More than one {kind} id begins with '{given}': {named}{more}. Write more of it.")
