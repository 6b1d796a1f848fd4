"""Schedules, as a program or a person handles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ai_whisperer.core.limits import DEFAULTS
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.schedules import ScheduleRef, check_schedule, schedule_from, schedule_id_of
from ai_whisperer.domain.schedules import MissedRuns, ScheduleDefinition, ScheduleRecord
from ai_whisperer.errors import DuplicateIdError
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.tasks import SessionWork
from ai_whisperer.runtime.session.decision import Decision


class SessionSchedules(SessionWork):
    """The part of the session manager that handles schedules."""

    async def create_schedule(
        self,
        agent_id: AgentRef | None = None,
        *,
        cron: str | None = None,
        interval_seconds: float | None = None,
        zone: str = "UTC",
        prompt: str | None = None,
        event: str | None = None,
        data: Any = None,
        missed: MissedRuns | str = MissedRuns.ONCE,
        wake: bool = False,
        schedule_id: str | None = None,
    ) -> ScheduleRecord:
        session = None if agent_id is None else self._find_agent(agent_id)
        definition = schedule_from(
            cron=cron,
            interval_seconds=interval_seconds,
            zone=zone,
            prompt=prompt,
            event=event,
            data=data,
            missed=missed,
            wake=wake,
        )
        owner = None if session is None else session.agent_id
        limits = DEFAULTS if session is None else session.limits
        check_schedule(definition, agent_id=owner, max_prompt_bytes=limits.max_prompt_bytes)
        definition = msgspec.json.decode(msgspec.json.encode(definition), type=ScheduleDefinition)  # as it is stored
        schedules = self._session.schedules
        known = None if schedule_id is None else schedules.find(checked_id(schedule_id))
        if known is not None:
            if (known.agent_id, known.definition) != (owner, definition):
                raise DuplicateIdError(
                    f"There is another schedule '{known.id}' already. Delete it or choose another id; nothing was "
                    "changed."
                )
            await self._session.kernel.flushed()
            return schedules.shown(schedules.get(known.id))
        new_id = schedule_id or self._session.kernel.ids.new()
        return await self._changed(
            lambda decision: schedules.create(decision, definition, agent=session, schedule_id=new_id)
        )

    def list_schedules(self, agent_id: AgentRef | None = None) -> list[ScheduleRecord]:
        schedules = self._session.schedules
        found = schedules.of_agent(None if agent_id is None else self._find_agent(agent_id).agent_id)
        return [schedules.shown(record) for record in found]

    def get_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        schedules = self._session.schedules
        return schedules.shown(schedules.get(schedule_id_of(schedule)))

    async def pause_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        return await self._changed(lambda decision: self._session.schedules.pause(decision, schedule_id_of(schedule)))

    async def resume_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        return await self._changed(lambda decision: self._session.schedules.resume(decision, schedule_id_of(schedule)))

    async def delete_schedule(self, schedule: ScheduleRef) -> ScheduleRecord:
        return await self._changed(lambda decision: self._session.schedules.delete(decision, schedule_id_of(schedule)))

    async def _changed(self, change: Callable[[Decision], ScheduleRecord]) -> ScheduleRecord:
        """The schedule as it is shown when the change is durable."""
        return self._session.schedules.shown(await self._committed(change))
