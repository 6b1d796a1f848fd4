"""What the model of a thread is shown: the journals of its tasks, folded into turns as the last compaction says.

A loop that runs, one that is taken up again, and whoever wants to see a conversation ask the same function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ai_whisperer.core.marks import said, untrusted
from ai_whisperer.core.shown import RESULT_BYTES, prompt_of, turns, turns_of
from ai_whisperer.domain.compactions import CompactedThread, Compaction
from ai_whisperer.domain.conversation import Turn, UserTurn
from ai_whisperer.domain.tasks import StepRecord, TaskRecord

Journal = tuple[TaskRecord, Sequence[StepRecord]]
"""A task with its steps."""

_HEAD = (
    "[This conversation was made shorter by the runtime. What came before is no longer shown, apart from the "
    "prompts above, which are word for word. In place of the rest:]"
)


class View(NamedTuple):
    """The turns, and how many of them are from before the compaction was made: see `contexts.input_tokens`."""

    turns: list[Turn]
    since: int


def view(compacted: CompactedThread | None, journals: Sequence[Journal], *, result_bytes: int = RESULT_BYTES) -> View:
    """The conversation of a thread, of the journals of its tasks in their order. Those that are covered may be missing.

    Of a result so many bytes are shown, unless the compaction says fewer; 0 stands for all.

    Until the next compaction what a model is shown only grows: turns are added at the end, and none changes.
    """
    if compacted is None:
        return View([turn for task, steps in journals for turn in turns(task, steps, result_bytes=result_bytes)], 0)
    compaction = compacted.compaction
    most = compaction.result_bytes or result_bytes
    shown, since = head(compaction), None
    left = uncovered(compaction, journals)
    tells_notes = not compaction.notes or all(task.id != compacted.task_id for task, _ in left)
    for (task, steps), (covered, trimmed) in zip(left, bounds(compaction, left), strict=True):
        shown += prompt_of(task) if tells_notes or task.notes is None else prompt_of(replace(task, notes=None))
        made_at = compacted.number if task.id == compacted.task_id else 0
        if made_at:
            before = [step for step in steps if step.number <= made_at]
            shown += turns_of(before, result_bytes=most, covered=covered, trimmed=trimmed)
            since, tells_notes = len(shown), True
            shown += turns_of(steps[len(before) :], result_bytes=most)
        else:
            shown += turns_of(steps, result_bytes=most, covered=covered, trimmed=trimmed)
    return View(shown, len(shown) if since is None else since)


def head(compaction: Compaction) -> list[Turn]:
    """What stands for the part of the thread that is covered."""
    if compaction.covered is None:
        return []
    by = untrusted if compaction.untrusted else said
    told = "\n\n".join(filter(None, [_HEAD, by("summary", compaction.summary), compaction.card]))
    first: list[Turn] = [UserTurn(text=compaction.first)] if compaction.first else []
    words: list[Turn] = [UserTurn(text=text) for text in compaction.said]
    return [*first, *words, UserTurn(text=told, memory=compaction.notes, untrusted=compaction.untrusted)]


def uncovered(compaction: Compaction | None, journals: Iterable[Journal]) -> list[Journal]:
    """The journals of the tasks that are not covered as a whole, in their order."""
    if compaction is None or compaction.covered is None:
        return list(journals)
    return [(task, steps) for task, steps in journals if not _is_covered(compaction, task)]


def _is_covered(compaction: Compaction, task: TaskRecord) -> bool:
    began_at = task.started_at or 0.0
    return began_at < compaction.covered_at or (began_at == compaction.covered_at and task.id in compaction.ties)


def bounds(compaction: Compaction | None, journals: Sequence[Journal]) -> list[tuple[int, int]]:
    """For each task the step up to which it is covered, and up to which its results are lines."""
    if compaction is None:
        return [(0, 0)] * len(journals)
    ids = [task.id for task, _ in journals]
    covered, trimmed = compaction.covered, compaction.trimmed
    until = ids.index(trimmed.task_id) if trimmed is not None and trimmed.task_id in ids else 0
    bounds = []
    for at, (task, steps) in enumerate(journals):
        old = 0
        if trimmed is not None and trimmed.task_id in ids:
            old = trimmed.number if at == until else (steps[-1].number if steps and at < until else 0)
        bounds.append((covered.number if covered is not None and covered.task_id == task.id else 0, old))
    return bounds
