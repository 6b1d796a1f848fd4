"""Deleting an agent: everything that leads to it goes in one decision, what it used still counts."""

from __future__ import annotations

from msgspec.structs import replace

from ai_whisperer.core.queueing import Work
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.notifications.agents import AgentDeleted
from ai_whisperer.domain.retention import Erased
from ai_whisperer.domain.rooms import RoomKind
from ai_whisperer.domain.usage import AgentTotals
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.parts import Parts
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.roster import LiveRoster

FORMER = ""
"""Under this id the totals of deleted agents are kept."""


class PartsOfAll(Parts, kw_only=True, frozen=True, eq=False):
    """The parts of a session whose agents can go."""

    roster: LiveRoster[LiveAgent, AILoop]


def open_work_of(parts: PartsOfAll, agent: LiveAgent) -> list[Work]:
    """What waits for the agent, runs, or is on its way back into its queue."""
    returning = (task for task in parts.roster.returning.values() if task.agent_id == agent.agent_id)
    return [*(loop.task for loop in agent.work.loops.values()), *returning, *agent.work.waiting]


def delete_agent(parts: PartsOfAll, decision: Decision, agent: LiveAgent) -> None:
    """Delete an agent that is stopped and has no task left; mails that wait for it are archived."""
    name, kernel = agent.agent_id, parts.kernel
    told_until = kernel.log.position()[0]
    for item in list(agent.work.waiting):
        if isinstance(item, MailRecord):
            agent.work.take_out_mail(item)
            parts.mail.move(decision, item, MailState.ARCHIVED)
    for schedule in parts.schedules.of_agent(name):
        parts.schedules.delete(decision, schedule.id)
    for room in parts.rooms.all_rooms():
        if name in room.members and (room.kind is RoomKind.DIRECT or len(room.members) == 1):
            parts.rooms.delete(decision, room)
        elif name in room.members:
            parts.rooms.remove_member(decision, room, name)
    parts.supervisor.forget(decision, name)
    parts.counters.forget(decision, name)
    _keep_totals(parts, decision, agent)
    parts.mail.forget(name)
    kernel.erasing.mark(decision, name, "", last=kernel.last_arrival, told_until=told_until)
    decision.unit.delete_agent(agent.record)
    decision.tell(AgentDeleted(agent_id=name))
    parts.roster.book.remove(name)
    del parts.roster.agents[name]


def deleted_agents(parts: PartsOfAll) -> list[str]:
    """Those of which something may be left, also beside the store, and of whose names there are no others now."""
    return [each for each in parts.kernel.erasing.deleted_agents if each not in parts.roster.agents]


async def erase_marked(parts: PartsOfAll) -> Erased:
    """Erase what is marked in the store, and the files that belonged to it. What is cut short goes on at the next."""
    erased = await parts.kernel.erasing.run()
    await parts.supplies.folders.remove_aside()
    await parts.supplies.folders.sweep_attachments(parts.kernel.reads)
    return erased


def _keep_totals(parts: PartsOfAll, decision: Decision, agent: LiveAgent) -> None:
    """Let what the agent used count for the session, and an agent of the same id begin with nothing.

    Its own row stays: it leads to the last of its tasks, after whose arrival the next one comes.
    """
    used = agent.work.totals
    session_id = parts.kernel.session_id
    former = parts.roster.former or AgentTotals(session_id=session_id, agent_id=FORMER)
    former = replace(former, tasks=former.tasks + used.tasks, usage=former.usage + used.usage)
    parts.roster.former = former
    decision.unit.put_totals(former)
    decision.unit.put_totals(replace(used, tasks=0, usage=Usage()))
