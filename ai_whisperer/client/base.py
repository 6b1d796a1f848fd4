"""What all calls of the client have in common: how they are sent, and how agents and tasks are named."""

from __future__ import annotations

from typing import TypeVar

from ai_whisperer.client.hub import Hub
from ai_whisperer.core.paging import can_be_id
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import InvalidInputError, UnknownTaskError
from ai_whisperer.protocol.agents import AgentDetails
from ai_whisperer.protocol.method import Effect, Method, Params
from ai_whisperer.session_api import TaskRef

AgentRef = str | AgentStatus | AgentDetails
"""An agent: its id, any of its names, or what a method returned about it."""

P = TypeVar("P", bound=Params)
R = TypeVar("R")


class ClientBase:
    """A session on a server."""

    def __init__(self, hub: Hub, session_id: str) -> None:
        self._hub = hub
        self._session_id = session_id

    @property
    def session_id(self) -> str:
        return self._session_id

    async def _call(self, method: Method[P, R], params: P) -> R:
        """Send a method. If the answer is lost it is sent again, unless it might then happen twice."""
        main = self._hub.main
        return await (main.do if method.effect is Effect.ACTS else main.ask)(method, params)

    def _new_id(self) -> str:
        """An id that nobody else has."""
        return self._hub.ids.new()

    def _task_id(self, task: TaskRef) -> str:
        task_id = task.id if isinstance(task, TaskRecord) else task
        if not can_be_id(task_id):
            raise UnknownTaskError(
                f"There is no task {task_id!r} in session '{self._session_id}'. "
                "List its tasks (`whisperer tasks`), or name another session."
            )
        return task_id


def agent_name(agent: AgentRef) -> str:
    """How the agent is called; raises `InvalidInputError`."""
    if isinstance(agent, AgentStatus | AgentDetails):
        return agent.agent_id
    if not isinstance(agent, str):
        raise InvalidInputError(f"Name an agent by its id or its handle, not by {type(agent).__name__}.")
    return agent
