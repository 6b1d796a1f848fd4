"""Which calls people were asked about, as the log tells it: what a tool or an agent wants may have changed since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from ai_whisperer.replay.recording.format import Entry

_ASKED = "approval.requested"


class ApprovalsOfLog:
    """What was asked, withdrawn and begun of each call."""

    def __init__(self, entries: Iterable[Entry], is_told: Callable[[int], bool]) -> None:
        """`is_told` says which entries, by their numbers, have come in the replay."""
        self._is_told = is_told
        self._of_call: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.name in (_ASKED, "approval.withdrawn"):
                self._of_call[entry.params["approvalId"]].append(entry)
            elif entry.name == "step.started" and entry.params["kind"] == "tool":
                self._of_call[entry.params["stepId"]].append(entry)

    def was_asked(self, step_id: str) -> bool | None:
        """Whether a person is asked before the call now, or has been; None if the log tells nothing more of it."""
        told = [each for each in self._of_call.get(step_id, ()) if self._is_told(each.seq)]
        if told and told[-1].name == _ASKED:
            return True
        coming = self._of_call.get(step_id, ())[len(told) :]
        return coming[0].name == _ASKED if coming else None
