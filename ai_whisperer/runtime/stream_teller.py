"""Passes the pieces of a model's answer on while they come, told apart by channel."""

from __future__ import annotations

from itertools import groupby

from ai_whisperer.core.channel_markers import Channel
from ai_whisperer.core.channels import ChannelParser
from ai_whisperer.models.base import Finished, ReasoningDelta, StreamEvent, TextDelta
from ai_whisperer.records import StepRecord
from ai_whisperer.runtime.workspace import Workspace


class StreamTeller:
    """Of one attempt of one step. What comes while nobody listens is kept for the first who does."""

    __slots__ = ("_agent_id", "_bus", "_clock", "_parser", "_step", "_unheard")

    def __init__(self, workspace: Workspace, agent_id: str, step: StepRecord) -> None:
        self._bus = workspace.bus
        self._clock = workspace.clock
        self._agent_id = agent_id
        self._step = step
        self._parser: ChannelParser | None = None
        self._unheard: list[StreamEvent] = []

    def take(self, event: StreamEvent) -> None:
        if not self._bus.wants_deltas:
            self._unheard.append(event)
            return
        if self._unheard:
            unheard, self._unheard = self._unheard, []
            for kind, events in groupby(unheard, type):  # as few pieces as possible: it may have been long
                if kind is TextDelta or kind is ReasoningDelta:
                    self._pass_on(kind(text="".join(each.text for each in events)))  # type: ignore[union-attr]
        self._pass_on(event)

    def _pass_on(self, event: StreamEvent) -> None:
        match event:
            case ReasoningDelta():
                if event.text:
                    self._send(Channel.ANALYSIS, event.text)
            case TextDelta():
                self._parser = self._parser or ChannelParser()
                for delta in self._parser.feed(event.text):
                    self._send(delta.channel, delta.text)
            case Finished():
                for delta in () if self._parser is None else self._parser.finish():
                    self._send(delta.channel, delta.text)

    def _send(self, channel: Channel, text: str) -> None:
        self._bus.publish_delta(
            "async.task.delta",
            cause=f"task:{self._step.task_id}",
            at=self._clock.now(),
            params={
                "agentId": self._agent_id,
                "taskId": self._step.task_id,
                "stepId": self._step.id,
                "attempt": self._step.attempt,
                "channel": channel,
                "text": text,
            },
        )
