"""What happens to one task, as `stream` of the session manager and of the client tells it."""

from __future__ import annotations

from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import Failure, StepState, TaskRecord, TaskState


class TaskEvent(Record, frozen=True, kw_only=True):
    """Something that happened to a task. `task_id` is that of the part that works: a continuation has its own."""

    task_id: str
    agent_id: str
    at: float


class TaskStateChanged(TaskEvent, frozen=True, kw_only=True):
    """The task is in another state now; `queued` again if it begins again later."""

    state: TaskState


class ProgressReported(TaskEvent, frozen=True, kw_only=True):
    """The agent told how far it is."""

    percent: float | None
    note: str


class StepEvent(TaskEvent, frozen=True, kw_only=True):
    """Something that happened in a step: a model request or a tool call."""

    step_id: str


class ModelStepStarted(StepEvent, frozen=True, kw_only=True):
    """A model request began; `attempt` is above 1 if it is repeated.

    Of attempts that were over when the step was looked at, only the last is told, with the time of the first.
    """

    attempt: int


class AnswerDelta(StepEvent, frozen=True, kw_only=True):
    """A piece of the answer as it is streamed, in its channel: `analysis`, `commentary` or `final`.

    A step that was over when it was looked at has its whole text in one piece for each channel. A reader that is slow
    misses pieces: `skipped` says how many characters of streams, this and others of the task, were left out before.

    A piece that `reclassifies` says that all of the attempt that came before it, in any channel, was reasoning whose
    opening tag the model left out: it belongs to `analysis`.
    """

    attempt: int
    channel: str
    text: str
    skipped: int = 0
    reclassifies: bool = False


class ModelStepRetried(StepEvent, frozen=True, kw_only=True):
    """A model request failed and is repeated at that time."""

    attempt: int
    error: Failure
    retry_at: float


class ModelStepEnded(StepEvent, frozen=True, kw_only=True):
    """A model request ended. `text` is the whole answer, with the marks of its channels."""

    state: StepState
    text: str
    usage: Usage
    error: Failure | None = None


class ToolCallStarted(StepEvent, frozen=True, kw_only=True):
    """A tool call began, or was asked for and waits. `arguments` are JSON, as the model wrote them."""

    tool: str
    arguments: str


class ToolOutput(StepEvent, frozen=True, kw_only=True):
    """A piece of what a tool writes while it runs."""

    text: str
    skipped: int = 0


class ToolCallEnded(StepEvent, frozen=True, kw_only=True):
    """A tool call ended. `content` is what the model is shown."""

    tool: str
    state: StepState
    content: str
    is_error: bool


class TaskEnded(TaskEvent, frozen=True, kw_only=True):
    """The last event: the task as it ended, and the final answer with all its parts, None if there is none."""

    task: TaskRecord
    answer: str | None
