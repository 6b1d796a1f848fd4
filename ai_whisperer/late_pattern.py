"""Regular expressions that are compiled when they are first used: all of them together would hold up each start."""

from __future__ import annotations

import re
from typing import Any, cast


def late_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` returns, as far as its methods are called. A mistake in it shows at the first use."""
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))


class _LatePattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        """Is asked once for each name: then it is there."""
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)
        return found
