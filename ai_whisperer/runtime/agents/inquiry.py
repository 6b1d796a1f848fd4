"""What a model is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ai_whisperer.domain.conversation import ToolSpec, Turn


class Inquiry(Struct, frozen=True, kw_only=True):
    """What is asked, and of which models: the agent's own with its conversation, or those that write a summary.

    `models` has their names in the order in which they are asked. `input_tokens` tells how long it is, by an estimate.
    Of a summary nobody is told while it comes. `has_parts` if images or files are among the turns.
    """

    models: tuple[str, ...]
    system: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...]
    settings: Mapping[str, Any]
    input_tokens: Callable[[], int]
    output_tokens: Callable[[], int]
    is_summary: bool = False
    has_parts: bool = False
