"""The schedules of a session: kept, armed, fired. Each due instant is settled in one transaction, and so once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ai_whisperer.core import schedules
from ai_whisperer.core.tasks import scheduled
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.domain.notifications.schedules import (
    ScheduleChanged,
    ScheduleCreated,
    ScheduleDeleted,
    ScheduleFired,
    ScheduleMissed,
)
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition, ScheduleRecord
from ai_whisperer.domain.tasks import TaskKind, TaskRecord
from ai_whisperer.errors import DuplicateIdError, QueueFullError, ScheduleError, StateError, UnknownScheduleError
from ai_whisperer.runtime.messaging.events import Events
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Roster

_CAUSE = "schedule:"
_LATE = "late"
_STOPPED = "agent_stopped"
_FULL = "queue_full"
_STILL_WAITING = "still_waiting"

_SHOWN_IDS = 50


class Schedules:
    """Holds the schedules of one session. The scheduler has one entry for each that may fire."""

    def __init__(self, kernel: Kernel, roster: Roster, events: Events) -> None:
        self._kernel = kernel
        self._roster = roster
        self._events = events
        self._records: dict[str, ScheduleRecord] = {}

    def restore(self, records: Iterable[ScheduleRecord]) -> None:
        """Bring the schedules back into memory. Nothing fires yet."""
        self._records.update((record.id, record) for record in records)

    def arm_all(self) -> None:
        """Have every schedule fire when it is due, at once where that is past."""
        for record in self._records.values():
            self._arm(record)

    def shown(self, record: ScheduleRecord) -> ScheduleRecord:
        """The schedule as people and programs see it: it fires next when the wall clock shows `next_at`."""
        clock = self._kernel.clock
        if record.next_at is None or record.definition.by_wall_clock or not clock.offset:
            return record
        return replace(record, next_at=clock.shown(record.next_at))

    def find(self, schedule_id: str) -> ScheduleRecord | None:
        return self._records.get(schedule_id)

    def get(self, schedule_id: str) -> ScheduleRecord:
        """The schedule as it is now; raises `UnknownScheduleError` with the ids there are."""
        record = self._records.get(schedule_id)
        if record is None:
            shown = ", ".join(sorted(self._records)[:_SHOWN_IDS]) or "none yet"
            more = f" and {len(self._records) - _SHOWN_IDS} more" if len(self._records) > _SHOWN_IDS else ""
            raise UnknownScheduleError(f"There is no schedule '{schedule_id}'. Known ids: {shown}{more}.")
        return record

    def of_agent(self, agent_id: str | None) -> list[ScheduleRecord]:
        """The schedules of an agent, or all of the session, in the order of their creation."""
        return [record for record in self._records.values() if agent_id is None or record.agent_id == agent_id]

    def wakes(self, task: TaskRecord) -> bool:
        """Whether the task was fired by a schedule that wakes its agent."""
        if task.kind is not TaskKind.SCHEDULED:
            return False
        record = self._records.get(task.cause.removeprefix(_CAUSE))
        return record is not None and record.definition.wake

    def create(
        self, decision: Decision, definition: ScheduleDefinition, *, agent: Agent | None, schedule_id: str
    ) -> ScheduleRecord:
        """Add a schedule that was checked. Raises, having changed nothing, if the id is taken or it never fires."""
        agent_id = None if agent is None else agent.agent_id
        record = self._planned(schedule_id, definition, agent_id, cause=decision.cause)
        self._add(decision, record)
        return record

    def pause(self, decision: Decision, schedule_id: str) -> ScheduleRecord:
        """Let the schedule rest. Instants that pass meanwhile do not count as missed."""
        record = self.get(schedule_id)
        if record.paused:
            raise StateError(f"Schedule '{schedule_id}' is paused already. Resume or delete it.")
        return self._rest(decision, record)

    def resume(self, decision: Decision, schedule_id: str) -> ScheduleRecord:
        """Go on from now."""
        record = self.get(schedule_id)
        if not record.paused:
            raise StateError(f"Schedule '{schedule_id}' is not paused. Only a paused schedule can be resumed.")
        record = replace(record, paused=False, next_at=schedules.resumed_at(record, self._now(record.definition)))
        self._keep(decision, record)
        decision.tell(ScheduleChanged.of(self.shown(record)))
        self._arm(record)
        return record

    def delete(self, decision: Decision, schedule_id: str) -> ScheduleRecord:
        """Remove the schedule. What it has fired already goes on."""
        record = self.get(schedule_id)
        del self._records[schedule_id]
        self._kernel.timers.cancel(_key(schedule_id))
        decision.unit.delete_schedule(record)
        decision.tell(ScheduleDeleted(schedule_id=schedule_id, agent_id=record.agent_id))
        return record

    def changes_for(
        self, agent_id: str, old: AgentDefinition | None, new: AgentDefinition
    ) -> tuple[list[ScheduleRecord], list[ScheduleRecord]]:
        """Which schedules go and which come when the agent gets this definition; those that are the same stay.

        Changes nothing; raises `DuplicateIdError` if a schedule made otherwise has an id that is needed.
        """
        cause = f"agent:{agent_id}"
        gone: list[ScheduleRecord] = []
        for number in range(1, len(old.schedule if old else ()) + 1):
            known = self._records.get(_id_in_definition(agent_id, number))
            wanted = new.schedule[number - 1] if number <= len(new.schedule) else None
            if known is not None and known.cause == cause and known.definition != wanted:
                gone.append(known)
        leaving = {record.id for record in gone}
        come: list[ScheduleRecord] = []
        for number, definition in enumerate(new.schedule, 1):
            known = self._records.get(_id_in_definition(agent_id, number))
            if known is None or known.cause != cause or known.id in leaving:
                come.append(
                    self._planned(
                        _id_in_definition(agent_id, number), definition, agent_id, cause=cause, leaving=leaving
                    )
                )
        return gone, come

    def change(self, decision: Decision, gone: Sequence[ScheduleRecord], come: Sequence[ScheduleRecord]) -> None:
        """Make the changes that an agent's definition asks for."""
        for record in gone:
            self.delete(decision, record.id)
        for record in come:
            self._add(decision, record)

    def _planned(
        self,
        schedule_id: str,
        definition: ScheduleDefinition,
        agent_id: str | None,
        *,
        cause: str,
        leaving: Iterable[str] = (),
    ) -> ScheduleRecord:
        if schedule_id in self._records and schedule_id not in leaving:
            raise DuplicateIdError(
                f"There is a schedule '{schedule_id}' already. Delete it or choose another id; nothing was changed."
            )
        created_at = self._kernel.clock.now()
        next_at = schedules.next_due(definition, self._now(definition), created_at)
        if next_at is None:
            raise ScheduleError(f"cron '{definition.cron}' does not come within the next 50 years.")
        return ScheduleRecord(
            session_id=self._kernel.session_id,
            id=schedule_id,
            definition=definition,
            agent_id=agent_id,
            next_at=next_at,
            cause=cause,
            created_at=created_at,
        )

    def _add(self, decision: Decision, record: ScheduleRecord) -> None:
        self._keep(decision, record)
        decision.tell(ScheduleCreated.of(self.shown(record)))
        self._arm(record)

    def _rest(self, decision: Decision, record: ScheduleRecord, reason: str = "") -> ScheduleRecord:
        record = replace(record, paused=True)
        self._keep(decision, record)
        decision.tell(ScheduleChanged.of(self.shown(record), reason))
        self._kernel.timers.cancel(_key(record.id))
        return record

    def _keep(self, decision: Decision, record: ScheduleRecord) -> None:
        self._records[record.id] = record
        decision.unit.put_schedule(record)

    def _arm(self, record: ScheduleRecord) -> None:
        if record.next_at is not None and not record.paused:
            scheduler = self._kernel.timers
            schedule = scheduler.at_wall if record.definition.by_wall_clock else scheduler.at
            schedule(record.next_at, _key(record.id), partial(self._look, record.id))

    def _now(self, definition: ScheduleDefinition) -> float:
        """By the clock that the schedule goes by."""
        clock = self._kernel.clock
        return clock.wall() if definition.by_wall_clock else clock.now()

    def _look(self, schedule_id: str) -> None:
        """Settle what is due of a schedule: tasks or events, and the schedule's new standing, in one unit."""
        record = self._records.get(schedule_id)
        if record is None or record.paused or self._kernel.closing:
            return
        decision = self._kernel.decide(f"{_CAUSE}{schedule_id}")
        now = self._now(record.definition)
        try:
            hindrance = self._hindrance(record)
            settle = schedules.none_fires if hindrance else schedules.due_now
            due = settle(record, now)
        except ScheduleError as error:
            self._rest(decision, record, error.message)  # its zone is not known on this machine
            decision.submit()
            return
        if due.instants or due.missed:
            record = self._settled(decision, record, due, Counter({hindrance or _LATE: due.missed}))
            if due.next_at is not None and due.next_at <= now:
                decision.when_durable(partial(self._look, schedule_id))  # the rest, when others had their turn
                decision.submit()
                return
            decision.submit()
        self._arm(record)

    def _settled(
        self, decision: Decision, record: ScheduleRecord, due: schedules.Due, missed: Counter[str]
    ) -> ScheduleRecord:
        record = replace(record, next_at=due.next_at)
        for due_at in due.instants:
            hindrance = self._hindrance(record)
            if hindrance is None:
                record = self._fire(decision, record, due_at)
            else:
                missed[hindrance] += 1
        for reason, count in missed.items():
            if count:
                decision.tell(ScheduleMissed.of(self.shown(record), count=count, reason=reason))
        self._keep(decision, record)
        return record

    def _hindrance(self, record: ScheduleRecord) -> str | None:
        """Why an instant of the schedule cannot fire now, if it cannot."""
        agent = self._roster.agents.get(record.agent_id or "")
        if agent is None:
            return None
        if agent.state is AgentState.STOPPED:
            return _STOPPED
        if record.definition.prompt is None:
            return None
        try:
            agent.work.check_room()
        except QueueFullError:
            return _FULL
        one_waits = record.last_at is not None and agent.work.queue.has_task(
            schedules.task_id_of(record, record.last_at)
        )
        return _STILL_WAITING if one_waits and record.definition.missed is not MissedRuns.ALL else None

    def _fire(self, decision: Decision, record: ScheduleRecord, due_at: float) -> ScheduleRecord:
        next_at = self.shown(record).next_at
        event_id: str | UnsetType = UNSET
        task_id: str | UnsetType = UNSET
        if record.definition.event is not None:
            event = self._events.broadcast(
                decision,
                name=record.definition.event,
                data=record.definition.data,
                sender=decision.cause,
            )
            event_id = event.id
        else:
            task = scheduled(
                record,
                task_id=schedules.task_id_of(record, due_at),
                arrival=self._kernel.next_arrival(),
                cause=decision.cause,
                now=decision.at,
            )
            agent = self._roster.agents[task.agent_id]
            agent.work.accept_task(decision, task)
            agent.wake_for(decision, [task])
            task_id = task.id
        decision.tell(
            ScheduleFired(
                schedule_id=record.id,
                agent_id=record.agent_id,
                due_at=due_at,
                next_at=next_at,
                event_id=event_id,
                task_id=task_id,
            )
        )
        return replace(record, last_at=due_at, fired=record.fired + 1)


def _key(schedule_id: str) -> str:
    return f"schedule:{schedule_id}"


def _id_in_definition(agent_id: str, number: int) -> str:
    return f"{agent_id}-{number}"
