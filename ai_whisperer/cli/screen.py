"""Shows an answer while it is being given: what the user reads on the standard output, all else beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from ai_whisperer.cli.output import Output, console
from ai_whisperer.cli.printable import printable
from ai_whisperer.cli.telling import WAS_REASONING, shown_line, way_out
from ai_whisperer.core.channel_markers import Channel
from ai_whisperer.core.tasks import joined_final
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications import NOTIFICATIONS
from ai_whisperer.domain.notifications.agents import AgentPaused, AgentStopped
from ai_whisperer.domain.notifications.approvals import ApprovalRequested
from ai_whisperer.domain.notifications.questions import QuestionAsked
from ai_whisperer.domain.notifications.steps import StepStarted
from ai_whisperer.domain.notifications.tasks import (
    TaskCancelled,
    TaskCompleted,
    TaskContinued,
    TaskDelta,
    TaskFailed,
    TaskQueued,
    TaskStarted,
)
from ai_whisperer.domain.tasks import TaskRecord

ENDED = (TaskCompleted.wire_name, TaskFailed.wire_name, TaskCancelled.wire_name)
_HALTS = {AgentPaused.wire_name: AgentState.PAUSED, AgentStopped.wire_name: AgentState.STOPPED}
_ASKED = (ApprovalRequested.wire_name, QuestionAsked.wire_name)
_BEGINNINGS = (TaskQueued.wire_name, TaskStarted.wire_name, StepStarted.wire_name)
_WIDTH = 120
_WIDTH_OF_TROUBLE = 1_000
"""What went wrong is told to its end."""


Decide = Callable[[Notification], Awaitable[None]]
"""Has a person decide about the tool call, or answer the question, that this tells of."""


class Screen:
    """The channels of one task, or the events of a whole session.

    On a terminal `final` is shown as it is streamed. A file or a pipe gets it at the end: what looks like the answer
    may turn out to be the talk before a tool call. The other channels go to the standard error, dimmed.
    """

    def __init__(self, output: Output, *, analysis: bool) -> None:
        self.output = output
        self._aside = console(stderr=True)
        self._channels = {Channel.COMMENTARY, *([Channel.ANALYSIS] if analysis else [])}
        self._open: Channel | None = None
        self._step: tuple[str, int] | None = None
        self._parts: list[tuple[str, bool]] = []
        self._continues_cut = False
        self._text = ""
        self._reclassified: tuple[str, int] | None = None

    async def follow_task(
        self, notes: AsyncIterator[Notification], task: TaskRecord, *, decide: Decide | None = None
    ) -> None:
        """Show what the task and those that continue it do until the end. If its agent is halted, tell the way out.

        `decide` is asked about its tool calls and questions that wait for a person; without it they are told.
        """
        async for note in notes:
            if note.name in _HALTS and note.params["agentId"] == task.agent_id:
                self.show_event(note)
                self.tell(f"To resume it: {way_out(_HALTS[note.name], task.agent_id)}")
            if str(note.params.get("taskId", "")).partition("~")[0] != task.id:
                continue
            if note.name == TaskDelta.wire_name:
                self._see_delta(note.params)
            elif note.name in ENDED:
                return
            elif note.name in _ASKED and decide is not None:
                self._turn_to(None)
                await decide(note)
            elif note.name == TaskContinued.wire_name:
                self._parts.append((self._text, self._continues_cut))
                self._text, self._continues_cut = "", note.params.get("cut", False)
            elif not (self._goes_on and note.name in _BEGINNINGS):
                self.show_event(note)

    async def follow_session(self, notes: AsyncIterator[Notification]) -> None:
        """Show what happens, for ever."""
        async for note in notes:
            self.show_event(note)

    def tell(self, sentence: str) -> None:
        """What is to be known beside it."""
        self._turn_to(None)
        self._say_aside(f"{sentence}\n")

    def show_event(self, note: Notification) -> None:
        """What happened, in a line."""
        kind = NOTIFICATIONS.get(note.name)
        width = _WIDTH if kind is None or kind.level == "info" else _WIDTH_OF_TROUBLE
        line = shown_line(note, width=width)
        if line is not None and not self.output.as_json:
            self._turn_to(None)
            self._say_aside(f"{line}\n")

    def show_answer(self, answer: str) -> None:
        """The answer as it is at the end, unless just that was shown already."""
        shown = joined_final((*self._parts, (self._text, self._continues_cut)))
        was_shown = self.output.is_terminal and shown == answer.strip()
        self._turn_to(None)
        if not was_shown and not self.output.as_json:
            self.output.text(answer)

    def _see_delta(self, params: Mapping[str, Any]) -> None:
        channel, text, step = Channel(params["channel"]), params["text"], (params["stepId"], params["attempt"])
        if step != self._step:
            if not self._goes_on:
                self._turn_to(None)
            self._step = step
            self._text = ""
        elif "analysisUntil" in params and self._reclassified != step:
            self._take_back()
        if "analysisUntil" in params:
            self._reclassified = step
        if self.output.as_json:
            return
        if channel is Channel.FINAL and self.output.is_terminal:
            self._turn_to(channel)
            self._text += text
            self.output.piece(text)
        elif channel in self._channels:
            self._turn_to(channel)
            self._say_aside(printable(text))

    @property
    def _goes_on(self) -> bool:
        """Whether a cut answer is about to be continued, on its line."""
        return self._continues_cut and not self._text

    def _take_back(self) -> None:
        """What was shown of the step as the answer turns out to be none."""
        if self._text:
            self._text = ""
            self.tell(WAS_REASONING)

    def _turn_to(self, channel: Channel | None) -> None:
        """End the line of another channel."""
        if self._open is not None and self._open is not channel:
            if self._open is Channel.FINAL:
                self.output.piece("\n")
            else:
                self._say_aside("\n")
        self._open = channel

    def _say_aside(self, text: str) -> None:
        if self.output.as_json:
            return
        from rich.text import Text

        self._aside.print(Text(text, style="dim"), end="", soft_wrap=True)
