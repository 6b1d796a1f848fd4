"""What models are shown of conversations, as a person looks at it and makes it shorter."""

from __future__ import annotations

from ai_whisperer.choices import nearest
from ai_whisperer.core import contexts
from ai_whisperer.core.compacting import has_lines
from ai_whisperer.core.paging import checked_id
from ai_whisperer.core.shown import RESULT_BYTES
from ai_whisperer.core.view import view
from ai_whisperer.domain.compactions import ContextReport
from ai_whisperer.domain.definition import Compact
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.runtime.agents.conversation import journals_of, prepare_model, window_of
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.api.base import AgentRef
from ai_whisperer.runtime.api.tasks import SessionWork

_SHOWN_THREADS = 10
_NEAR_THREADS = 1_000
"""A name that is misspelled is looked for among so many of the latest."""


class SessionContext(SessionWork):
    """The part of the session manager that looks at conversations."""

    async def get_context(self, agent_id: AgentRef, *, thread_id: str | None = None) -> ContextReport:
        agent = self._find_agent(agent_id)
        thread = await self._thread_of(agent, thread_id)
        compacted, journals = await journals_of(self._session.kernel.reads, agent.agent_id, thread)
        await prepare_model(agent)
        definition, window = agent.record.definition, window_of(agent)
        compacts = definition.context.compact is not Compact.OFF
        turns, since = view(compacted, journals, result_bytes=RESULT_BYTES if compacts else 0)
        tells_rest = compacted is not None or has_lines(turns)
        specs = agent.registry.specs_with_rest if tells_rest else agent.registry.specs
        return ContextReport(
            agent_id=agent.agent_id,
            thread_id=thread,
            tokens=contexts.input_tokens(definition.prompt, specs, turns, since=since),
            window=window.tokens,
            limit_tokens=window.limit,
            window_known=window.is_known,
            compacts=compacts,
            turns=len(turns),
            tasks=len(journals),
            cached_share=agent.work.used.usage.cached_share,
            compaction=None if compacted is None else compacted.compaction,
            compacted_in=None if compacted is None else f"{compacted.task_id}.{compacted.number}",
        )

    async def compact_context(
        self, agent_id: AgentRef, *, thread_id: str | None = None, task_id: str | None = None
    ) -> TaskRecord:
        agent, intake = self._find_agent(agent_id), self._intake
        known = await intake.known_task(task_id)
        if known is None:
            thread = await self._thread_of(agent, thread_id)
            known = await intake.known_task(task_id)  # another call may have been accepted meanwhile
        if known is not None:
            return await intake.compaction_again(known, agent, thread_id)
        return await intake.compaction(agent, thread, task_id=task_id)

    async def _thread_of(self, agent: Owner, given: str | None) -> str:
        """The thread that is meant, or the one in which the agent was given something last."""
        reads = self._session.kernel.reads
        if given is not None and await reads.has_thread(agent.agent_id, checked_id(given)):
            return given
        latest = await reads.latest_threads(agent.agent_id, limit=1 if given is None else _NEAR_THREADS)
        if given is not None:
            near = nearest(given, latest)
            hint = f" Did you mean '{near}'?" if near else ""
            shown = ", ".join(latest[:_SHOWN_THREADS]) or "none yet"
            raise InvalidInputError(f"'{agent.agent_id}' has no thread '{given}'.{hint} Its latest threads: {shown}.")
        if not latest:
            raise InvalidInputError(f"'{agent.agent_id}' has no conversation yet. Give it a task first.")
        return latest[0]
