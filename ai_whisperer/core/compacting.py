"""How a conversation is made shorter: what becomes a line, what is covered, and what is always kept.

Cuts lie between groups only: an answer of the model with all the results of its calls. Kept word for word are the first
prompt of the thread, what the person said last, the prompt of the task that runs, and the last groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from ai_whisperer.core.contexts import BYTES_FOR_A_TOKEN, shown_bytes, text_bytes
from ai_whisperer.core.groups import Group, Sizes, groups_of, movable
from ai_whisperer.core.shown import READ_RESULT, RESULT_BYTES, cut
from ai_whisperer.core.view import Journal, head
from ai_whisperer.domain.compactions import Compaction, CompactionKind, CompactionReason, Place
from ai_whisperer.domain.conversation import ToolCall, ToolTurn, Turn
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import StepRecord, StepState

Wrote = Callable[[ToolCall], Sequence[str]]
"""Names the files that a call has written."""

_SAID_TOKENS = 8_192
_HEAD_BYTES = 600
_LEAST_PART = 600
_PART_NOTE = 300
"""So many bytes of what a person said are kept at least if they are in part, and so many are for the note on it."""
_MOST_LISTED = 50
_CLIPS = (RESULT_BYTES, 32_000, 8_000, 2_000, 500)
_WORTH_IT = 0.9
"""A compaction that leaves more than this of what was there is not worth that the provider's cache is lost."""
_MOST_READ = 8
"""Lines are made of results that are read each time: at most so many times what the window takes."""


class Terms(Record, frozen=True, kw_only=True):
    """What a conversation has to fit into, in tokens, and what stands beside it, in bytes.

    `scale` is how many tokens there are for each that the size lets expect. The last `keep` groups stay as they are.
    The agent is told `notes_bytes` of its own notes in place of what is covered.
    """

    window: int
    limit_tokens: int
    target_tokens: int
    beside_bytes: int
    scale: float = 1.0
    keep: int = 2
    notes_bytes: int = 0

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
    def first_bytes(self) -> int:
        """How much of the first prompt is kept word for word."""
        return self.window // 4 * BYTES_FOR_A_TOKEN

    @property
    def head_bytes(self) -> int:
        """How long all may be that stands for what is covered, apart from what is kept word for word."""
        return self.summary_bytes + self.card_bytes + self.notes_bytes + _HEAD_BYTES

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


def plan(
    begun: Compaction, before: Compaction | None, journals: Sequence[Journal], terms: Terms, *, wrote: Wrote
) -> Plan | None:
    """How to make the conversation shorter, as far down as `terms` ask for; None if nothing would be gained.

    `before` is the compaction that holds now, `begun` the one that is under way. The task that runs is the last one.
    If it cannot be made short enough, this is as far as it gets.
    """
    groups = list(groups_of(before, journals))
    own = journals[-1][0].id if journals else ""
    clip = RESULT_BYTES if before is None or not before.result_bytes else before.result_bytes
    sizes, found = Sizes(groups), None
    for keep in dict.fromkeys((terms.keep, 1, 0)):
        may_go = movable(groups, keep, own)
        for most in (each for each in _CLIPS if each <= clip):
            draft = _Draft(begun, before, groups, sizes, may_go, most, terms)
            found = draft.trimmed() or draft.covered(wrote)
            if found.compaction.tokens_after <= terms.limit_tokens:
                return found if draft.is_worth_it(found, clip) else None
    return found if found is not None and draft.is_worth_it(found, clip) else None


class _Draft:
    """One way to make a conversation shorter: with so many groups that may go, and results of so many bytes."""

    def __init__(
        self,
        begun: Compaction,
        before: Compaction | None,
        groups: Sequence[Group],
        sizes: Sizes,
        movable: int,
        most: int,
        terms: Terms,
    ) -> None:
        self._begun, self._before, self._terms = begun, before, terms
        self._groups, self._sizes, self._movable, self._most = groups, sizes, movable, most
        self._head = 0 if before is None else sum(map(shown_bytes, head(before)))

    def trimmed(self) -> Plan | None:
        """With old results as lines, the oldest first and no more than needed; None if that is not enough."""
        terms, size = self._terms, self._size_now(self._most)
        read = 0
        for at, group in enumerate(self._groups[: self._movable]):
            if group.is_prompt:
                continue
            size += self._sizes.of(at, self._most, trimmed=True) - self._sizes.of(at, self._most)
            read += group.raw_size
            if read > _MOST_READ * terms.window * BYTES_FOR_A_TOKEN:
                return None
            if terms.tokens(size) <= terms.target_tokens:
                return Plan(compaction=self._with(size, Place(group.task.id, group.last)))
        return None

    def covered(self, wrote: Wrote) -> Plan:
        """With old results as lines and the oldest groups covered, no more than needed, but all if it must be."""
        lines = [self._sizes.of(at, self._most, trimmed=at < self._movable) for at in range(len(self._groups))]
        trimmed = next((group for group in reversed(self._groups[: self._movable]) if not group.is_prompt), None)
        place = None if trimmed is None else Place(trimmed.task.id, trimmed.last)
        cut_at = rest = 0
        for at, shown in self._cuts(lines):
            cut_at, rest = at, shown
            if self._terms.tokens(shown) <= self._terms.target_tokens:
                break
        if not cut_at:
            return Plan(compaction=self._with(self._head + sum(lines), place))
        return self._cut(cut_at, rest, place, wrote)

    def _cuts(self, lines: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The places where it can be cut, each with how much would be shown then, at most.

        A cut between a prompt and its first answer is the same as one before the prompt.
        """
        groups, terms, before = self._groups, self._terms, self._before
        rest = sum(lines)
        is_first_known = before is not None and bool(before.first)
        first = text_bytes(before.first) if before is not None else 0
        said = sum(map(text_bytes, before.said)) if before is not None else 0
        prompt = prompt_said = 0  # of the latest task: it stays if the cut is within that
        for at, group in enumerate(groups[: self._movable], 1):
            words = sum(text_bytes(text) for _, text in group.said())
            rest -= lines[at - 1]
            if group.is_prompt:
                if prompt and not is_first_known:
                    is_first_known, first, prompt_said = True, min(prompt, terms.first_bytes), 0
                said += prompt_said
                prompt, prompt_said = lines[at - 1], words
            else:
                said += words
            follows = groups[at] if at < len(groups) else None
            if follows is not None and group.is_prompt and not follows.is_prompt:
                continue
            head_bytes, whole = first, said
            if follows is None or not follows.is_prompt:
                head_bytes += prompt
            elif is_first_known:
                whole += prompt_said
            else:
                head_bytes += min(prompt, terms.first_bytes)
            yield at, rest + head_bytes + min(whole, terms.said_bytes) + terms.head_bytes

    def is_worth_it(self, found: Plan, clip: int) -> bool:
        compaction = found.compaction
        if compaction.reason is CompactionReason.ASKED:
            return bool(found.gone) or compaction.trimmed != (self._before and self._before.trimmed)
        spare = self._terms.summary_bytes + self._terms.card_bytes if found.gone else 0  # both may turn out short
        least = compaction.tokens_after - self._terms.tokens(spare) + self._terms.tokens(0)
        return least <= self._terms.tokens(self._size_now(clip)) * _WORTH_IT

    def _size_now(self, most: int) -> int:
        """What is shown without this compaction, with so many bytes of each result."""
        return self._head + sum(self._sizes.of(at, most) for at in range(len(self._groups)))

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

    def _cut(self, at: int, size: int, trimmed: Place | None, wrote: Wrote) -> Plan:
        """With all groups before this one covered, so that about so many bytes are shown."""
        gone, follows = self._groups[:at], self._groups[at] if at < len(self._groups) else None
        before = self._before
        task = follows.task if follows is not None else gone[-1].task
        in_task = follows is None or not follows.is_prompt
        whole = [group for group in gone if not (group.is_prompt and in_task and group.task.id == task.id)]
        first = "" if before is None else before.first
        if not first and (begins := next((group for group in whole if group.is_prompt), None)) is not None:
            first = _in_part(begins.prompt, begins.place, self._terms.first_bytes)
            whole = [group for group in whole if group is not begins]
        new = [said for group in whole for said in group.said()]
        kept = () if before is None else before.said
        steps = [step for group in gone for step in group.steps]
        began_at = task.started_at or 0.0
        ties = [group.task.id for group in gone if group.task.id != task.id and group.task.started_at == began_at]
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
            said=_fitting(kept, new, self._terms),
            files=_latest(before.files if before else (), [each for step in steps for each in _written(step, wrote)]),
            unknown=_latest(before.unknown if before else (), list(_unknown_in(steps))),
            untrusted=any(step.result is not None and step.result.untrusted for step in steps)
            or (before is not None and before.untrusted),
        )
        return Plan(compaction=compaction, gone=tuple(each for group in gone for each in group.handled(self._most)))


def _in_part(text: str, step: str, most: int) -> str:
    """The text if it has no more bytes than that, else its beginning and its end, and how to get the rest."""
    if text_bytes(text) <= most:
        return text
    shown, begin = cut(text, most)
    return f'{shown}\n\n[{READ_RESULT} with step "{step}" and offset {begin} gets the rest of it.]'


def _fitting(kept: Sequence[str], new: Sequence[tuple[str, str]], terms: Terms) -> tuple[str, ...]:
    """The last ones that fit of the words that were kept so far and of new ones, each of these with its step.

    A new one for which there is not enough room is kept in part.
    """
    room, found = terms.said_bytes, list[str]()
    for step, text in reversed((*(("", each) for each in kept), *new)):
        if text_bytes(text) > room:
            if step and room >= _LEAST_PART:
                found.append(_in_part(text, step, room - _PART_NOTE))
            break
        room -= text_bytes(text)
        found.append(text)
    return tuple(reversed(found))


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
