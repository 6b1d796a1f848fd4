"""Passes the pieces of a model's answer on while they come, told apart by channel."""

from __future__ import annotations

from itertools import groupby

from msgspec import UNSET, UnsetType

from ai_whisperer.core.channel_markers import Channel
from ai_whisperer.core.channels import ChannelDelta, ChannelParser
from ai_whisperer.core.deltas import PendingDeltas
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.tasks import ChannelName, TaskDelta
from ai_whisperer.domain.tasks import StepRecord
from ai_whisperer.models.base import Finished, ReasoningDelta, StreamEvent, TextDelta
from ai_whisperer.runtime.session.kernel import Kernel

_MOST_UNHEARD = 256
"""So many pieces are kept as they came; then they are told apart, so that nobody has to wait while that is done for all
at once."""
_LONG_CHARACTERS = 1_024
"""A piece of this length is told apart at once."""
_NAMES: dict[Channel, ChannelName] = {
    Channel.ANALYSIS: "analysis",
    Channel.COMMENTARY: "commentary",
    Channel.FINAL: "final",
}


class StreamTeller:
    """Of one attempt of one step. What comes while nobody listens is kept for the first who does, as far as it fits.

    Each piece says in `offset` how many characters of the attempt came before it.
    """

    __slots__ = (
        "_agent_id",
        "_analysis_until",
        "_bus",
        "_clock",
        "_kept",
        "_offset",
        "_parser",
        "_session_id",
        "_step",
        "_unheard",
    )

    def __init__(self, kernel: Kernel, agent_id: str, step: StepRecord) -> None:
        self._bus = kernel.log
        self._session_id = kernel.session_id
        self._clock = kernel.clock
        self._agent_id = agent_id
        self._step = step
        self._parser: ChannelParser | None = None
        self._unheard: list[StreamEvent] = []
        self._kept: PendingDeltas | None = None
        self._offset = 0
        self._analysis_until: int | UnsetType = UNSET

    def take(self, event: StreamEvent) -> None:
        if not self._bus.wants_deltas:
            unheard = self._unheard
            unheard.append(event)
            if len(unheard) >= _MOST_UNHEARD or (type(event) is TextDelta and len(event.text) >= _LONG_CHARACTERS):
                self._tell_apart()
            return
        while self._kept:
            self._bus.publish_delta(self._kept.take())
        if self._unheard:
            self._tell_apart()
        self._pass_on(event)

    def _tell_apart(self) -> None:
        """Pass on what nobody has heard yet, in as few pieces as possible."""
        unheard, self._unheard = self._unheard, []
        for kind, events in groupby(unheard, type):
            if kind is TextDelta or kind is ReasoningDelta:
                self._pass_on(kind(text="".join(each.text for each in events)))  # type: ignore[union-attr]

    def _pass_on(self, event: StreamEvent) -> None:
        match event:
            case ReasoningDelta():
                if event.text:
                    self._send(Channel.ANALYSIS, event.text)
            case TextDelta():
                self._parser = self._parser or ChannelParser()
                self._send_all(self._parser.feed(event.text))
            case Finished():
                self._send_all([] if self._parser is None else self._parser.finish())

    def _send_all(self, deltas: list[ChannelDelta]) -> None:
        for delta in deltas:
            if delta.reclassifies:
                self._analysis_until = self._offset
            self._send(delta.channel, delta.text)

    def _send(self, channel: Channel, text: str) -> None:
        step = self._step
        told = TaskDelta(
            agent_id=self._agent_id,
            task_id=step.task_id,
            step_id=step.id,
            attempt=step.attempt,
            channel=_NAMES[channel],
            text=text,
            offset=self._offset,
            analysis_until=self._analysis_until,
        )
        note = Notification.unnumbered(
            told, session_id=self._session_id, cause=f"task:{step.task_id}", at=self._clock.now()
        )
        self._offset += len(text)
        if self._bus.wants_deltas:
            self._bus.publish_delta(note)
            return
        self._kept = self._kept or PendingDeltas()
        self._kept.put(0, note)
