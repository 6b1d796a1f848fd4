"""What is outside of a session that goes from node to node: a stale node can do something outside, once."""

from __future__ import annotations

import logging

from ai_whisperer.models.base import ModelRequest
from tests.simulation.hosts.machines import Machine, this_machine
from tests.simulation.world import THINGS, FaultListener, World


def is_over_here() -> bool:
    """Whether this is called on a machine that has ended, or that others took for dead."""
    machine = this_machine()
    return machine is not None and machine.is_over


class SharedWorld(World):
    """What a node asks models after it was taken for dead counts for nothing: it can keep no answer.

    What its tools do counts: none of them may be run again by another node. That they touch things at the same time as
    those of its successor is not excluded.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._touched_on: dict[Machine | None, dict[str, list[str]]] = {}

    def note(self, request: ModelRequest) -> None:
        if not is_over_here():
            super().note(request)

    def touched(self) -> dict[str, list[str]]:
        return self._touched_on.setdefault(this_machine(), {name: [] for name in THINGS})


class SharedListener(FaultListener):
    """What a node says of itself after it was taken for dead is as it should be."""

    def emit(self, record: logging.LogRecord) -> None:
        if not is_over_here():
            super().emit(record)
