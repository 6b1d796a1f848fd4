"""How much something matters in a log."""

from __future__ import annotations

from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
