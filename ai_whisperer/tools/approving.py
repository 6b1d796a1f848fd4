"""What a tool says about the calls that a person has to allow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ai_whisperer.errors import InvalidInputError

NeedsApproval = bool | Callable[[Mapping[str, Any]], bool]
"""Whether a person has to allow each call, or a function from the arguments of a call to that."""


def check_needs_approval(stated: NeedsApproval) -> NeedsApproval:
    """What was stated; raises `InvalidInputError` if it is neither a truth value nor a plain function."""
    if not isinstance(stated, bool) and (not callable(stated) or inspect.iscoroutinefunction(stated)):
        raise InvalidInputError(
            "needs_approval must be True, False, or a plain function that takes the arguments of a call as a mapping."
        )
    return stated


def says_yes_is_needed(stated: NeedsApproval, arguments: Mapping[str, Any]) -> bool:
    """Whether a call with these arguments has to be allowed; so it is, too, if that cannot be told."""
    if isinstance(stated, bool):
        return stated
    try:
        return bool(stated(arguments))
    except (Exception, SystemExit):  # noqa: BLE001 - anybody's code: where it fails, a person looks
        return True
