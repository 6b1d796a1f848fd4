"""What comes from outside in a replay: inputs, answers and results, in the order in which they were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ai_whisperer.replay.recording.format import Input, Recording, Reply, Result
from ai_whisperer.replay.recording.inputs import CLOSE, OPEN

Event = Input | Reply | Result


def in_order(recording: Recording) -> Sequence[Event]:
    """All that came from outside. What was under way to the end is not among it."""
    events: list[Event] = [*recording.inputs]
    events += [reply for reply in recording.replies if reply.seq]
    events += [result for result in recording.results if result.seq]
    events.sort(key=lambda event: event.seq)
    return events


def deaths_of(recording: Recording) -> list[int]:
    """Before which entries a process died. The last one ends before what is not in the recording."""
    ends = [each for each in recording.inputs if each.call in (OPEN, CLOSE)]
    in_order = {after.seq for before, after in pairwise(ends) if before.call == CLOSE}
    return [*(each.seq for each in ends if each.call == OPEN and each.seq not in in_order), recording.header.last]


def name_of(event: Reply | Result) -> str:
    """What whoever waits for it waits under."""
    return f"{event.key}#{event.attempt}" if isinstance(event, Reply) else event.key
