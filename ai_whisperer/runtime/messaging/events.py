"""Events: named signals that wake those who listen and become a task for those who subscribe."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ai_whisperer.core.signals import check_event_data, check_event_name
from ai_whisperer.core.tasks import described, task_for_event
from ai_whisperer.domain.events import EventRecord
from ai_whisperer.domain.mail import USER
from ai_whisperer.domain.notifications.events import EventBroadcast, EventNotTaken
from ai_whisperer.domain.tasks import Origin
from ai_whisperer.errors import QueueFullError
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Roster


class Events:
    """Broadcasts events in one session."""

    def __init__(self, kernel: Kernel, roster: Roster) -> None:
        self._kernel = kernel
        self._roster = roster

    def broadcast(
        self,
        decision: Decision,
        *,
        name: str,
        data: Any,
        sender: str,
        origin: Origin | None = None,
        event_id: str | None = None,
    ) -> EventRecord:
        """Record the event, wake the sleepers that listen for it, and give subscribers a task.

        The sender hears nothing of its own event. A subscriber whose queue is full is left out, and that is announced.
        Raises, having changed nothing, if the event makes no sense.
        """
        check_event_name(name)
        check_event_data(data)
        event = EventRecord(
            session_id=self._kernel.session_id,
            id=event_id or self._kernel.ids.new(),
            name=name,
            sender=sender,
            cause=decision.cause,
            data=data,
            created_at=decision.at,
        )
        woken = notified = 0
        reason, details = f"event '{name}' from {sender}", described(event)
        by = sender if sender == USER or sender in self._roster.agents else None  # else it is a schedule
        for agent in self._roster.agents.values():
            record = agent.record
            if record.sleep is None and not record.definition.subscribes:
                continue  # as most: of thousands of agents this is told soonest
            if record.id == sender:
                continue
            if agent.listens_for(name):
                agent.wake(decision, reason, details=details, cause=f"event:{event.id}", origin=origin, by=by)
                woken += 1
            elif agent.subscribes_to(name):
                notified += self._notify(decision, event, agent, origin=origin, by=by)
        event = replace(event, woken=woken, notified=notified)
        decision.unit.insert_event(event)
        decision.tell(
            EventBroadcast(event_id=event.id, event=name, data=data, sender=sender, woken=woken, notified=notified)
        )
        return event

    def _notify(
        self, decision: Decision, event: EventRecord, agent: Agent, *, origin: Origin | None, by: str | None
    ) -> bool:
        try:
            agent.work.check_room()
        except QueueFullError:
            decision.tell(EventNotTaken(event_id=event.id, event=event.name, agent_id=agent.agent_id))
            return False
        task = task_for_event(
            event, agent.agent_id, task_id=self._kernel.ids.new(), arrival=self._kernel.next_arrival(), origin=origin
        )
        agent.work.accept_task(decision, task, by=by)
        return True
