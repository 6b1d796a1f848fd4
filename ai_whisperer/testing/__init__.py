"""For tests of programs that use agents: a team in virtual time, a seeded event loop, a real HTTP model server.

What most tests need is here: `Team`, and `call` and `calls` for what its models say. With pytest there is the fixture
`team`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ai_whisperer.testing.team import Team
    from ai_whisperer.testing.words import call, calls

__all__ = ["Team", "call", "calls"]

_MODULES = {"Team": "team", "call": "words", "calls": "words"}


def __getattr__(name: str) -> Any:
    """Load what is asked for, and nothing before: pytest loads this package in every run."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
