"""New agents: those that are asked for, and those that are only named and that a template could be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ai_whisperer.core.addresses import check_agent_id, normalized
from ai_whisperer.core.definitions import Config, definition_from
from ai_whisperer.core.limits import tightened
from ai_whisperer.domain.agents import AgentRecord
from ai_whisperer.domain.definition import Access, AgentDefinition
from ai_whisperer.domain.limits import EffectiveLimits, LimitAction, LimitScope
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notifications.agents import AgentCreated
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.domain.notifications.providers import ModelSkipped
from ai_whisperer.errors import DefinitionError, InvalidInputError, LimitError
from ai_whisperer.models.catalog import NameCheck
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.defining import check_approve, check_model, definition_for, models_out_of_reach
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.mcp import check_mcp_grants
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.agents.supplies import Supplies
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.started import StartedAgents
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.messaging.schedules import Schedules
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roster import LiveRoster
from ai_whisperer.templates.library import TemplateLibrary
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.registry import COORDINATION_TOOLS, CREATE_AGENT, told_missing

_MAX_AGENTS = "max_created_agents"
_MAX_TOKENS = "max_tokens"


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What new agents of a session are made of.

    `create_missing`: work for an agent that is not there, but is called like a template, creates it. `claude_folder`:
    the folder that agents of files for Claude Code work in.
    """

    templates: TemplateLibrary
    agent_tools: Mapping[str, Sequence[Tool]]
    check_model: NameCheck | None
    create_missing: bool
    claude_folder: str | None = None


class AgentCreation:
    """Creates the agents of one session. What an agent creates can do no more than that agent itself."""

    def __init__(
        self,
        kernel: Kernel,
        roster: LiveRoster[LiveAgent, AILoop],
        supplies: Supplies,
        stated: StatedLimits,
        started: StartedAgents,
        reached: ReachedLimits,
        schedules: Schedules,
        stage: Stage,
        *,
        live: Callable[[AgentRecord, Sequence[Tool]], LiveAgent],
    ) -> None:
        """`live` brings an agent to life."""
        self._kernel = kernel
        self._roster = roster
        self._supplies = supplies
        self._stated = stated
        self._started = started
        self._reached = reached
        self._schedules = schedules
        self._stage = stage
        self._live = live

    def create(
        self,
        decision: Decision,
        agent_id: str,
        definition: AgentDefinition,
        own: Sequence[Tool],
        *,
        auto_start: bool,
        by: str | None = None,
    ) -> LiveAgent:
        """Add an agent with a definition that was checked. Raises, having changed nothing, if that is not possible."""
        gone, come = self._schedules.changes_for(agent_id, None, definition)
        if auto_start and not self._roster.book.knows(agent_id):
            self._started.check(agent_id)
        record = AgentRecord(
            session_id=self._kernel.session_id,
            id=agent_id,
            definition=definition,
            created_at=decision.at,
        )
        self._roster.book.add(agent_id, definition)
        agent = self._live(record, own)
        agent.record = replace(record, own_tools=agent.toolkit.tools_to_remember(definition))
        self._roster.agents[agent_id] = agent
        decision.tell(
            AgentCreated(
                agent_id=agent_id,
                name=definition.name or agent_id,
                description=definition.description,
                created_by=UNSET if by is None else by,
            )
        )
        self.tell_skipped(decision, agent_id, definition)
        self._schedules.change(decision, gone, come)
        if auto_start:
            agent.is_new = True
            agent.start(decision)
            agent.is_new = False
        decision.unit.insert_agent(agent.record)
        return agent

    def tell_skipped(self, decision: Decision, agent_id: str, definition: AgentDefinition) -> None:
        """Announce which of its models an agent with this definition cannot ask, and why."""
        if self._stage.check_model is not None:
            for name, why in models_out_of_reach(definition).items():
                decision.tell(ModelSkipped(agent_id=agent_id, model=name, reason=why))

    def own_tools_of(self, agent_id: str) -> Sequence[Tool]:
        """The functions that were provided for an agent of that id."""
        return self._stage.agent_tools.get(agent_id, ())

    def definition_for(
        self, agent_id: str, config: Config, template: str | Template | None, own: Sequence[Tool]
    ) -> AgentDefinition:
        """The definition that is meant; raises a `DefinitionError` if it does not fit this session."""
        definition = definition_for(
            agent_id,
            config,
            template,
            library=self._stage.templates,
            book=self._roster.book,
            offered=(*self._supplies.tools, *own),
            servers=self._supplies.mcp.names,
            claude_folder=self._stage.claude_folder,
        )
        check_model(definition, self._stage.check_model)
        self._check_tools(agent_id, definition, own)
        self._supplies.folders.check(agent_id, definition)
        return definition

    def missing(self, name: object) -> tuple[Template, str] | None:
        """The agent that is to be created before work is given to that name: its template and its id.

        None if it is there, if no template is called so, or if agents are not created so here.
        """
        if not self._stage.create_missing or not isinstance(name, str) or name in self._roster.agents:
            return None  # the usual case, for which nothing else is looked at
        if self._roster.book.knows(name) or normalized(name) == USER:
            return None
        found = self._stage.templates.addressed(name)
        return None if found is None or self._roster.book.knows(found[1]) else found

    def create_missing(
        self,
        decision: Decision,
        missing: tuple[Template, str],
        check: Callable[[EffectiveLimits], object],
        *,
        by: Owner | None = None,
    ) -> None:
        """Create the agent that is `missing` for work, if the work is accepted: what is refused creates nobody.

        `check` raises what is wrong with the work; it is given the limits that the agent is going to have. Raises that,
        or what `create_from` does.
        """
        stated = missing[0].definition.limits
        limits = stated if by is None else tightened(stated, by.record.definition.limits, by.limits)
        check(self._stated.for_agent(limits))
        self.create_from(decision, *missing, by=by)

    def create_for(
        self,
        decision: Decision,
        by: Owner,
        agent_id: str,
        *,
        template: str | None,
        prompt: str | None,
        description: str,
    ) -> LiveAgent:
        """Create an agent for another: of a template, or with a prompt and the tools of the one that wants it."""
        check_agent_id(agent_id)
        if template is not None and prompt is not None:
            raise InvalidInputError("Give a template or a prompt, not both; nobody was created.")
        if prompt is None:
            found = self._stage.templates.called(agent_id) if template is None else self._stage.templates.get(template)
            if found is None:
                raise InvalidInputError(
                    f"No template is called like '{agent_id}', so say what it is: give a prompt or a template. "
                    f"Templates: {', '.join(self._stage.templates.names())}."
                )
            return self.create_from(decision, found, agent_id, by=by)
        if not prompt.strip():
            raise InvalidInputError("The prompt is empty; nobody was created. Say what the agent is to be.")
        if self.own_tools_of(agent_id):  # it would have them when the session is opened next
            raise DefinitionError(
                f"'{agent_id}' was not created: there are tools for an agent with that name alone (agent_tools). "
                "Choose another name, or ask the user to create it."
            )
        self._check_number(decision, agent_id, by)
        stated = {"prompt": prompt, "description": description, "model": by.record.definition.model}
        definition = definition_from({**stated, "tools": _tools_to_pass_on(by)})
        self._check_tools(agent_id, definition, ())
        return self.create(decision, agent_id, _held_as(by, definition), (), auto_start=True, by=by.agent_id)

    def create_from(
        self, decision: Decision, template: Template, agent_id: str, *, by: Owner | None = None
    ) -> LiveAgent:
        """Create an agent of a template, for another one or for a person.

        Raises `InvalidInputError` for an id that no agent may have, and a `DefinitionError` or a `LimitError` if the
        agent may not be created.
        """
        check_agent_id(agent_id)
        own = self.own_tools_of(agent_id)
        definition = self.definition_for(agent_id, None, template, own)
        if by is not None:
            self._check_number(decision, agent_id, by)
            self._check_rights(agent_id, definition, own, by)
            definition = _held_as(by, definition)
        made_by = None if by is None else by.agent_id
        return self.create(decision, agent_id, definition, own, auto_start=True, by=made_by)

    def _check_number(self, decision: Decision, agent_id: str, by: Owner) -> None:
        """Raise `LimitError` if the session has so many agents that agents may create no more."""
        count, most = len(self._roster.agents), self._stated.whole.max_created_agents
        if count < most:
            return
        self._reached.tell(
            decision,
            LimitReached(
                scope=LimitScope.SESSION,
                limit=_MAX_AGENTS,
                action=LimitAction.REFUSED,
                used=count,
                most=most,
                agent_id=by.agent_id,
                task_id=None,
            ),
        )
        raise LimitError(
            f"'{agent_id}' was not created: the session has {count:,} agents, and agents may create further ones up to "
            f"{most:,} ({_MAX_AGENTS}). Give the work to an agent that is there (list_agents), or ask the user."
        )

    def _check_rights(self, agent_id: str, definition: AgentDefinition, own: Sequence[Tool], by: Owner) -> None:
        """Raise `DefinitionError` if the agent could do what the one that wants it cannot."""
        granted = definition.tools
        if granted is None:
            granted = (*COORDINATION_TOOLS, *(each.name for each in (*self._supplies.tools, *own)))
        registry = self._supplies.registry(definition.tools, own)
        excess = [f"the tool {name}" for name in registry.beyond(by.registry, granted)]
        holder = by.record.definition
        excess += [
            f"the folder {name} ({access})"
            for name, access in definition.folders.items()
            if holder.folders.get(name) not in (Access.WRITE, access)
        ]
        # To the letter: what "*" covers has a public address, and a host that is named need not.
        excess += [f"the host {host}" for host in definition.network if host not in holder.network]
        if excess:
            raise DefinitionError(
                f"'{agent_id}' was not created: it would have what '{by.agent_id}' does not have: {', '.join(excess)}. "
                "Ask the user to create it."
            )

    def _check_tools(self, agent_id: str, definition: AgentDefinition, own: Sequence[Tool]) -> None:
        """Raise `DefinitionError` if the definition grants a tool that nobody has."""
        if own or definition.tools:
            check_mcp_grants(self._supplies, agent_id, definition)
            missing = self._supplies.registry(definition.tools, own).missing_from(definition.tools or ())
            if missing:
                raise DefinitionError(told_missing(agent_id, missing, (*self._supplies.tools, *own)))
        if definition.approve:
            check_approve(agent_id, definition, self._supplies.registry(definition.tools, own))


def _tools_to_pass_on(by: Owner) -> tuple[str, ...] | None:
    """The tools that an agent may give to one that it makes up: its own but for the right to create more.

    Functions that were provided for it alone stay with it.
    """
    granted = by.record.definition.tools
    if granted is None:
        return None
    private = {each.name for each in by.own_tools}
    return tuple(name for name in granted if name != CREATE_AGENT and name not in private)


def _held_as(by: Owner, definition: AgentDefinition) -> AgentDefinition:
    """The definition with the limits of the creator where they are tighter, and with all approvals that it needs.

    Names in `approve` that are no tools of the new agent do no harm, and those of MCP servers are known only later.
    """
    holder = by.record.definition
    return replace(
        definition,
        limits=tightened(definition.limits, holder.limits, by.limits),
        settings=_bounded(definition.settings, holder.settings),
        approve=tuple(dict.fromkeys((*definition.approve, *holder.approve))),
    )


def _bounded(settings: dict[str, Any], holder: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with no more tokens for an answer than the creator has."""
    most, stated = holder.get(_MAX_TOKENS), settings.get(_MAX_TOKENS)
    if not isinstance(most, int) or (isinstance(stated, int) and stated <= most):
        return settings
    return {**settings, _MAX_TOKENS: most}
