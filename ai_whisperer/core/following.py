"""Following one task: what is new about it since it was last looked at, as events.

Notifications are hints to look again; what the store says of the task and its steps is the truth. So it does not matter
how late a look comes, nor whether a notification comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ai_whisperer.core.call_reading import as_read
from ai_whisperer.core.channels import parse_as_written
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.steps import StepOutput, StepRetried, StepStarted
from ai_whisperer.domain.notifications.tasks import TaskDelta
from ai_whisperer.domain.task_events import (
    AnswerDelta,
    ModelStepEnded,
    ModelStepRetried,
    ModelStepStarted,
    ProgressReported,
    StepEvent,
    TaskEvent,
    TaskStateChanged,
    ToolCallEnded,
    ToolCallStarted,
    ToolOutput,
)
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskRecord, TaskState, step_number

_TEXT = TaskDelta.wire_name
_OUTPUT = StepOutput.wire_name
_STARTED = StepStarted.wire_name
_RETRIED = StepRetried.wire_name


class Follower:
    """What was told of a task so far. One that is continued is followed by another `Follower`."""

    def __init__(self, task: TaskRecord) -> None:
        self.task_id = task.id
        self._agent_id = task.agent_id
        self._state: TaskState | None = None
        self._progress: tuple[float | None, str] = (None, "")
        self._begun: dict[int, int] = {}  # the attempt that was told of, by the number of the step
        self._retried: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._heard: tuple[str, int, int] = ("", 0, 0)  # the step that streams, its attempt, how much is heard or told
        self._streamed: set[tuple[int, int]] = set()
        self._reclassified = (0, 0)  # the step and attempt whose first pieces turned out to be reasoning
        self._heard_at: dict[tuple[str, int, int], float] = {}  # by notification, step and attempt
        self._told_at: dict[int, float] = {}
        self._settled = 0

    @property
    def settled(self) -> int:
        """All steps up to this one have ended, and all was told of them: look at those after it."""
        return self._settled

    def hear(self, note: Notification) -> bool:
        """Whether the notification is a reason to look again. When an attempt began or failed only it can tell."""
        if note.params.get("taskId") != self.task_id or not note.name.startswith(("async.task.", "step.")):
            return False
        if note.name == _RETRIED or (note.name == _STARTED and "attempt" in note.params):
            number, attempt = step_number(note.params["stepId"]), note.params["attempt"]
            told = self._begun if note.name == _STARTED else self._retried
            if told.get(number, 0) < attempt:
                self._heard_at[note.name, number, attempt] = note.at
        return True

    def piece(self, note: Notification) -> StepEvent | None:
        """The piece of a stream that the notification brings, if it does and the step is not over already."""
        params = note.params
        if note.name not in (_TEXT, _OUTPUT) or params.get("taskId") != self.task_id:
            return None
        number = step_number(params["stepId"])
        if self._ended.get(number, 0) >= params.get("attempt", 1):
            return None
        head, text, skipped = self._head(params["stepId"]), params["text"], params.get("skipped", 0)
        if note.name == _OUTPUT:
            return ToolOutput(**head, at=note.at, text=text, skipped=skipped)
        attempt, channel = params["attempt"], params["channel"]
        self._streamed.add((number, attempt))
        skipped = max(skipped, self._missed(params))
        reclassifies = "analysisUntil" in params and self._reclassified != (number, attempt)
        if reclassifies:
            self._reclassified = (number, attempt)
        return AnswerDelta(
            **head,
            at=note.at,
            attempt=attempt,
            channel=channel,
            text=text,
            skipped=skipped,
            reclassifies=reclassifies,
        )

    def _missed(self, params: Mapping[str, Any]) -> int:
        """How much of the attempt came before the piece and was not heard: it may have begun before we listened."""
        step_id, attempt, text = params["stepId"], params["attempt"], params["text"]
        before = self._heard[2] if self._heard[:2] == (step_id, attempt) else 0
        offset: int = params.get("offset", before)
        self._heard = (step_id, attempt, offset + len(text))
        return max(offset - before, 0)

    def look(self, task: TaskRecord, steps: Sequence[StepRecord]) -> Iterator[TaskEvent]:
        """What is new. `steps` are those after `settled`, read after the task: if it has ended, so have they."""
        if self._state is None and task.state is not TaskState.QUEUED:
            yield self._changed(TaskState.QUEUED, task.created_at)
        if task.state.ended and self._state is TaskState.QUEUED and task.started_at is not None:
            yield self._changed(TaskState.RUNNING, task.started_at)
        if not task.state.ended and self._state is not task.state:
            began = task.started_at if task.state is TaskState.RUNNING else None
            yield self._changed(task.state, task.created_at if began is None else began)
        for step in steps:
            yield from self._step(step)
        self._settle(steps)
        progress = (task.progress_percent, task.progress_note)
        if progress != self._progress:
            self._progress = progress
            at = task.finished_at or (steps[-1].started_at if steps else task.started_at or task.created_at)
            yield ProgressReported(
                task_id=self.task_id, agent_id=self._agent_id, at=at, percent=progress[0], note=progress[1]
            )
        if task.state.ended and self._state is not task.state:
            yield self._changed(task.state, task.finished_at or task.created_at)

    def _changed(self, state: TaskState, at: float) -> TaskStateChanged:
        self._state = state
        return TaskStateChanged(task_id=self.task_id, agent_id=self._agent_id, at=at, state=state)

    def _settle(self, steps: Sequence[StepRecord]) -> None:
        """What comes before the newest model request has ended: it could not have begun otherwise."""
        newest = max((step.number for step in steps if step.kind is StepKind.MODEL), default=0)
        self._settled = max(self._settled, newest - 1)

    def _step(self, step: StepRecord) -> Iterator[StepEvent]:
        if self._ended.get(step.number, 0) >= step.attempt:
            return
        yield from self._tool(step) if step.kind is StepKind.TOOL else self._model(step)
        if step.state is not StepState.STARTED:
            self._ended[step.number] = step.attempt

    def _head(self, step_id: str) -> dict[str, Any]:
        return {"task_id": self.task_id, "agent_id": self._agent_id, "step_id": step_id}

    def _model(self, step: StepRecord) -> Iterator[StepEvent]:
        number, head = step.number, self._head(step.id)
        if self._begun.get(number, 0) < step.attempt:
            self._begun[number] = step.attempt
            yield ModelStepStarted(**head, at=self._time_of(_STARTED, step), attempt=step.attempt)
        if step.error is not None and step.retry_at is not None and self._retried.get(number, 0) < step.attempt:
            self._retried[number] = step.attempt
            at = self._time_of(_RETRIED, step)
            yield ModelStepRetried(**head, at=at, attempt=step.attempt, error=step.error, retry_at=step.retry_at)
        if step.state is StepState.STARTED:
            return
        at = step.finished_at or step.started_at
        answer = None if step.kind is StepKind.COMPACTION else step.answer  # a summary is no part of the answer
        if (number, step.attempt) not in self._streamed and answer is not None:
            response = parse_as_written(as_read(answer).text).response
            texts = {
                "analysis": "\n".join(filter(None, (answer.reasoning, response.analysis))),
                "commentary": response.commentary,
                "final": response.final,
            }
            for channel, text in texts.items():
                if text:
                    yield AnswerDelta(**head, at=at, attempt=step.attempt, channel=channel, text=text)
        yield ModelStepEnded(
            **head,
            at=at,
            state=step.state,
            text="" if answer is None else answer.text,
            usage=Usage() if step.answer is None else step.answer.usage,
            error=step.error,
        )

    def _time_of(self, name: str, step: StepRecord) -> float:
        """When that was; of an attempt that nobody heard of then, the earliest that it can have been."""
        at = self._heard_at.pop((name, step.number, step.attempt), None)
        if at is None:
            at = step.started_at + (step.request_seconds if step.state is StepState.STARTED else 0.0)
        self._told_at[step.number] = at = max(at, self._told_at.get(step.number, at))
        return at

    def _tool(self, step: StepRecord) -> Iterator[StepEvent]:
        head = self._head(step.id)
        tool, arguments = ("", "") if step.call is None else (step.call.name, step.call.arguments)
        if step.number not in self._begun:
            self._begun[step.number] = step.attempt
            yield ToolCallStarted(**head, at=step.started_at, tool=tool, arguments=arguments)
        if step.state is not StepState.STARTED:
            content, is_error = ("", True) if step.result is None else (step.result.content, step.result.is_error)
            at = step.finished_at or step.started_at
            yield ToolCallEnded(**head, at=at, tool=tool, state=step.state, content=content, is_error=is_error)
