"""Tags: words that people give nodes, and that sessions need of the node which has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ai_whisperer.choices import nearest
from ai_whisperer.domain.nodes import MOST_TAGS, TAG
from ai_whisperer.errors import InvalidInputError

_IS_TAG: Final = re.compile(TAG).match


def checked_needs(given: Any) -> tuple[str, ...]:
    """The tags in order, each once; raises `InvalidInputError`."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInputError(f"The needs {str(given)[:80]!r} are no list. Give a list of tags, such as ['gpu'].")
    tags = list(given)
    for tag in tags:
        if not isinstance(tag, str) or _IS_TAG(tag) is None:
            raise InvalidInputError(
                f"{str(tag)[:80]!r} cannot be a tag. A tag begins with a letter or digit and has up to 64 letters, "
                "digits, '.', '_', '-' or ':'; nothing was changed."
            )
    needs = tuple(sorted(set(tags)))
    if len(needs) > MOST_TAGS:
        raise InvalidInputError(f"A session needs {MOST_TAGS} tags at most, not {len(needs)}. Nothing was changed.")
    return needs


def having(needs: Sequence[str], nodes: Mapping[str, Collection[str]]) -> list[str]:
    """The names of those nodes that have all these tags."""
    return [name for name, tags in nodes.items() if set(needs) <= set(tags)]


def nobody_has(needs: Sequence[str], nodes: Mapping[str, Collection[str]]) -> str:
    """What is said if none of the nodes that take sessions, with their tags, has what a session needs."""
    has = "; ".join(f"'{name}' has {listed(tags)}" for name, tags in nodes.items()) or "there is none"
    known = {tag for tags in nodes.values() for tag in tags}
    guesses = (nearest(tag, known) for tag in needs if tag not in known)
    meant = "".join(f" Did you mean '{guess}'?" for guess in guesses if guess)
    flags = " ".join(f"--tags {tag}" for tag in needs)
    return (
        f"no node that takes sessions has {listed(needs)} ({has}).{meant} Start one with it (whisperer serve {flags}), "
        "or let the session need others (whisperer sessions needs)."
    )


def listed(tags: Iterable[str]) -> str:
    """The tags in words."""
    named = [f"'{tag}'" for tag in sorted(tags)]
    if not named:
        return "no tags"
    return f"the tag {named[0]}" if len(named) == 1 else f"the tags {', '.join(named)}"
