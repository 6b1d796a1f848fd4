"""The session that a recording is played in, and the inputs that are made there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ai_whisperer.core.addresses import normalized
from ai_whisperer.domain.clock import Clock, IdSource
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.errors import ClosedError, RecordingError, UnknownTemplateError, WhispererError
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.replay.recording.differences import Difference
from ai_whisperer.replay.recording.format import Input, Recording
from ai_whisperer.replay.recording.order import INPUT
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager
from ai_whisperer.runtime.life.opening import fail_session
from ai_whisperer.runtime.session.cause import called_by
from ai_whisperer.store.base import Store
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import Tool

_WORDS = """
create_agent start_agent pause_agent interrupt_agent resume_agent stop_agent sleep_agent wake_agent
send_task cancel_task cancel_tree retry_task dismiss_task compact_context
send_mail reply_mail mark_mail broadcast_event
create_room open_chat add_member remove_member post_message
create_schedule pause_schedule resume_schedule delete_schedule
acquire_lock renew_lock release_lock break_lock
approve refuse answer_question refuse_question
set_limits take_server_limits
"""
CALLS = frozenset(_WORDS.split())
"""What an input may call."""


async def make(
    made: Input,
    arguments: dict[str, Any],
    *,
    session: AsyncAgentSessionManager,
    definitions: Mapping[str, AgentDefinition],
) -> Any:
    """Make an input with these arguments, for who made it then; `definitions` has what agents are by their ids.

    Returns what the call of the session does.
    """
    if made.call == "create_agent" or arguments.pop("redefined", False):
        arguments["config"] = definitions.get(arguments["agent_id"])
    if "budget" in arguments:
        arguments["budget"] = Budget(**arguments["budget"])
    with called_by(made.cause):
        return await getattr(session, made.call)(**arguments)


def stated_limits(recording: Recording) -> dict[str, Any]:
    """The limits of a session that is played: what it changed itself is changed again by its inputs."""
    stated = recording.header.limits
    changed = {
        name
        for each in recording.inputs
        if each.call == "set_limits" and "agent_id" not in each.arguments
        for name in each.arguments["limits"]
    }
    session = {name: value for name, value in stated.get("session", {}).items() if name not in changed}
    return {**stated.get("server", {}), **session}


class Performance:
    """A session in a store, which can be killed and opened again."""

    def __init__(
        self,
        recording: Recording,
        *,
        store: Store,
        on_death: Callable[[], None],
        tools: Sequence[Tool],
        agent_tools: Mapping[str, Sequence[Tool]],
        model_factory: ModelFactory,
        clock: Clock,
        chance: random.Random,
        ids: IdSource,
    ) -> None:
        self._recording = recording
        self._store = store
        self._on_death = on_death
        self._tools = tools
        self._agent_tools = agent_tools
        self._model_factory = model_factory
        self._clock = clock
        self._chance = chance
        self._ids = ids
        self._definitions = {agent.id: agent.definition for agent in recording.agents}
        self._folder = TemporaryDirectory(prefix="whisperer-replay-")
        self._manager: AsyncAgentSessionManager | None = None
        self._dying: AsyncAgentSessionManager | None = None
        self._closing: asyncio.Future[None] | None = None
        self._calls: dict[asyncio.Task[Any], Input] = {}

    async def open(self) -> None:
        self._manager = AsyncAgentSessionManager(
            store=self._store,
            session_id=self._recording.header.session,
            tools=self._tools,
            agent_tools=self._agent_tools,
            folders=self._folders(),
            model_factory=self._model_factory,
            templates=RecordedTemplates(self._recording),
            limits=stated_limits(self._recording),
            clock=self._clock,
            random=self._chance,
            ids=self._ids,
        )
        await self._manager.open()

    def _folders(self) -> dict[str, Path]:
        """Empty folders under the names of those that agents were granted."""
        granted = {name for each in self._definitions.values() for name in each.folders}
        for name in granted:
            Path(self._folder.name, name).mkdir(parents=True, exist_ok=True)
        return {name: Path(self._folder.name, name) for name in granted}

    def begin_close(self) -> None:
        """The process begins to end in order."""
        if self._manager is not None:
            self._dying, self._manager = self._manager, None
            self._closing = asyncio.ensure_future(self._dying.close())

    async def closed(self) -> None:
        """It has ended, if it began to."""
        if self._closing is not None:
            closing, self._closing = self._closing, None
            await asyncio.wait({closing})
            if not closing.cancelled():  # it was killed while it began to end
                closing.result()

    def kill(self) -> None:
        """The process dies: what is under way is gone, and tells nobody."""
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        for call in self._calls:
            call.cancel()
        self._calls.clear()
        manager = self._manager or self._dying
        self._manager = self._dying = None
        if manager is not None and manager._open is not None:  # noqa: SLF001 - nobody else may kill a session
            fail_session(manager._open[0], ClosedError("The process of the recording died here."))  # noqa: SLF001
            self._store.unlisten(manager.session_id)
            self._on_death()

    def end(self) -> None:
        """The run is over, and nothing of it is left."""
        self.kill()
        self._folder.cleanup()

    def begin(self, made: Input, arguments: dict[str, Any]) -> None:
        """Make an input. Some wait for long, for a lock for instance: `refusal` tells of those that have failed."""
        if made.call not in CALLS or self._manager is None:
            raise RecordingError(
                f"Input {made.number} of the recording calls '{made.call}', which this AI Whisperer does not know. It "
                "may be of a newer version: update AI Whisperer, or record the session again."
            )
        made_now = self._made(self._manager, made, arguments)
        call = asyncio.get_running_loop().create_task(made_now, name=f"{INPUT}{made.seq}")
        self._calls[call] = made

    async def _made(self, manager: AsyncAgentSessionManager, made: Input, arguments: dict[str, Any]) -> None:
        await make(made, arguments, session=manager, definitions=self._definitions)

    def refusal(self, heard: Collection[int]) -> Difference | None:
        """The first input that was refused, of those that have ended.

        One that was `heard` of, by its number, began as it was recorded. What became of it is in the log: a wait for a
        lock that ended without it fails as it did then.
        """
        for call in [call for call in self._calls if call.done()]:
            made = self._calls.pop(call)
            error = None if call.cancelled() else call.exception()
            if isinstance(error, WhispererError) and made.number in heard:
                continue
            if isinstance(error, WhispererError | TypeError):
                return Difference(
                    kind="input",
                    place=f"input {made.number} ({made.call})",
                    what=f"is refused now: {error}",
                    seq=made.seq,
                )
            if error is not None:
                raise error
        return None


class RecordedTemplates(TemplateLibrary):
    """Templates as they were when agents of the recording were made of them."""

    def __init__(self, recording: Recording) -> None:
        super().__init__([])
        definitions = {agent.id: agent.definition for agent in recording.agents}
        self._templates = {
            normalized(agent_id): Template(name=agent_id, definition=definition)
            for agent_id, definition in definitions.items()
        }
        for name, agent_id in _named_in(recording):
            if agent_id in definitions:
                self._templates.setdefault(normalized(name), Template(name=name, definition=definitions[agent_id]))

    def get(self, name: str) -> Template:
        found = self.find(name)
        if found is None:
            raise UnknownTemplateError(f"The recording has no template '{name}'.")
        return found

    def find(self, name: str) -> Template | None:
        return self._templates.get(normalized(name))

    def called(self, agent_id: str) -> Template | None:
        return self.find(agent_id)

    def addressed(self, name: str) -> tuple[Template, str] | None:
        found = self.find(name)
        return None if found is None else (found, found.name)

    def names(self) -> list[str]:
        return sorted(template.name for template in self._templates.values())


def _named_in(recording: Recording) -> Iterable[tuple[str, str]]:
    """Which templates agents named when they created others."""
    for reply in recording.replies:
        for call in () if reply.answer is None else reply.answer.tool_calls:
            if call.name == "create_agent":
                try:
                    given = msgspec.json.decode(call.arguments)
                except msgspec.MsgspecError:
                    continue
                if isinstance(given, dict) and isinstance(given.get("template"), str):
                    yield given["template"], str(given.get("agent_id") or given.get("name"))
