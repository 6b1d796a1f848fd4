"""Who and what is there now: the agents, the loops that run, the names that mail can be sent to."""

from __future__ import annotations

from typing import Generic, TypeVar

from ai_whisperer.core.addresses import AddressBook
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.runtime.session.roles import Agent, Loop

A = TypeVar("A", bound=Agent)
L = TypeVar("L", bound=Loop)


class LiveRoster(Generic[A, L]):
    """The agents of a session and their running loops.

    `former` is what agents had used that were deleted. `returning` are tasks that are taken up again, on their way into
    the queue. `on_probation`: a suspect runs alone, and nothing else begins (see `life.trials`).
    """

    def __init__(self) -> None:
        self.agents: dict[str, A] = {}
        self.running: dict[str, L] = {}
        self.book = AddressBook()
        self.returning: dict[str, TaskRecord] = {}
        self.on_probation = False
        self.former: AgentTotals | None = None

    def runs(self, loop: Loop) -> bool:
        """Whether this is a loop of this session."""
        return self.running.get(loop.task.id) is loop

    def loop_began(self, loop: L) -> None:
        self.running[loop.task.id] = loop

    def loop_ended(self, task_id: str) -> None:
        del self.running[task_id]
