"""Virtual time knows no threads: what the runtime would do in one is done at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ai_whisperer.runtime.agents import attachments as shown_attachments
from ai_whisperer.runtime.agents import folders
from ai_whisperer.runtime.agents import memory as told_memory
from ai_whisperer.runtime.api import attachments, memory
from ai_whisperer.tools.files import changing, remembering
from ai_whisperer.tools.function import CancelSignal

_MODULES = (attachments, changing, folders, memory, remembering, shown_attachments, told_memory)


@pytest.fixture
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(function: Callable[..., Any], values: dict[str, Any], _: CancelSignal) -> Any:
        return function(**values)

    for module in _MODULES:
        monkeypatch.setattr(module, "in_thread", at_once)
