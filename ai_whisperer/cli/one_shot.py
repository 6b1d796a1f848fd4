"""One task or one workflow from beginning to end: what it says on the way, and what has come of it.

What has been begun can be played again, on another server of the same data folder: it resumes where it was.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from ai_whisperer.cli.any_server import AnyServer
from ai_whisperer.cli.deciding import can_ask, settle
from ai_whisperer.cli.racing import first_of
from ai_whisperer.cli.screen import Screen
from ai_whisperer.cli.telling import way_out
from ai_whisperer.client import Client
from ai_whisperer.domain.attachments import InputPart
from ai_whisperer.domain.clock import SystemClock, TimedIds
from ai_whisperer.errors import (
    DefinitionError,
    NotFoundError,
    StateError,
    UnknownAgentError,
    UnknownTemplateError,
)
from ai_whisperer.examples.workflows import Order, Workflow, troubles_of
from ai_whisperer.protocol.sessions import TemplateDetails

_TITLE_CHARACTERS = 100


class Outcome(NamedTuple):
    """What has come of it: the answer for the person, what went wrong if something did, and all of it for programs."""

    answer: str
    failures: Sequence[str]
    record: dict[str, Any]


class TemplateRun:
    """One task for the agent that is called like a template, in a conversation of its own."""

    def __init__(
        self,
        name: str,
        prompt: str,
        *,
        timeout_seconds: float | None,
        output: dict[str, Any] | None = None,
        parts: Sequence[InputPart] = (),
    ) -> None:
        self._name = name
        self._prompt = prompt
        self._output = output
        self._parts = parts
        self._timeout_seconds = timeout_seconds
        self._task_id = TimedIds(SystemClock(), random.SystemRandom()).new()
        self._agent_id: str | None = None

    async def play(self, server: AnyServer, screen: Screen) -> Outcome:
        """Give the task and follow it to its end."""
        client = server.client
        if self._agent_id is None:
            self._agent_id = await self._agent(client, server.config)
        async with client.events(deltas=True) as notes:
            task = await client.send_task(
                self._agent_id,
                self._prompt,
                task_id=self._task_id,
                timeout_seconds=self._timeout_seconds,
                output=self._output,
                parts=self._parts,
            )
            if not task.state.ended:
                asks = partial(settle, client, screen.output) if can_ask(screen.output) else None
                await screen.follow_task(notes, task, decide=asks)
        ended = await client.wait_task(task)
        answer = "" if ended.result is None else await client.answer_of(ended)
        return Outcome(answer, troubles_of([ended]), {"answer": answer, "task": ended})

    async def cancel(self, server: AnyServer) -> None:
        """End the task, and everything that it has caused."""
        with suppress(NotFoundError, StateError):
            await server.client.cancel_tree(self._task_id)

    async def _agent(self, client: Client, config: dict[str, Any]) -> str:
        """The agent, made of its template if it is not there; raises an error that says how it can take work."""
        try:
            status = await client.get_agent_status(self._name)
        except UnknownAgentError:
            template = await self._template(client)
            status = await client.create_agent(template.name, config or None, template=template.name)
        else:
            if config:
                raise StateError(f"{status.agent_id} already exists and keeps its model. Leave out --model.")
        if (command := way_out(status.state, status.agent_id)) is not None:
            raise StateError(f"{status.agent_id} is {status.state} and takes no work now. To change that: {command}")
        return status.agent_id

    async def _template(self, client: Client) -> TemplateDetails:
        """The template of the name; raises an error that tells the agents, too, since one may have been meant."""
        try:
            return await client.get_template(self._name)
        except UnknownTemplateError as error:
            agents = ", ".join(status.agent_id for status in await client.list_agents())
            raise UnknownTemplateError(f"{error.message} Agents: {agents or 'none'}.") from error


class WorkflowRun:
    """A workflow of the guide in a session of its own, so that nothing of the user's own is touched."""

    def __init__(self, workflow: Workflow, prompt: str, *, timeout_seconds: float | None) -> None:
        self._workflow = workflow
        self._prompt = prompt
        self._timeout_seconds = timeout_seconds
        self._session_id: str | None = None

    async def play(self, server: AnyServer, screen: Screen) -> Outcome:
        """Run the workflow and follow what its agents do."""
        if self._session_id is None:
            title = f"{self._workflow.name}: {self._prompt}"
            self._session_id = (await server.client.create_session(title=title[:_TITLE_CHARACTERS])).id
            screen.tell(f"The session of the workflow is {self._session_id}.")
        client = server.client.session(self._session_id)
        order = Order(self._prompt, timeout_seconds=self._timeout_seconds, config=server.config)
        try:
            async with asyncio.timeout(self._timeout_seconds), client.events() as notes:
                answer = await first_of(self._workflow.run(client, order), screen.follow_session(notes))
        except TimeoutError:
            await self.cancel(server)
            answer = None
        except DefinitionError as error:
            if not self._workflow.tools:
                raise
            names = ", ".join(tool.name for tool in self._workflow.tools)
            raise DefinitionError(
                f"The server that runs lacks what the workflow '{self._workflow.name}' needs ({names}). Stop it, or "
                "use another folder with --data: then the workflow runs in a server of its own."
            ) from error
        tasks = await client.list_tasks(limit=1000)
        failures = troubles_of(tasks)
        if not answer and not failures:
            failures.append(f"The workflow '{self._workflow.name}' produced no result.")
        record = {
            "workflow": self._workflow.name,
            "sessionId": self._session_id,
            "answer": answer or "",
            "tasks": tasks,
        }
        return Outcome(answer or "", failures, record)

    async def cancel(self, server: AnyServer) -> None:
        """End all tasks of the session."""
        if self._session_id is None:
            return
        client = server.client.session(self._session_id)
        for task in await client.list_tasks(limit=1000):
            if not task.state.ended:
                with suppress(NotFoundError, StateError):
                    await client.cancel_task(task)
