"""Calls that a session has made, found again in a fork of it by what caused them and what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ai_whisperer.core.approvals import digest_of
from ai_whisperer.core.causal_paths import Paths, through
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.forks import Fork
from ai_whisperer.domain.tasks import StepRecord

_NOBODY = -1
"""What people do in the fork was not done in the session: no input has this number."""


def call_digest(tool: str, arguments: str) -> str:
    """What names the tool and what it was called with, in whatever order and with whatever spaces that was written."""
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))
    return digest_of(tool, arguments)


class RecordedCalls:
    """The calls of a session that its fork may make too. It is fed the log of the fork, and so knows its steps."""

    def __init__(self, fork: Fork) -> None:
        self._paths = Paths.restored(fork.paths, fork.made)
        self._paths.input = _NOBODY
        self._results = {(call.key, call.digest): call.result for call in fork.calls}

    def feed(self, name: str, cause: str, params: Mapping[str, Any]) -> None:
        """Take the next entry of the log of the fork."""
        self._paths.feed(name, cause, params)

    def result_of(self, step: StepRecord) -> ToolResult | None:
        """What the call brought in the session, with the ids of the fork; None if it did not make just this call."""
        if step.call is None:
            return None
        digest = call_digest(step.call.name, self._paths.causal(step.call.arguments))
        found = self._results.get((self._paths.key(step.id), digest))
        if found is None:
            return None
        return msgspec.convert(through(self._paths.actual, msgspec.to_builtins(found)), ToolResult)
