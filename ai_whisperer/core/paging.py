"""What callers may give to name something, or to read a part of something: ids and pages."""

from __future__ import annotations

from ai_whisperer.domain.sessions import IdKind
from ai_whisperer.errors import InvalidInputError

_LAST_POSITION = 2**62
_LONGEST_PAGE = 1_000_000
_MAX_ID_CHARACTERS = 200


def checked_limit(limit: int) -> int:
    """How many to read, if that makes sense; raises `InvalidInputError`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _LONGEST_PAGE:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_LONGEST_PAGE:,}.")
    return limit


def checked_position(after: int) -> int:
    """After which number to read on, if that makes sense; raises `InvalidInputError`."""
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after < _LAST_POSITION:
        raise InvalidInputError("after must be a whole number from 0 on: the number of what was read last.")
    return after


def checked_id(given: str) -> str:
    """The id, if a caller may give it; raises `InvalidInputError`."""
    if not isinstance(given, str):
        raise InvalidInputError(f"An id must be text, not {type(given).__name__}.")
    if not given.strip() or len(given) > _MAX_ID_CHARACTERS or not given.isprintable() or "~" in given:
        raise InvalidInputError(
            f"{given[:50]!r} cannot be an id: use 1 to {_MAX_ID_CHARACTERS} printable characters, without '~'."
        )
    return given


def checked_session_id(given: str) -> str:
    """The id, if a new session may have it; raises `InvalidInputError`. It stands in the addresses of pages."""
    checked_id(given)
    if not {".", ".."}.isdisjoint(given.replace("\\", "/").split("/")):
        raise InvalidInputError(
            f"{given[:50]!r} is a path, and cannot be the id of a session: its page could not be opened. Give it a "
            "name such as 'report'; nothing was made."
        )
    return given


def can_be_id(given: object) -> bool:
    """Whether something could be the id of something kept: text, and such that can be written down."""
    if not isinstance(given, str) or "\0" in given:
        return False
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_kind(given: IdKind | str) -> IdKind:
    """What an id is of; raises `InvalidInputError` with the kinds that there are."""
    try:
        return IdKind(given)
    except ValueError as error:
        raise InvalidInputError(f"There are no ids of the kind {given!r}. Kinds: {', '.join(IdKind)}.") from error
