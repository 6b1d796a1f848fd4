"""The demo: all workflows of the guide at once on one server, whose plug is pulled in the middle, and all resumes."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ai_whisperer.client import Client
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.steps import StepFinished
from ai_whisperer.errors import ConnectionLostError, WhispererError
from ai_whisperer.examples.account import Account, Evidence, evidence_in, take_account
from ai_whisperer.examples.server_process import ServerProcess
from ai_whisperer.examples.workflows import WORKFLOWS, Order, Workflow

SESSION = "default"
_STEPS_BEFORE_THE_PLUG_IS_PULLED = 20
_PAUSE_SECONDS = 0.2
_LIMIT_SECONDS = 600.0
_AFTER_THE_LIMIT_SECONDS = 30.0
"""What the tasks of the agents may take, and how long their end may take then."""


class Audience(Protocol):
    """Whoever watches."""

    def say(self, sentence: str) -> None:
        """What the demo does."""

    def tell(self, note: Notification) -> None:
        """What the agents do."""

    async def look(self, client: Client) -> None:
        """Look at the agents as they are now."""


async def show(server: ServerProcess, audience: Audience) -> Account:
    """Run the workflows on the server, which is killed and started again in the middle of it."""
    async with Client(server.address.page, session_id=SESSION) as client:
        results, before = await _Performance(client, server, audience).play()
        return await take_account(client, model=server.model, results=results, before=before)


class _Performance:
    """One run of all workflows in one session."""

    def __init__(self, client: Client, server: ServerProcess, audience: Audience) -> None:
        self._client = client
        self._server = server
        self._audience = audience
        self._in_the_middle = asyncio.Event()

    async def play(self) -> tuple[dict[str, str], Evidence | None]:
        """What each workflow has brought, and what was on disk when the plug was pulled.

        Raises the `WhispererError` that keeps the server from continuing or from coming back, and what keeps the
        audience from being told.
        """
        try:
            return await self._play()
        except BaseExceptionGroup as group:
            raise _what_went_wrong(group) from None

    async def _play(self) -> tuple[dict[str, str], Evidence | None]:
        async with asyncio.TaskGroup() as group:
            around = [
                group.create_task(self._listen(), name="what happens"),
                group.create_task(self._watch(), name="the agents"),
                group.create_task(self._guard(), name="the server"),
            ]
            pulling = group.create_task(self._pull_the_plug(), name="the plug")
            working = {each.name: group.create_task(self._persist(each), name=each.name) for each in WORKFLOWS.values()}
            await asyncio.wait(working.values())
            if not self._in_the_middle.is_set():
                pulling.cancel()
            await asyncio.wait([pulling])
            for each in around:
                each.cancel()
        await self._audience.look(self._client)
        results = {name: task.result() for name, task in working.items()}
        return results, None if pulling.cancelled() else pulling.result()

    async def _persist(self, workflow: Workflow) -> str:
        """Run the workflow, again if the server was lost in the middle: what was done is not done twice."""
        order = Order(workflow.prompt, timeout_seconds=_LIMIT_SECONDS)
        try:
            async with asyncio.timeout(_LIMIT_SECONDS + _AFTER_THE_LIMIT_SECONDS):
                while True:
                    try:
                        return await workflow.run(self._client, order)
                    except ConnectionLostError:
                        await self._client.server_info()  # waits until the server is back, or raises
        except TimeoutError:
            return ""
        except WhispererError as error:
            self._audience.say(f"{workflow.name}: {error.message}")
            return ""

    async def _guard(self) -> None:
        """Raise why the server has ended, if it does by itself."""
        raise await self._server.failure()

    async def _watch(self) -> None:
        while True:
            await self._audience.look(self._client)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _listen(self) -> None:
        finished = 0
        async for note in self._client.events():
            self._audience.tell(note)
            finished += note.name == StepFinished.wire_name
            if finished == _STEPS_BEFORE_THE_PLUG_IS_PULLED:
                self._in_the_middle.set()

    async def _pull_the_plug(self) -> Evidence:
        await self._in_the_middle.wait()
        await self._server.pull_the_plug()
        self._audience.say("*** kill -9: the server was killed in the middle of its work. It is restarted. ***")
        evidence = await evidence_in(self._server.data, SESSION)
        await self._server.start()
        self._audience.say("*** The server is back, and everything resumes. ***")
        return evidence


def _what_went_wrong(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first thing that can be told in a sentence; all of it if there is none."""
    told = group.subgroup((WhispererError, OSError)) or group
    first = told.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _what_went_wrong(first)
    return first if told is not group or len(group.exceptions) == 1 else group
