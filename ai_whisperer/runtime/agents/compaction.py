"""The step that makes a conversation shorter: it is planned, a model may be asked for a summary, and it is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from ai_whisperer.core import contexts
from ai_whisperer.core.compacting import Plan, Terms, plan
from ai_whisperer.core.state_card import Standing, card
from ai_whisperer.core.summaries import digest, problem_with, question, system_prompt
from ai_whisperer.core.view import Journal, view
from ai_whisperer.domain.compactions import CompactedThread, Compaction, CompactionKind, CompactionReason
from ai_whisperer.domain.conversation import ToolCall
from ai_whisperer.domain.definition import CLIENT, INHERIT, Access, Compact
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.tasks import COMPACTION, DONE, STARTED, StepRecord, StepState, TaskRecord
from ai_whisperer.domain.waits import WaitKind
from ai_whisperer.errors import ContextLimitError, ModelTooLongError, WhispererError
from ai_whisperer.runtime.agents.conversation import Conversation, Window, window_of
from ai_whisperer.runtime.agents.inquiry import Inquiry
from ai_whisperer.runtime.agents.memory import index_of, keeps_memory
from ai_whisperer.runtime.agents.parts import Owner
from ai_whisperer.tools.function import Tool
from ai_whisperer.tools.workplace import FILE

_TARGET = 2 / 5
_WORTH_ANOTHER = 1.1
"""What could not be made shorter is tried again when it has grown by this."""
_MOST_REFUSED = 2
_MOST_SCALE = 4.0
_SUMMARY_SETTINGS = (CLIENT, "timeout", "extra_headers")
_MOST_SUMMARY_TOKENS = 8_192
_QUESTIONS = (WaitKind.REPLY, WaitKind.QUESTION)


async def reason_to_compact(agent: Owner, conversation: Conversation, steps: Sequence[StepRecord]) -> Compaction | None:
    """The compaction that has to be made before the request which the last step is; None if it may be sent.

    Raises `ContextLimitError` if it is too long and nothing more can be done about it.
    """
    if agent.record.definition.context.compact is Compact.OFF or (found := await conversation.excess()) is None:
        return None
    tokens, window = found
    last = next((step.compaction for step in reversed(steps) if step.compaction is not None), None)
    if last is None or tokens > _WORTH_ANOTHER * (last.tokens_after or last.tokens_before):
        return _begun(CompactionReason.WINDOW, tokens, window, int(window.tokens * _TARGET))
    if window.is_known and tokens > window.most:
        raise ContextLimitError(
            f"The conversation has about {tokens:,} tokens and cannot be made shorter; the model takes "
            f"{window.tokens:,} with its answer. Shorten the prompts, grant fewer tools, or state a larger "
            "context.window."
        )
    return None


def compaction_asked_for(agent: Owner, conversation: Conversation) -> Compaction:
    """The compaction that a person wants: as short as can be."""
    return _begun(CompactionReason.ASKED, conversation.tokens(), window_of(agent), 0)


def compaction_after(
    refused: StepRecord, agent: Owner, conversation: Conversation, steps: Sequence[StepRecord]
) -> Compaction | None:
    """The compaction that follows when the provider says that a request is too long; None if it says so in vain.

    It is tried with half of the size, and once more with a quarter.
    """
    if refused.error is None or refused.error.code != ModelTooLongError.code:
        return None
    if agent.record.definition.context.compact is Compact.OFF:
        return None
    before = 0
    for step in reversed(steps[:-1]):
        if step.compaction is None or step.compaction.reason is not CompactionReason.REFUSED:
            break
        before += 1
    if before >= _MOST_REFUSED:
        return None
    tokens = conversation.tokens()
    return _begun(CompactionReason.REFUSED, tokens, window_of(agent), tokens // 2)


def _begun(reason: CompactionReason, tokens: int, window: Window, asked: int) -> Compaction:
    return Compaction(reason=reason, window=window.tokens, asked_tokens=asked, tokens_before=tokens)


def becoming(step: StepRecord, compaction: Compaction) -> StepRecord:
    """The request as the compaction that has to be made in its place. What was requested so far stays counted."""
    return replace(
        step,
        kind=COMPACTION,
        state=STARTED,
        attempt=step.attempt + (step.requests > 0),
        failures=0,
        outage_seconds=0.0,
        error=None,
        finished_at=None,
        said=None,  # nobody has heard it: the request that follows says it
        compaction=compaction,
    )


class CompactionStep:
    """The last step of a loop's journal, which makes the conversation shorter and has begun."""

    def __init__(self, agent: Owner, step: StepRecord, conversation: Conversation, task: TaskRecord) -> None:
        if step.compaction is None:
            raise ValueError(f"Step {step.id} is no compaction.")
        self._agent = agent
        self._begun = step.compaction
        self._conversation = conversation
        self._task = task
        self._journals: list[Journal] = []
        self._terms = self._terms_now()
        self._plan: Plan | None = None
        self._notes = ""

    def _terms_now(self) -> Terms:
        conversation, begun, window = self._conversation, self._begun, window_of(self._agent)
        by_size = (conversation.shown_size + conversation.beside_bytes) // contexts.BYTES_FOR_A_TOKEN + 1
        is_refused = begun.reason is CompactionReason.REFUSED  # so it is smaller than it is thought to be
        return Terms(
            window=min(window.tokens, begun.tokens_before) if is_refused else window.tokens,
            limit_tokens=min(window.limit, begun.asked_tokens) if is_refused else window.limit,
            target_tokens=begun.asked_tokens,
            beside_bytes=conversation.beside_bytes,
            scale=min(max(begun.tokens_before / by_size, 1.0), _MOST_SCALE) if conversation.size else 1.0,
            keep=self._agent.record.definition.context.keep,
        )

    async def prepare(self) -> Inquiry | None:
        """Plan it; returns what a model is to be asked for a summary, if one is wanted."""
        self._journals = await self._conversation.journals()
        if keeps_memory(self._agent):
            self._notes = await index_of(self._agent)
            self._terms = replace(self._terms, notes_bytes=contexts.text_bytes(self._notes))
        self._plan = plan(self._begun, self._held, self._journals, self._terms, wrote=self._written_by)
        if self._plan is None or not self._plan.gone:
            return None
        terms, agent = self._terms, self._agent
        most = max(terms.window - min(_MOST_SUMMARY_TOKENS, terms.window // 4), 1) * contexts.BYTES_FOR_A_TOKEN // 2
        turn = question(self._earlier, self._plan.gone, most=int(most / terms.scale))
        system, settings = system_prompt(terms.summary_bytes), agent.record.definition.settings
        named = agent.record.definition.context.model
        return Inquiry(
            models=agent.record.definition.models if named == INHERIT else (named,),
            system=system,
            turns=(turn,),
            tools=(),
            settings={name: settings[name] for name in _SUMMARY_SETTINGS if name in settings},
            input_tokens=lambda: contexts.input_tokens(system, (), (turn,)),
            output_tokens=lambda: min(_MOST_SUMMARY_TOKENS, terms.window // 4),
            is_summary=True,
        )

    def finished(self, step: StepRecord, *, at: float) -> tuple[StepRecord, CompactedThread | None]:
        """The step as it has ended, and the compaction that holds from now on; None if nothing could be gained.

        A summary that cannot be used, or that no model would write, is replaced by a list that the runtime makes.
        """
        ended = replace(step, state=DONE, finished_at=step.finished_at or at, retry_at=None, error=None)
        if self._plan is None:
            return replace(ended, compaction=self._begun), None
        compaction = self._plan.compaction
        if self._plan.gone:
            compaction = self._with_summary(compaction, step)
        if compaction.covered is not None:
            compaction = replace(compaction, card=self._card(compaction), notes=self._notes)
        compacted = CompactedThread(
            session_id=self._task.session_id,
            agent_id=self._task.agent_id,
            thread_id=self._task.thread_id,
            task_id=self._task.id,
            number=step.number,
            arrival=self._least_arrival(compaction),
            compaction=compaction,
        )
        tokens_after = self._tokens_with(compacted)
        if tokens_after >= self._tokens_with(self._conversation.compacted):
            return replace(ended, compaction=self._begun), None
        compaction = replace(compaction, tokens_after=tokens_after)
        return replace(ended, compaction=compaction), replace(compacted, compaction=compaction)

    def _tokens_with(self, compacted: CompactedThread | None) -> int:
        """How long the conversation is if this is the compaction that holds."""
        return self._terms.tokens(sum(map(contexts.shown_bytes, view(compacted, self._journals).turns)))

    def _with_summary(self, compaction: Compaction, step: StepRecord) -> Compaction:
        gone = () if self._plan is None else self._plan.gone
        summary = "" if step.answer is None else step.answer.text.strip()
        problem = problem_with(
            summary, gone, earlier=self._earlier, is_tool=lambda name: self._agent.registry.find(name) is not None
        )
        if step.state is StepState.FAILED and step.error is not None:
            problem = f"no model wrote one: {step.error.message.rstrip('.')}"
        if not problem:
            return replace(compaction, summary=summary)
        listed = digest(self._earlier, gone, most=self._terms.summary_bytes)
        return replace(compaction, kind=CompactionKind.TRIM, summary=listed, problem=problem)

    @property
    def _held(self) -> Compaction | None:
        compacted = self._conversation.compacted
        return None if compacted is None else compacted.compaction

    @property
    def _earlier(self) -> str:
        """The summary so far."""
        return "" if self._held is None else self._held.summary

    def _written_by(self, call: ToolCall) -> list[str]:
        tool = self._agent.registry.find(call.name)
        if not isinstance(tool, Tool):
            return []
        try:
            touched = tool.touched_by(call.arguments, self._agent.workplace)
        except WhispererError:
            return []
        return [
            each.resource.removeprefix(FILE)
            for each in touched
            if each.access is Access.WRITE and each.resource.startswith(FILE)
        ]

    def _least_arrival(self, compaction: Compaction) -> int:
        """All tasks of the thread that are shown, or that wait and have arrived, have this arrival or a later one."""
        gone = set(compaction.ties)
        shown = (
            task.arrival
            for task, _ in self._journals
            if (task.started_at or 0.0) >= compaction.covered_at and task.id not in gone
        )
        waiting = (item.arrival for item in self._agent.work.waiting)
        returning = (task.arrival for task in self._agent.parts.roster.returning.values())
        return min([self._task.arrival, *shown, *waiting, *returning])

    def _card(self, compaction: Compaction) -> str:
        return card(self._standing(compaction), most=self._terms.card_bytes)

    def _standing(self, compaction: Compaction) -> Standing:
        parts, me = self._agent.parts, self._agent.agent_id
        return Standing(
            delegated=sorted(filter(self._reports_here, self._others_tasks()), key=attrgetter("arrival")),
            questions=[wait for wait in parts.waits.all() if wait.agent_id == me and wait.kind in _QUESTIONS],
            locks=[lock for lock in parts.locks.book.held() if lock.agent_id == me],
            unanswered=list(filter(self._is_unanswered, parts.mail.in_hands_of(self._task.id))),
            unread=[item for item in self._agent.work.waiting if isinstance(item, MailRecord)],
            schedules=parts.schedules.of_agent(me),
            files=compaction.files,
            unknown=compaction.unknown,
            budget=self._task.budget,
            used=parts.trees.used(self._task) if self._task.budget is not None else self._task.usage,
        )

    def _is_unanswered(self, mail: MailRecord) -> bool:
        """Whether an answer to the mail is due. One that is an answer itself needs none, unless the task is for it."""
        if mail.state not in (MailState.DELIVERED, MailState.READ):
            return False
        return mail.reply_to is None or mail.id == self._task.mail_id

    def _reports_here(self, task: TaskRecord) -> bool:
        to = None if task.origin is None else task.origin.report_to
        return to is not None and (to.agent_id, to.thread_id) == (self._agent.agent_id, self._task.thread_id)

    def _others_tasks(self) -> Iterator[TaskRecord]:
        for agent in self._agent.parts.roster.agents.values():
            yield from (item for item in agent.work.waiting if isinstance(item, TaskRecord))
            yield from (loop.task for loop in agent.work.loops.values())


def with_sizes(failed: StepRecord, tokens: int, steps: Sequence[StepRecord]) -> StepRecord:
    """A request that was too long for its provider after all, with what was tried."""
    tried = [step.compaction for step in steps if step.compaction is not None]
    if failed.error is None or failed.error.code != ModelTooLongError.code or not tried:
        return failed
    sizes = ", then ".join(f"{each.tokens_before:,}" for each in tried)
    told = f"{failed.error.message} It had about {sizes} tokens and was made shorter; it has {tokens:,} now."
    return replace(failed, error=replace(failed.error, message=told))
