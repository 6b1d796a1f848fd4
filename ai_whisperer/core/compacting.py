"""How a conversation is made shorter: what becomes a line, what is covered, and what is always kept.

Cuts lie between groups only: an answer of the model with all the results of its calls. Kept word for word are the first
prompt of the thread, what the person said last, the prompt of the task that runs, and the last groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

from msgspec.structs import replace

from ai_whisperer.core.contexts import BYTES_FOR_A_TOKEN, shown_bytes, text_bytes
from ai_whisperer.core.shown import READ_RESULT, RESULT_BYTES, cut, prompt_of, turns_of
from ai_whisperer.core.view import Journal, bounds, head, uncovered
from ai_whisperer.domain.compactions import Compaction, CompactionKind, CompactionReason, Place
from ai_whisperer.domain.conversation import ToolCall, ToolTurn, Turn
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import MODEL, TOOL, StepRecord, StepState, TaskKind, TaskRecord, step_id

Wrote = Callable[[ToolCall], Sequence[str]]
"""Names the files that a call has written."""

_SAID_TOKENS = 8_192
_HEAD_BYTES = 600
_MOST_LISTED = 50
_CLIPS = (RESULT_BYTES, 32_000, 8_000, 2_000, 500)
_WORTH_IT = 0.9
"""A compaction that leaves more than this of what was there is not worth that the provider's cache is lost."""
_MOST_READ = 8
"""Lines are made of results that are read each time: at most so many times what the window takes."""


class Terms(Record, frozen=True, kw_only=True):
    """What a conversation has to fit into, in tokens, and what stands beside it, in bytes.

    `scale` is how many tokens there are for each that the size lets expect. The last `keep` groups stay as they are.
    """

    window: int
    limit_tokens: int
    target_tokens: int
    beside_bytes: int
    scale: float = 1.0
    keep: int = 2

    def tokens(self, size: int) -> int:
        return int((size + self.beside_bytes) / BYTES_FOR_A_TOKEN * self.scale) + 1

    @property
    def summary_bytes(self) -> int:
        """How long a summary may be: a sixteenth of the window, at most about 4,000 tokens."""
        return min(4_000, self.window // 16) * BYTES_FOR_A_TOKEN

    @property
    def card_bytes(self) -> int:
        """How long the card may be on which the runtime says how things stand."""
        return min(1_000, self.window // 16) * BYTES_FOR_A_TOKEN

    @property
    def said_bytes(self) -> int:
        """How much of what the person said is kept word for word."""
        return min(_SAID_TOKENS, self.window // 16) * BYTES_FOR_A_TOKEN


class Plan(Record, frozen=True, kw_only=True):
    """How a conversation is to be made shorter. `compaction` has neither summary nor card yet.

    `gone` are the turns that are newly covered, each with its place in the journal: the summary is to be made of them.
    If there are none, none is wanted.
    """

    compaction: Compaction
    gone: tuple[tuple[str, Turn], ...] = ()


class _Entry(Record, frozen=True, kw_only=True):
    """A prompt, which has the number 0, or a group up to the step `last`. Its results may be lines already."""

    task: TaskRecord
    last: int = 0
    steps: tuple[StepRecord, ...] = ()
    is_trimmed: bool = False

    @property
    def is_prompt(self) -> bool:
        return not self.steps

    def turns(self, most: int, *, trimmed: bool) -> list[Turn]:
        if self.is_prompt:
            return prompt_of(self.task)
        return turns_of(self.steps, result_bytes=most, trimmed=self.last if trimmed or self.is_trimmed else 0)

    def size(self, most: int, *, trimmed: bool = False) -> int:
        return sum(map(shown_bytes, self.turns(most, trimmed=trimmed)))

    @property
    def raw_size(self) -> int:
        """What has to be read to show its results as lines."""
        return sum(len(step.result.content) for step in self.steps if step.result is not None)


def plan(
    begun: Compaction, before: Compaction | None, journals: Sequence[Journal], terms: Terms, *, wrote: Wrote
) -> Plan | None:
    """How to make the conversation shorter, as far down as `terms` ask for; None if nothing would be gained.

    `before` is the compaction that holds now, `begun` the one that is under way. The task that runs is the last one.
    If it cannot be made short enough, this is as far as it gets.
    """
    entries = list(_entries(before, journals))
    clip = RESULT_BYTES if before is None or not before.result_bytes else before.result_bytes
    found: Plan | None = None
    for keep in dict.fromkeys((terms.keep, 1, 0)):
        movable = _movable(entries, keep, journals)
        for most in (each for each in _CLIPS if each <= clip):
            draft = _Draft(begun, before, entries, movable, most, terms)
            found = draft.trimmed() or draft.covered(wrote)
            if found.compaction.tokens_after <= terms.limit_tokens:
                return found if draft.is_worth_it(found, clip) else None
    return found if found is not None and draft.is_worth_it(found, clip) else None


def _entries(before: Compaction | None, journals: Sequence[Journal]) -> Iterator[_Entry]:
    left = uncovered(before, journals)
    for (task, steps), (covered, trimmed) in zip(left, bounds(before, left), strict=True):
        if task.kind is not TaskKind.COMPACTION:
            yield _Entry(task=task)
        group: list[StepRecord] = []
        for step in steps:
            if step.number <= covered or (step.kind is MODEL and step.answer is None):
                continue
            if step.kind is MODEL and group:
                yield _group(task, group, trimmed)
                group = []
            if step.kind is MODEL or (group and step.kind is TOOL):
                group.append(step)
        if group:
            yield _group(task, group, trimmed)


def _group(task: TaskRecord, steps: list[StepRecord], trimmed: int) -> _Entry:
    last = steps[-1].number
    return _Entry(task=task, last=last, steps=tuple(steps), is_trimmed=last <= trimmed)


def _movable(entries: Sequence[_Entry], keep: int, journals: Sequence[Journal]) -> int:
    """How many entries, from the first on, may become lines or be covered.

    The prompt of the task that runs is not among them, nor its last group: nobody was shown its results yet. With
    `keep` these are the last groups of the thread, as many as that.
    """
    own = journals[-1][0].id if journals else ""
    groups = [at for at, entry in enumerate(entries) if not entry.is_prompt]
    last = [at for at in groups if entries[at].task.id == own][-1:] or [
        at for at, entry in enumerate(entries) if entry.task.id == own
    ]
    return min([*(groups[-keep:] if keep else ()), *last], default=len(entries))


class _Draft:
    """One way to make a conversation shorter: with so many entries that may go, and results of so many bytes."""

    def __init__(
        self,
        begun: Compaction,
        before: Compaction | None,
        entries: Sequence[_Entry],
        movable: int,
        most: int,
        terms: Terms,
    ) -> None:
        self._begun, self._before, self._terms = begun, before, terms
        self._entries, self._movable, self._most = entries, movable, most
        self._sizes = [entry.size(most) for entry in entries]
        self._head = 0 if before is None else sum(map(shown_bytes, head(before)))

    def trimmed(self) -> Plan | None:
        """With old results as lines, the oldest first and no more than needed; None if that is not enough."""
        terms, size = self._terms, self._head + sum(self._sizes)
        read = 0
        for at, entry in enumerate(self._entries[: self._movable]):
            if entry.is_prompt:
                continue
            size += entry.size(self._most, trimmed=True) - self._sizes[at]
            read += entry.raw_size
            if read > _MOST_READ * terms.window * BYTES_FOR_A_TOKEN:
                return None
            if terms.tokens(size) <= terms.target_tokens:
                return Plan(compaction=self._with(size, Place(entry.task.id, entry.last)))
        return None

    def covered(self, wrote: Wrote) -> Plan:
        """With old results as lines and the oldest entries covered, no more than needed, but all if it must be."""
        lines = [
            entry.size(self._most, trimmed=True) if at < self._movable else self._sizes[at]
            for at, entry in enumerate(self._entries)
        ]
        trimmed = next((entry for entry in reversed(self._entries[: self._movable]) if not entry.is_prompt), None)
        place = None if trimmed is None else Place(trimmed.task.id, trimmed.last)
        best = Plan(compaction=self._with(self._head + sum(lines), place))
        for at in range(1, self._movable + 1):
            if at < len(self._entries) and not self._entries[at].is_prompt and self._entries[at - 1].is_prompt:
                continue  # a cut between a prompt and its first answer is the same as one before the prompt
            best = self._cut(at, sum(lines[at:]), place, wrote)
            if best.compaction.tokens_after <= self._terms.target_tokens:
                break
        return best

    def is_worth_it(self, found: Plan, clip: int) -> bool:
        compaction = found.compaction
        if compaction.reason is CompactionReason.ASKED:
            return bool(found.gone) or compaction.trimmed != (self._before and self._before.trimmed)
        now = self._terms.tokens(self._head + sum(entry.size(clip) for entry in self._entries))
        return compaction.tokens_after <= now * _WORTH_IT

    def _with(self, size: int, trimmed: Place | None) -> Compaction:
        """The compaction that holds now, with results before this place as lines."""
        before = self._before or self._begun
        return replace(
            before,
            reason=self._begun.reason,
            window=self._begun.window,
            asked_tokens=self._begun.asked_tokens,
            tokens_before=self._begun.tokens_before,
            problem="",
            kind=CompactionKind.TRIM,
            tokens_after=self._terms.tokens(size),
            trimmed=trimmed or before.trimmed,
            result_bytes=0 if self._most == RESULT_BYTES else self._most,
        )

    def _cut(self, at: int, rest: int, trimmed: Place | None, wrote: Wrote) -> Plan:
        """With all entries before this one covered."""
        gone, follows = self._entries[:at], self._entries[at] if at < len(self._entries) else None
        before = self._before
        task = follows.task if follows is not None else gone[-1].task
        in_task = follows is None or not follows.is_prompt
        rest += sum(map(shown_bytes, prompt_of(task))) if in_task else 0
        kept = before.said if before is not None else ()
        whole = [entry for entry in gone if entry.is_prompt and not (in_task and entry.task.id == task.id)]
        first = before.first if before is not None and before.first else ""
        if not first and whole and (before is None or before.covered is None or not before.first):
            first, whole = _first_of(whole[0].task, self._terms), whole[1:]
        prompts = {entry.task.id for entry in whole}
        said = _fitting([*kept, *(text for entry in gone for text in _said_in(entry, prompts))], self._terms)
        size = (
            rest
            + sum(map(text_bytes, (first, *said)))
            + self._terms.summary_bytes
            + self._terms.card_bytes
            + _HEAD_BYTES
        )
        steps = [step for entry in gone for step in entry.steps]
        began_at = task.started_at or 0.0
        ties = [entry.task.id for entry in gone if entry.task.id != task.id and entry.task.started_at == began_at]
        if before is not None and before.covered_at == began_at:
            ties += before.ties
        compaction = replace(
            self._with(size, trimmed),
            kind=CompactionKind.SUMMARY,
            steps=(0 if before is None else before.steps) + len(steps),
            covered=Place(task.id, gone[-1].last if in_task else 0),
            covered_at=began_at,
            ties=tuple(dict.fromkeys(ties)),
            first=first,
            said=said,
            files=_latest(before.files if before else (), [each for step in steps for each in _written(step, wrote)]),
            unknown=_latest(before.unknown if before else (), list(_unknown_in(steps))),
            untrusted=any(step.result is not None and step.result.untrusted for step in steps)
            or (before is not None and before.untrusted),
        )
        return Plan(compaction=compaction, gone=tuple(_handled(gone, self._most)))


def _handled(entries: Sequence[_Entry], most: int) -> Iterator[tuple[str, Turn]]:
    """The turns of the entries, each with the step that it is of; the step 0 is the prompt."""
    for entry in entries:
        number = 0 if entry.is_prompt else entry.steps[0].number
        for turn in entry.turns(most, trimmed=False):
            yield step_id(entry.task.id, number), turn
            number += 1


def _first_of(task: TaskRecord, terms: Terms) -> str:
    """The first prompt of the thread. Only one that would leave no room for anything else is cut."""
    most = terms.window // 4 * BYTES_FOR_A_TOKEN
    if text_bytes(task.prompt) <= most:
        return task.prompt
    shown, begin = cut(task.prompt, most)
    return f'{shown}\n\n[{READ_RESULT} with step "{step_id(task.id, 0)}" and offset {begin} gets the rest of it.]'


def _said_in(entry: _Entry, prompts: Set[str]) -> Iterator[str]:
    """What the person said there: the prompt, if it is that of one of these tasks, or messages to the task at work."""
    if entry.is_prompt:
        if entry.task.id in prompts and _is_persons(entry.task):
            yield entry.task.prompt
        return
    for step in entry.steps:
        yield from (said.text for said in step.said or ())


def _is_persons(task: TaskRecord) -> bool:
    """Whether the person said this. Marks cannot be forged."""
    return task.kind is TaskKind.PROMPT or '<said by="user" ' in task.prompt


def _fitting(texts: Sequence[str], terms: Terms) -> tuple[str, ...]:
    """The last ones of the texts that fit."""
    room, kept = terms.said_bytes, list[str]()
    for text in reversed(texts):
        room -= text_bytes(text)
        if room < 0:
            break
        kept.append(text)
    return tuple(reversed(kept))


def _written(step: StepRecord, wrote: Wrote) -> Sequence[str]:
    if step.call is None or step.result is None or step.result.is_error:
        return ()
    return wrote(step.call)


def _unknown_in(steps: Sequence[StepRecord]) -> Iterator[str]:
    for step in steps:
        if step.state is StepState.UNKNOWN and step.call is not None:
            yield f"{step.call.name} ({step.id})"


def _latest(before: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """All of them, each once where it stood last, the latest at the end; no more than somebody would read."""
    return tuple(reversed(list(dict.fromkeys([*reversed(new), *reversed(before)]))[:_MOST_LISTED]))


def outcome_of(made: Compaction | None) -> str:
    """What came of making a conversation shorter, for whoever wanted it."""
    if made is None or made.kind is None:
        return "There was nothing to make shorter: the conversation is as short as it can be."
    problem = f" There is no summary, since {made.problem}." if made.problem else ""
    return f"The conversation had about {made.tokens_before:,} tokens and has {made.tokens_after:,} now.{problem}"


def has_lines(turns: Sequence[Turn]) -> bool:
    """Whether a part of some result is shown, so that the model needs to know how to get the rest."""
    return any(isinstance(turn, ToolTurn) and READ_RESULT in turn.note for turn in turns)
