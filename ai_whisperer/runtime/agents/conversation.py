"""The conversation of a loop: what its model is shown, and how much that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ai_whisperer.core import contexts
from ai_whisperer.core.shown import READ_RESULT, RESULT_BYTES, notes_shown, prompt_of, turns_of
from ai_whisperer.core.view import Journal, view
from ai_whisperer.domain.compactions import CompactedThread
from ai_whisperer.domain.conversation import ToolSpec, ToolTurn, Turn, UserTurn
from ai_whisperer.domain.definition import NEVER_COMPACT
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.errors import ContextLimitError, ModelError
from ai_whisperer.models.base import Model
from ai_whisperer.runtime.agents.inquiry import Inquiry
from ai_whisperer.runtime.agents.journal import TaskJournal
from ai_whisperer.runtime.agents.memory import index_of, keeps_memory
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.reads import Reads

_SMALL_BYTES = 8_000
"""For a conversation of fewer bytes nobody looks up how much its model can take."""
_FEWEST_BYTES_FOR_A_TOKEN = 2


class Window(NamedTuple):
    """How many tokens a model can take with its answer, and whether that is known.

    A request beyond `limit` is made shorter first, one beyond `most` is not sent.
    """

    tokens: int
    limit: int
    most: int
    is_known: bool


class Conversation:
    """What the model of a running task is shown: what was shown before, and the steps that have ended since.

    `compacted` is the compaction that holds, `since` how many turns are from before it was made. One that
    `is_small` fits for sure. With `tells_rest` the model is told how to get the rest of results. A task is passed over
    if later ones of the thread would not be shown it: see `widen`.
    """

    __slots__ = (
        "_agent",
        "_attached",
        "_journal",
        "_result_bytes",
        "_shown_steps",
        "compacted",
        "has_parts",
        "is_passed_over",
        "is_small",
        "since",
        "size",
        "tells_rest",
        "turns",
    )

    def __init__(self, agent: Owner, journal: TaskJournal) -> None:
        self._agent = agent
        self._journal = journal
        self._shown_steps = self.size = self.since = 0
        self._result_bytes = 0 if agent.record.definition.context.compact is NEVER_COMPACT else RESULT_BYTES
        self.is_passed_over = self.tells_rest = self.has_parts = False
        self.is_small = True
        self.turns: tuple[Turn, ...] = ()
        self._attached = 0
        self.compacted: CompactedThread | None = None

    async def bring_up_to_date(self) -> None:
        """Add what is new; raises `ContextLimitError` if it is too much for the memory that the agent has."""
        steps, own = self._journal.steps, self._journal.task
        if self.turns:
            unshown = steps[self._shown_steps :]
            new: Sequence[Turn] = turns_of(unshown, result_bytes=self._result_bytes, heard=unshown[0].number)
        elif own.thread_id in (own.id, own.mail_id) and _has_just_begun(steps) and not keeps_memory(self._agent):
            new = prompt_of(own)  # and so has its thread
        else:
            new = await self._put_together()
        self.turns = (*self.turns, *new)
        self._shown_steps = len(steps) - 1  # the last one is the request itself
        self._weigh(new)

    async def _put_together(self) -> Sequence[Turn]:
        """All that is to be shown of the thread."""
        journals = await self.journals()  # which also finds the compaction that holds
        if keeps_memory(self._agent):
            journals = await self._recalled(journals)
        usual = 0 if self._agent.record.definition.context.compact is NEVER_COMPACT else RESULT_BYTES
        shown, self.since = view(self.compacted, journals, result_bytes=usual)
        if self.compacted is not None:
            self.tells_rest = True
            usual = self.compacted.compaction.result_bytes or usual
        self._result_bytes = usual
        return shown

    async def _recalled(self, journals: list[Journal]) -> list[Journal]:
        """Look into the agent's memory as the task begins, and journal what its model is told of it.

        What the thread shows already is not told again, and nothing changes while the task runs: so a provider finds
        the beginning of each request as it was.
        """
        *before, (own, steps) = journals
        if own.notes is not None or any(step.answer is not None for step in steps):
            return journals
        notes = await index_of(self._agent)
        if notes and notes != notes_shown(view(self.compacted, before).turns):
            decision = self._agent.parts.kernel.decide(f"task:{own.id}")
            self._journal.record_notes(decision, notes)
            await decision.submit()
        return [*before, (self._journal.task, steps)]

    def forget(self, compacted: CompactedThread | None = None) -> None:
        """Let it be put together anew: it is to be shown in another way."""
        self.compacted = compacted or self.compacted
        self.turns = ()
        self.has_parts = False
        self.size = self._attached = self.since = 0

    async def journals(self) -> list[Journal]:
        """The journals of the thread, that of the running task last. Tasks that are covered are not read.

        What went before is durable by now, and so can be read.
        """
        own, steps = self._journal.task, self._journal.steps
        reads, erasing = self._agent.parts.kernel.reads, self._agent.parts.kernel.erasing
        with reads.under_way.one_more():
            self.compacted, journals = await journals_of(reads, own.agent_id, own.thread_id, known=self.compacted)
            if self.compacted is not None and erasing.has_erased(own.agent_id, own.thread_id, self.compacted.arrival):
                self.compacted = None
            journals = [
                each for each in journals if not erasing.has_erased(own.agent_id, own.thread_id, each[0].arrival)
            ]
        self.is_passed_over = self.compacted is not None and own.arrival < self.compacted.arrival
        return [*(each for each in journals if each[0].id != own.id), (own, steps)]

    def widen(self, decision: Decision) -> None:
        """See to it that the running task is read with its thread.

        One that was covered, or passed over while it waited, arrived before those that are.
        """
        if self.compacted is not None:
            self.is_passed_over = False
            self.compacted = replace(self.compacted, arrival=self._journal.task.arrival)
            decision.unit.put_compacted(self.compacted)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is told of them. The one for the rest of results comes last, and stays then."""
        registry = self._agent.registry
        return registry.specs_with_rest if self.tells_rest else registry.specs

    def inquiry(self) -> Inquiry:
        """What the agent's own model is asked."""
        agent, definition = self._agent, self._agent.record.definition
        return Inquiry(
            models=definition.models,
            system=definition.prompt,
            turns=self.turns,
            tools=agent.registry.specs_with_rest if self.tells_rest else agent.registry.specs,
            settings=definition.settings,
            input_tokens=self.tokens,
            output_tokens=self._output_tokens,
            has_parts=self.has_parts,
        )

    def _output_tokens(self) -> int:
        return contexts.output_tokens(self._agent.record.definition.settings)

    def tokens(self) -> int:
        """About how many tokens a request with it has."""
        prompt = self._agent.record.definition.prompt
        return contexts.input_tokens(prompt, self.specs, self.turns, since=self.since)

    @property
    def shown_size(self) -> int:
        """The bytes that its tokens follow from."""
        return self.size - self._attached

    @property
    def beside_bytes(self) -> int:
        """What a request takes beside the conversation."""
        return contexts.text_bytes(self._agent.record.definition.prompt) + self._agent.registry.told_bytes

    async def excess(self) -> tuple[int, Window] | None:
        """How many tokens it has if that is more than a request may have, and the window; None if it is not."""
        if self._agent.record.definition.context.window is None:
            await prepare_model(self._agent)
        window = window_of(self._agent)
        size = self.shown_size + self.beside_bytes
        if size < _FEWEST_BYTES_FOR_A_TOKEN * window.limit:
            return None
        tokens = max(self.tokens(), contexts.least_tokens(size))
        return (tokens, window) if tokens > window.limit else None

    def _weigh(self, new: Sequence[Turn]) -> None:
        """Count what it takes in memory, and look whether some result is shown in part."""
        agent = self._agent
        for turn in new:
            size = contexts.turn_bytes(turn)
            self.size += size
            if type(turn) is ToolTurn:
                if turn.note and READ_RESULT in turn.note:
                    self.tells_rest = True
            elif type(turn) is UserTurn and turn.parts:
                self.has_parts = True
                self._attached += size - contexts.shown_bytes(turn)
        self.is_small = self.size < _SMALL_BYTES and agent.record.definition.context.window is None
        most, work = agent.limits.max_context_bytes, agent.work
        if self.size > most or (len(work.loops) > 1 and work.context_bytes > most):
            raise ContextLimitError(
                f"The conversations of '{agent.agent_id}' take {work.context_bytes:,} bytes of memory and "
                f"may take {most:,} (max_context_bytes); this one takes {self.size:,}. Begin a new thread, "
                "let fewer tasks run at the same time, or raise the limit."
            )


def _has_just_begun(steps: Sequence[StepRecord]) -> bool:
    """Whether nothing has come of the task yet, and nobody has said anything to it."""
    return len(steps) == 1 and steps[0].attempt == 1 and steps[0].said is None


async def journals_of(
    reads: Reads, agent_id: str, thread_id: str, *, known: CompactedThread | None = None
) -> tuple[CompactedThread | None, list[Journal]]:
    """The latest compaction of a thread, and the journals of its tasks that are not covered, as the store has them."""
    compacted = known or await reads.compacted_thread(agent_id, thread_id)
    arrival, began_at = (0, 0.0) if compacted is None else (compacted.arrival, compacted.compaction.covered_at)
    tasks = await reads.tasks_of_thread(agent_id, thread_id, arrival=arrival, began_at=began_at)
    steps = await reads.steps_of_thread(agent_id, thread_id, arrival=arrival, began_at=began_at)
    return compacted, [(task, steps.get(task.id, [])) for task in tasks]


def window_of(agent: Owner) -> Window:
    """How much the agent's model can take: as its definition says, else as is known of the model, else as most can."""
    definition = agent.record.definition
    tokens = definition.context.window or _known_window(agent)
    window = tokens or contexts.DEFAULT_WINDOW
    limit, most = contexts.limit_tokens(window, definition.settings), contexts.most_tokens(window, definition.settings)
    return Window(window, limit, most, tokens is not None)


async def prepare_model(agent: Owner) -> None:
    """Let the model learn how much it can take, which may have to be read first."""
    try:
        prepare = getattr(_model_now(agent), "prepare", None)
    except ModelError:
        return  # the request itself tells what is wrong
    if prepare is not None:
        await prepare()


def _known_window(agent: Owner) -> int | None:
    try:
        known = getattr(_model_now(agent), "context_window", None)
    except ModelError:
        return None
    return None if known is None else known()


def _model_now(agent: Owner) -> Model:
    """The first of the agent's models that does not refuse it; raises a `ModelError`."""
    names, barred = agent.record.definition.models, agent.barred_models()
    return agent.model(next((name for name in names if name not in barred), names[0]))
