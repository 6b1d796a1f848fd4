"""One task or one workflow from beginning to end: a server for it, what it says on the way, what has come of it."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from ai_whisperer.cli.calling import Call
from ai_whisperer.cli.connecting import connected
from ai_whisperer.cli.model_choice import choose_model
from ai_whisperer.cli.racing import first_of
from ai_whisperer.cli.screen import Screen
from ai_whisperer.cli.workflows.guide import Order, Workflow
from ai_whisperer.client import Client
from ai_whisperer.clock import SystemClock, TimedIds
from ai_whisperer.errors import (
    ConnectionLostError,
    DefinitionError,
    NotFoundError,
    StateError,
    UnknownAgentError,
    WhispererError,
)
from ai_whisperer.records import AgentState, TaskRecord, TaskState
from ai_whisperer.server.serving import running
from ai_whisperer.settings import LoadedSettings
from ai_whisperer.tools.function import Tool

_WELL = (TaskState.COMPLETED, TaskState.CONTINUED)
_WAY_OUT = {AgentState.PAUSED: "resume", AgentState.SLEEPING: "wake", AgentState.STOPPED: "start"}
_TITLE_CHARACTERS = 100


class Outcome(NamedTuple):
    """What has come of it: the answer for the person, what went wrong if something did, and all of it for programs."""

    answer: str
    failures: Sequence[str]
    record: dict[str, Any]


class AnyServer(NamedTuple):
    """A client of some server. `config` is what new agents must have for the model that was asked for."""

    client: Client
    config: dict[str, Any]


@asynccontextmanager
async def any_server(call: Call, tools: Iterable[Tool] = ()) -> AsyncIterator[AnyServer]:
    """The server that was named or that runs in the data folder, else one with these tools that ends with the block."""
    values = call.settings.values
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(connected(values))
        except ConnectionLostError:
            if values.url is not None:
                raise
        else:
            yield AnyServer(client, {"model": values.model} if is_flag(call.settings, "model") else {})
            return
        choice = await asyncio.to_thread(choose_model, call.settings, os.environ)
        if not call.output.as_json:
            call.output.note(choice.told)
        own = replace(values, host="127.0.0.1", port=0, tls_certificate=None, tls_key=None, model=choice.for_workflows)
        server = await stack.enter_async_context(running(own, tools=tools))
        address = server.address
        client = Client(address.url, address.token, session_id=values.session)
        yield AnyServer(await stack.enter_async_context(client), {})


def is_flag(settings: LoadedSettings, name: str) -> bool:
    """Whether the setting was given for this one command."""
    return settings.sources[name].startswith("flag")


class TemplateRun:
    """One task for the agent that is called like a template, in a conversation of its own."""

    def __init__(self, server: AnyServer, name: str, prompt: str, *, timeout_seconds: float | None) -> None:
        self._client = server.client
        self._config = server.config
        self._name = name
        self._prompt = prompt
        self._timeout_seconds = timeout_seconds
        self._task_id = TimedIds(SystemClock(), random.SystemRandom()).new()

    async def play(self, screen: Screen) -> Outcome:
        """Give the task and follow it to its end."""
        agent_id = await self._agent()
        async with self._client.events(deltas=True) as notes:
            task = await self._client.send_task(
                agent_id, self._prompt, task_id=self._task_id, timeout_seconds=self._timeout_seconds
            )
            await screen.follow_task(notes, task.id)
        ended = await self._client.wait_task(task)
        answer = "" if ended.result is None else await self._client.answer_of(ended)
        return Outcome(answer, _failures([ended]), {"answer": answer, "task": ended})

    async def cancel(self) -> None:
        """End the task, and everything that it has caused."""
        with suppress(NotFoundError, StateError):
            await self._client.cancel_tree(self._task_id)

    async def _agent(self) -> str:
        """The agent, made of its template if it is not there; raises an error that says how it can take work."""
        try:
            status = await self._client.get_agent_status(self._name)
        except UnknownAgentError:
            template = await self._client.get_template(self._name)
            status = await self._client.create_agent(template.name, self._config or None, template=template.name)
        else:
            if self._config:
                raise StateError(f"{status.agent_id} is there already and keeps its model. Leave --model away.")
        if status.state in _WAY_OUT:
            raise StateError(
                f"{status.agent_id} is {status.state} and takes no work now. Let it: whisperer "
                f"{_WAY_OUT[status.state]} {status.agent_id}"
            )
        return status.agent_id


class WorkflowRun:
    """A workflow of the guide in a session of its own, so that nothing of the user's own is touched."""

    def __init__(self, server: AnyServer, workflow: Workflow, prompt: str, *, timeout_seconds: float | None) -> None:
        self._client = server.client
        self._workflow = workflow
        self._order = Order(prompt, timeout_seconds=timeout_seconds, config=server.config)

    async def play(self, screen: Screen) -> Outcome:
        """Run the workflow and follow what its agents do."""
        title = f"{self._workflow.name}: {self._order.prompt}"
        session = await self._client.create_session(title=title[:_TITLE_CHARACTERS])
        self._client = self._client.session(session.id)
        try:
            async with asyncio.timeout(self._order.timeout_seconds), self._client.events() as notes:
                answer = await first_of(self._workflow.run(self._client, self._order), screen.follow_session(notes))
        except TimeoutError:
            await self.cancel()
            answer = None
        except DefinitionError as error:
            raise self._without_tools() or error from error
        tasks = await self._client.list_tasks(limit=1000)
        failures = _failures(tasks)
        if not answer and not failures:
            failures.append(f"Nothing has come of the workflow '{self._workflow.name}'.")
        record = {"workflow": self._workflow.name, "sessionId": session.id, "answer": answer or "", "tasks": tasks}
        return Outcome(answer or "", failures, record)

    async def cancel(self) -> None:
        """End all tasks of the session."""
        for task in await self._client.list_tasks(limit=1000):
            if not task.state.ended:
                with suppress(NotFoundError, StateError):
                    await self._client.cancel_task(task)

    def _without_tools(self) -> WhispererError | None:
        if not self._workflow.tools:
            return None
        names = ", ".join(tool.name for tool in self._workflow.tools)
        return DefinitionError(
            f"The server that runs lacks what the workflow '{self._workflow.name}' needs ({names}). Stop it, or use "
            "another folder with --data: then the workflow runs in a server of its own."
        )


def _failures(tasks: Sequence[TaskRecord]) -> list[str]:
    """What became of the tasks that did not end well."""
    return [
        f"The task of {task.agent_id} is {task.state}: {task.error.message if task.error else 'no reason was recorded'}"
        for task in tasks
        if task.state not in _WELL
    ]
