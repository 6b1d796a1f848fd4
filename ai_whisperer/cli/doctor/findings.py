"""What a check has found."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """`warning`: it works, but not as one might expect. `problem`: something will not work."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, how it is, and what to do if it is not well."""

    check: str
    level: Level
    found: str
    advice: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, level=Level.OK, found=found)


def warning(check: str, found: str, advice: str = "") -> Finding:
    return Finding(check=check, level=Level.WARNING, found=found, advice=advice)


def problem(check: str, found: str, advice: str) -> Finding:
    return Finding(check=check, level=Level.PROBLEM, found=found, advice=advice)
