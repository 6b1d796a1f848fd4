"""What a conversation is made of when it is made shorter: prompts, and answers with all the results of their calls.

Cuts lie between these, and never within one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ai_whisperer.core.contexts import shown_bytes
from ai_whisperer.core.marks import quoted
from ai_whisperer.core.shown import prompt_of, turns_of
from ai_whisperer.core.view import Journal, bounds, uncovered
from ai_whisperer.domain.attachments import Attachment
from ai_whisperer.domain.compactions import Compaction
from ai_whisperer.domain.conversation import ToolTurn, Turn
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import MODEL, TOOL, StepRecord, TaskKind, TaskRecord, step_id


class Group(Record, frozen=True, kw_only=True):
    """An answer with its results, up to the step `last`, or the prompt of a task, which has no steps.

    Its results may be lines already.
    """

    task: TaskRecord
    last: int = 0
    steps: tuple[StepRecord, ...] = ()
    is_trimmed: bool = False

    @property
    def is_prompt(self) -> bool:
        return not self.steps

    @property
    def place(self) -> str:
        """The step that it begins with."""
        return step_id(self.task.id, 0 if self.is_prompt else self.steps[0].number)

    @property
    def prompt(self) -> str:
        """What the task was told, as it is kept word for word."""
        return _with_parts(self.task.prompt, self.task.parts or ())

    def turns(self, most: int, *, trimmed: bool = False) -> list[Turn]:
        """What is shown of it, with up to so many bytes of each result."""
        if self.is_prompt:
            return prompt_of(self.task)
        return turns_of(self.steps, result_bytes=most, trimmed=self.last if trimmed or self.is_trimmed else 0)

    def size(self, most: int, *, trimmed: bool = False) -> int:
        return sum(map(shown_bytes, self.turns(most, trimmed=trimmed)))

    @property
    def raw_size(self) -> int:
        """What has to be read to show its results as lines."""
        return sum(len(step.result.content) for step in self.steps if step.result is not None)

    def handled(self, most: int) -> Iterator[tuple[str, Turn]]:
        """Its turns, each with the step that it is of; the step 0 is the prompt."""
        said = () if self.is_prompt else self.steps[0].said or ()
        number = 0 if self.is_prompt else self.steps[0].number
        for at, turn in enumerate(self.turns(most)):
            number += type(turn) is ToolTurn
            yield step_id(said[at].task_id, 0) if at < len(said) else step_id(self.task.id, number), turn

    def said(self) -> Iterator[tuple[str, str]]:
        """What the person said there, each with the step that has it whole: as the prompt, or to the task at work.

        What was said to the task at work is in the journal as the prompt of a task of its own.
        """
        if self.is_prompt:
            if _is_persons(self.task):
                yield self.place, self.prompt
            return
        for step in self.steps:
            for said in step.said or ():
                yield step_id(said.task_id, 0), _with_parts(said.text, said.parts)


class Sizes:
    """What the groups of a conversation take when they are shown in one way or another. Each is measured once."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._found: dict[tuple[int, int, bool], int] = {}

    def of(self, at: int, most: int, *, trimmed: bool = False) -> int:
        """The size of this group with up to so many bytes of each result."""
        group = self._groups[at]
        key = (at, most, trimmed) if len(group.steps) > 1 else (at, 0, False)  # an answer alone is shown in one way
        size = self._found.get(key)
        if size is None:
            size = self._found[key] = group.size(most, trimmed=trimmed)
        return size


def groups_of(before: Compaction | None, journals: Sequence[Journal]) -> Iterator[Group]:
    """All that is shown of these journals, in its order; `before` is the compaction that holds now."""
    left = uncovered(before, journals)
    for (task, steps), (covered, trimmed) in zip(left, bounds(before, left), strict=True):
        if task.kind is not TaskKind.COMPACTION:
            yield Group(task=task)
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


def _group(task: TaskRecord, steps: list[StepRecord], trimmed: int) -> Group:
    last = steps[-1].number
    return Group(task=task, last=last, steps=tuple(steps), is_trimmed=last <= trimmed)


def movable(groups: Sequence[Group], keep: int, own: str) -> int:
    """How many of them, from the first on, may become lines or be covered.

    The prompt of the task that runs, `own`, is not among them, nor its last group: nobody was shown its results yet.
    With `keep` these are the last groups of the thread, as many as that.
    """
    answers = [at for at, group in enumerate(groups) if not group.is_prompt]
    last = [at for at in answers if groups[at].task.id == own][-1:] or [
        at for at, group in enumerate(groups) if group.task.id == own
    ]
    return min([*(answers[-keep:] if keep else ()), *last], default=len(groups))


def _with_parts(text: str, parts: Sequence[Attachment]) -> str:
    """The words, with the names of what came with them and is not kept."""
    if not parts:
        return text
    return f"{text}\n[No longer shown, but came with this: {', '.join(quoted(part.name) for part in parts)}]"


def _is_persons(task: TaskRecord) -> bool:
    """Whether the person said this. Marks cannot be forged."""
    return task.kind is TaskKind.PROMPT or '<said by="user" ' in task.prompt
