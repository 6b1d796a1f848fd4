"""The session manager: what a program holds in its hand to run a session of agents."""

from __future__ import annotations

import random as chance
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from ai_whisperer.core.addresses import check_agent_id
from ai_whisperer.core.definitions import Config
from ai_whisperer.core.limits import Stated, limits_from
from ai_whisperer.core.marks import said
from ai_whisperer.core.sleeping import Time, sleep_plan
from ai_whisperer.core.text import check_reason, check_text
from ai_whisperer.domain.agents import AgentState, AgentStatus, SleepPlan
from ai_whisperer.domain.clock import Clock, IdSource, SystemClock, TimedIds
from ai_whisperer.domain.limits import SessionLimits
from ai_whisperer.domain.mail import USER
from ai_whisperer.errors import ClosedError, InvalidInputError, StateError
from ai_whisperer.mcp_config import McpServersConfig, mcp_servers_from
from ai_whisperer.models.base import ModelFactory
from ai_whisperer.models.catalog import name_check, resolve
from ai_whisperer.models.names import AUTO as ANY_MODEL
from ai_whisperer.runtime.agents.creation import Stage
from ai_whisperer.runtime.agents.deletion import deleted_agents
from ai_whisperer.runtime.agents.folders import Folders, checked_folders, kept_from_agents
from ai_whisperer.runtime.agents.status import status_of
from ai_whisperer.runtime.api.accepting import Intake
from ai_whisperer.runtime.api.approvals import SessionApprovals
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.context import SessionContext
from ai_whisperer.runtime.api.forks import SessionForks
from ai_whisperer.runtime.api.handle import AgentSession
from ai_whisperer.runtime.api.limits import SessionLimiting
from ai_whisperer.runtime.api.locks import SessionLocks
from ai_whisperer.runtime.api.memory import SessionMemory
from ai_whisperer.runtime.api.notifying import NotificationCallback, Notifying, checked_callback
from ai_whisperer.runtime.api.page import Served, SessionPage
from ai_whisperer.runtime.api.providers import SessionProviders
from ai_whisperer.runtime.api.questions import SessionQuestions
from ai_whisperer.runtime.api.retention import SessionRetention
from ai_whisperer.runtime.api.schedules import SessionSchedules
from ai_whisperer.runtime.life.assembly import Outside
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.life.opening import close_session, open_session
from ai_whisperer.runtime.life.store import open_store
from ai_whisperer.runtime.life.trial_turn import TrialTurn
from ai_whisperer.runtime.session.cause import by_caller
from ai_whisperer.runtime.session.current import loop_that_calls
from ai_whisperer.sandbox.base import Sandbox
from ai_whisperer.sandbox.choosing import AUTO
from ai_whisperer.session_api import told
from ai_whisperer.store.base import Store
from ai_whisperer.templates.library import AnyLibrary, TemplateEntry, library_of
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import AnyFunction, as_tools
from ai_whisperer.tools.registry import ToolRegistry


@told
class AsyncAgentSessionManager(
    SessionForks,
    SessionProviders,
    SessionMemory,
    SessionRetention,
    SessionSchedules,
    SessionLocks,
    SessionApprovals,
    SessionQuestions,
    SessionContext,
    SessionLimiting,
):
    """Runs the agents of one session. Use it as `async with AsyncAgentSessionManager("data-folder") as manager:`.

    With a folder everything is durable: whatever a method returned survives the death of the process, and opening the
    same folder again resumes where it stopped. Without one the session lives in memory. `store` is the address of a
    PostgreSQL database, `postgresql://…`, that keeps the session in place of the folder: that has the files of agents
    then. `tools` are functions that
    agents can be granted; `agent_tools` are those of single agents, by agent id. Tools are code and are not kept: an
    agent whose tools are not provided again waits for them. `folders` are folders that agents can be granted, by name;
    their own folders are kept in `work`, by default in the data folder. Agents of files for Claude Code work in the one
    that `claude_folder` names, if it does. In granted folders the data folder and what the
    runtime is set up by (settings, templates, tool files) are hidden, and the paths in `hidden` too. `sandbox` is what
    holds the programs that they run: `auto`, a level by its name, or `rlimits`, which holds neither files nor network.
    `mcp_servers` are MCP servers that agents can be granted tools of, by name. `model` is the model of agents that name
    none; `auto` is the one that `whisperer serve` would find in the environment. `limits` are those that hold where
    neither an agent nor the session nor the server states any: the limits of agents, and of the session as a whole.
    `templates` is a library, or folders that are searched before the built-in templates; without it the standard
    library, with the current folder as the project. Tasks, mail and delegation to a name that is a template's create
    that agent, unless `create_missing` is False. With `page` this process serves the page and the WebSocket of the
    session on this machine's own address, prints where, and has it as `page`; `whisperer page` finds it too. All that
    reaches outside comes in through `model_factory` and the tools; time, chance and ids come in too. Managers of one
    process share a `trial_turn`, so that after deaths of the process one suspect is tried at a time.
    `notification_callback` is called with each `Notification` from the opening on, in order; it may be a coroutine
    function.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        session_id: str = "default",
        store: Store | str | None = None,
        tools: Iterable[AnyFunction] = (),
        agent_tools: Mapping[str, Iterable[AnyFunction]] | None = None,
        folders: Mapping[str, str | Path] | None = None,
        hidden: Iterable[str | Path] = (),
        work: str | Path | None = None,
        mcp_servers: McpServersConfig | None = None,
        sandbox: str | Sandbox = AUTO,
        model: str = ANY_MODEL,
        model_factory: ModelFactory = resolve,
        templates: AnyLibrary = None,
        create_missing: bool = True,
        claude_folder: str | None = None,
        limits: Stated = None,
        page: bool = False,
        clock: Clock | None = None,
        random: chance.Random | None = None,
        ids: IdSource | None = None,
        trial_turn: TrialTurn | None = None,
        notification_callback: NotificationCallback | None = None,
    ) -> None:
        if data is not None and store is not None and not isinstance(store, str):
            raise InvalidInputError("Give a data folder or a store, not both.")
        if data is not None and not isinstance(data, str | Path):
            raise InvalidInputError(f"data must be the path of a folder, not {type(data).__name__}.")
        check_text("session id", session_id, max_bytes=200)
        if not isinstance(model, str) or not model.strip():
            raise InvalidInputError("model must be the name of a model, such as 'scripted' or 'openai-chat:NAME'.")
        self._data = data
        self._given_store = None if isinstance(store, str) else store
        self._address = store if isinstance(store, str) else None
        self._session_id = session_id
        self._tools = as_tools(tools)
        if agent_tools is not None and not isinstance(agent_tools, Mapping):
            raise InvalidInputError("agent_tools must map agent ids to lists of functions.")
        self._agent_tools = {key: as_tools(some) for key, some in (agent_tools or {}).items()}
        for own in ([], *self._agent_tools.values()):
            ToolRegistry((*self._tools, *own))  # raises if two have one name
        if work is not None and not isinstance(work, str | Path):
            raise InvalidInputError(f"work must be the path of a folder, not {type(work).__name__}.")
        root = Path(kept) if (kept := work or data) is not None else None
        self._name_check = name_check(model_factory)
        if self._name_check is not None:
            self._name_check(model)
        self._templates = library_of(templates, check_model=self._name_check)
        apart = kept_from_agents((data, work), hidden=hidden, templates=self._templates)
        granted = checked_folders({} if folders is None else folders, kept=apart)
        self._folders = Folders(root, session_id, granted, kept=apart, sandbox=sandbox)
        self._mcp_servers = mcp_servers_from({} if mcp_servers is None else mcp_servers, folder=Path())
        self._create_missing = create_missing
        if claude_folder is not None and claude_folder not in granted:
            raise InvalidInputError(
                f"claude_folder must name one of folders, not {claude_folder!r:.100}. There are: "
                f"{', '.join(granted) or 'none'}."
            )
        self._claude_folder = claude_folder
        self._model = model
        self._model_factory = model_factory
        self._limits = limits_from(limits, SessionLimits)
        self._clock = clock
        self._random = random or chance.Random()  # noqa: S311 - ids and jitter, no secrets
        self._ids = ids
        self._trial_turn = trial_turn or TrialTurn()
        self._callback = checked_callback(notification_callback)
        self._notifying: Notifying | None = None
        self._page = SessionPage(wanted=page)
        super().__init__()
        self._open: tuple[OpenSession, Intake] | None = None

    async def __aenter__(self) -> AsyncAgentSessionManager:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the store and resume where the session was; raises a `StoreError` that says what to do."""
        if self._open is not None:
            self._open[0].kernel.check_event_loop()
            raise StateError("The session manager is open already.")
        store = self._given_store
        if store is None:
            store = await open_store(self._data, self._address)
        clock = self._clock or store.clock or SystemClock()
        is_claimed = False
        try:
            is_claimed = await store.claim(self._session_id)
            session = await open_session(
                self._session_id,
                store,
                Outside(
                    clock=clock,
                    random=self._random,
                    ids=self._ids or TimedIds(clock, self._random),
                    model_factory=self._model_factory,
                    default_model=self._model,
                    tools=self._tools,
                    stage=Stage(
                        templates=self._templates,
                        agent_tools=self._agent_tools,
                        check_model=self._name_check,
                        create_missing=self._create_missing,
                        claude_folder=self._claude_folder,
                    ),
                    folders=self._folders,
                    limits=self._limits,
                    mcp_servers=self._mcp_servers,
                    trial_turn=self._trial_turn,
                ),
            )
        except BaseException:
            await self._release(store, is_claimed=is_claimed)
            raise
        self._folders.take_over()
        self._folders.sweep(deleted_agents(session))
        await self._folders.sweep_attachments(session.kernel.reads)
        self._open = (session, Intake(session))
        if self._callback is not None:
            self._notifying = Notifying(self.subscribe(), self._callback)
        try:
            data = None if self._data is None else Path(self._data)
            served = Served(
                manager=self, store=store, data=data, model=self._model, templates=self._templates, tools=self._tools
            )
            await self._page.begin(served)
        except BaseException:
            await self.close(grace_seconds=0)
            raise

    async def close(self, *, grace_seconds: float = 5.0) -> None:
        """Let the steps under way finish for so long, cancel what is left, and close. Tasks resume at the next open."""
        if self._open is None:
            return
        self._open[0].kernel.check_event_loop()
        calling = loop_that_calls()
        if calling is not None and self._open[0].roster.runs(calling):
            raise StateError("A tool cannot close the session that it runs in. Do it from outside.")
        (session, _), self._open = self._open, None
        async with AsyncExitStack() as stack:  # whatever fails, the rest is let go too
            stack.push_async_callback(self._release, session.kernel.store)
            if self._notifying is not None:
                stack.push_async_callback(self._notifying.end, grace_seconds=grace_seconds)
            stack.push_async_callback(close_session, session, grace_seconds=grace_seconds)
            await self._page.end()

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def page(self) -> str | None:
        """The address of the page with the token that lets in; None unless it was asked for and the session is open."""
        return self._page.url

    @property
    def active_sessions(self) -> Mapping[str, AgentSession]:
        """The agents by id."""
        return {agent_id: AgentSession(agent) for agent_id, agent in self._session.roster.agents.items()}

    @property
    def agent_threads(self) -> Mapping[str, Sequence[str]]:
        started = (status for status in self.list_agents() if status.started)
        return {status.agent_id: status.running_tasks for status in started}

    @property
    def failure(self) -> BaseException | None:
        """Why the store failed, if it did: nothing runs, restart the process."""
        return self._session.kernel.log.failure

    async def create_agent(
        self,
        agent_id: str,
        config: Config = None,
        *,
        template: str | Template | None = None,
        tools: Iterable[AnyFunction] = (),
        auto_start: bool = True,
    ) -> AgentSession:
        """Create an agent and, unless told otherwise, start it.

        `config` overrides the fields of `template`; without a template it is the whole definition. With neither, the
        template that is called like the agent is used, if there is one. `tools` are functions of its own; without
        them, those that `agent_tools` has for it.
        """
        session = self._session
        check_agent_id(agent_id)
        own = as_tools(tools) or session.creation.own_tools_of(agent_id)
        definition = session.creation.definition_for(agent_id, config, template, own)
        decision = session.kernel.decide(by_caller())
        agent = session.creation.create(decision, agent_id, definition, own, auto_start=auto_start)
        await decision.commit()
        return AgentSession(agent)

    def list_templates(self) -> list[TemplateEntry]:
        return self._templates.list()

    async def give_tools(self, agent_id: AgentRef, tools: Iterable[AnyFunction]) -> AgentStatus:
        """Hand an agent tools of its own, above all those that it had before a restart and now waits for."""
        session = self._find_agent(agent_id)
        await self._committed(lambda decision: session.give_tools(decision, as_tools(tools)))
        return status_of(session)

    async def start_agent(
        self, agent_id: AgentRef, config: Config = None, *, template: str | Template | None = None
    ) -> AgentStatus:
        if isinstance(agent_id, str) and not self._session.roster.book.knows(agent_id):
            return status_of(self._find_agent(await self.create_agent(agent_id, config, template=template)))
        session = self._find_agent(agent_id)
        decision = self._session.kernel.decide(by_caller())
        if config is None and template is None:
            session.start(decision)
        else:
            session.check_startable()
            definition = self._session.creation.definition_for(
                session.agent_id, config, template, session.toolkit.own_tools
            )
            gone, come = self._session.schedules.changes_for(session.agent_id, session.record.definition, definition)
            self._session.roster.book.replace(session.agent_id, session.record.definition, definition)
            own = session.toolkit.tools_to_remember(definition)
            session.redefine(decision, replace(session.record, definition=definition, own_tools=own))
            self._session.creation.tell_skipped(decision, session.agent_id, definition)
            self._session.schedules.change(decision, gone, come)
            session.start(decision)
        await decision.commit()
        return status_of(session)

    async def pause_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        session = self._find_agent(agent_id)
        check_reason(reason)
        await self._committed(lambda decision: session.pause(decision, reason))
        return status_of(session)

    async def interrupt_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        session = self._find_agent(agent_id)
        if session.state is not AgentState.PAUSED:
            await self.pause_agent(agent_id, reason=reason)
        await session.interrupt()
        return status_of(session)

    async def resume_agent(self, agent_id: AgentRef) -> AgentStatus:
        session = self._find_agent(agent_id)
        await self._committed(session.resume)
        return status_of(session)

    async def stop_agent(self, agent_id: AgentRef, *, reason: str = "") -> AgentStatus:
        session = self._find_agent(agent_id)
        check_reason(reason)
        await session.stop(by_caller(), reason)
        return status_of(session)

    async def sleep_agent(
        self,
        agent_id: AgentRef,
        *,
        duration_seconds: float | None = None,
        until: Time | None = None,
        wake_events: Sequence[str] = (),
        reason: str = "",
    ) -> AgentStatus:
        clock = self._session.kernel.clock

        def plan(now: float) -> SleepPlan:
            return sleep_plan(
                now, wall=clock.wall(), duration_seconds=duration_seconds, until=until, wake_events=wake_events
            )

        plan(clock.now())  # raises what is wrong with it before anybody is created
        check_reason(reason)
        decision = self._create_if_missing(agent_id, lambda _: None) or self._session.kernel.decide(by_caller())
        session = self._find_agent(agent_id)
        session.sleep(decision, plan(decision.at), reason)
        await decision.commit()
        return status_of(session)

    async def wake_agent(self, agent_id: AgentRef, *, reason: str = "woken by the user") -> AgentStatus:
        session = self._find_agent(agent_id)
        check_reason(reason)
        await self._committed(lambda decision: session.wake(decision, reason, details=said(USER, reason)))
        return status_of(session)

    @property
    def _session(self) -> OpenSession:
        """The open session. All that is public comes here or to `_intake` first, and so in the right event loop."""
        if self._open is None:
            raise ClosedError
        self._open[0].kernel.check_event_loop()
        return self._open[0]

    @property
    def _intake(self) -> Intake:
        if self._open is None:
            raise ClosedError
        self._open[0].kernel.check_event_loop()
        return self._open[1]

    async def _release(self, store: Store, *, is_claimed: bool = True) -> None:
        if is_claimed:
            await store.release(self._session_id)
        if self._given_store is None:
            await store.close()
