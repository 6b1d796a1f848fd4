"""A conversation with the members of a room: what is said there is shown as it comes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from ai_whisperer.cli.answering import in_words
from ai_whisperer.cli.fleet import hindrance
from ai_whisperer.cli.output import Output
from ai_whisperer.cli.printable import readable_arguments
from ai_whisperer.cli.telling import WAS_REASONING, shown_line
from ai_whisperer.core.tasks import is_part_of, joined_final
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.notifications.approvals import (
    ApprovalApproved,
    ApprovalRefused,
    ApprovalRequested,
    ApprovalWithdrawn,
)
from ai_whisperer.domain.notifications.questions import (
    QuestionAnswered,
    QuestionAsked,
    QuestionRefused,
    QuestionWithdrawn,
)
from ai_whisperer.domain.notifications.rooms import (
    RoomAbsent,
    RoomAnswering,
    RoomJoined,
    RoomMessage,
    RoomPassed,
    RoomUnanswered,
)
from ai_whisperer.domain.notifications.steps import StepOutput
from ai_whisperer.domain.notifications.tasks import TaskContinued, TaskDelta
from ai_whisperer.domain.questions import QuestionRecord, QuestionState
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord
from ai_whisperer.domain.tasks import Deliver

if TYPE_CHECKING:
    from ai_whisperer.client import Client

_WIDTH = 160
_DECIDED = (
    ApprovalApproved.wire_name,
    ApprovalRefused.wire_name,
    ApprovalWithdrawn.wire_name,
    QuestionAnswered.wire_name,
    QuestionRefused.wire_name,
    QuestionWithdrawn.wire_name,
)


class Conversation:
    """Shows what is said in a room, and knows who is still to answer.

    In a 1-1 chat an answer is shown while it is being written. The room's transcript is the truth: what was shown of an
    answer that turned out otherwise is shown again, as it is.
    """

    def __init__(self, client: Client, room: RoomRecord, output: Output) -> None:
        self._client = client
        self._room = room
        self._output = output
        self._shown = room.last_number
        self._own: set[str] = set()
        self._owed: set[str] = set()
        self._settled: set[str] = set()
        self._changed = asyncio.Event()
        self._answering: set[str] = set()
        self._stream = _Stream(output)
        self._approvals: dict[str, ApprovalRecord] = {}
        self._questions: dict[str, QuestionRecord] = {}
        self._asking = asyncio.Event()

    @property
    def approvals(self) -> list[ApprovalRecord]:
        """The tool calls of answers that wait for a yes, as they were shown."""
        return list(self._approvals.values())

    @property
    def questions(self) -> list[QuestionRecord]:
        """What those who answer want to know, as it was shown."""
        return list(self._questions.values())

    @property
    def awaited(self) -> list[str]:
        """The tasks whose answers are waited for."""
        return sorted(self._owed)

    async def asks(self) -> None:
        """Wait until an answer waits for an approval, or for the answer to a question."""
        await self._asking.wait()

    async def say(self, text: str) -> None:
        """Post a message, and return when all who were asked have answered or passed. Meanwhile `follow` must run."""
        message_id = uuid.uuid4().hex
        self._own.add(message_id)
        message = await self._client.post_message(self._room.id, text, message_id=message_id)
        self._owed |= set(message.asked.values()) - self._settled
        for agent_id, task_id in message.asked.items():
            await self._tell_delay(agent_id, task_id)
        while self._owed:
            self._changed.clear()
            await self._changed.wait()

    async def interject(self, text: str) -> None:
        """Say something to those who are about to answer: they hear it before their next step. `say` waits for it."""
        message_id = uuid.uuid4().hex
        self._own.add(message_id)
        message = await self._client.post_message(self._room.id, text, message_id=message_id, deliver=Deliver.NEXT_STEP)
        self._owed |= set(message.asked.values()) - self._settled

    async def follow(self, notes: AsyncIterator[Notification]) -> None:
        """Show what is said, for ever."""
        async for note in notes:
            if note.name == TaskDelta.wire_name:
                self._see_delta(note.params)
            elif note.name == TaskContinued.wire_name:
                self._stream.part_ended(note.params)
            elif note.name == StepOutput.wire_name:
                self._see_output(note)
            elif note.name == ApprovalRequested.wire_name:
                await self._see_approval(note.params)
            elif note.name == QuestionAsked.wire_name:
                await self._see_question(note.params)
            elif note.name in _DECIDED:
                self._forget(note.params.get("approvalId") or note.params["questionId"])
            elif note.params.get("roomId") == self._room.id:
                await self._see(note.name, note.params)

    async def _tell_delay(self, agent_id: str, task_id: str) -> None:
        """Tell why somebody does not answer at once, if that is so."""
        status = await self._client.get_agent_status(agent_id)
        if status.state is AgentState.PAUSED:
            self._output.note(f"It answers later. {hindrance(status)}")
        elif status.state is AgentState.ACTIVE and task_id in self._owed and task_id not in status.running_tasks:
            self._output.note(f"{agent_id} is busy with something else. It answers when that is done.")

    def _see_delta(self, params: Mapping[str, Any]) -> None:
        is_answer = params["taskId"].partition("~")[0] in self._answering
        if is_answer and self._room.kind is RoomKind.DIRECT:
            self._stream.take(params)

    def _see_output(self, note: Notification) -> None:
        """Show the last line of what a tool writes for an answer."""
        line = shown_line(note, width=_WIDTH) if note.params["taskId"].partition("~")[0] in self._answering else None
        if line is not None:
            self._stream.end()
            self._output.note(line)

    async def _see_approval(self, params: Mapping[str, Any]) -> None:
        """Show a tool call that waits, with all that an approval would be for."""
        if params["taskId"].partition("~")[0] not in self._answering:
            return
        approval = await self._client.get_approval(params["approvalId"])
        if approval.state is not ApprovalState.PENDING:
            return
        self._approvals[approval.id] = approval
        self._asking.set()
        self._stream.end()
        self._output.note(
            f"{approval.agent_id} wants to call {approval.tool} with {readable_arguments(approval.arguments)}\n"
            f"/approve allows it, /refuse does not. (It is {approval.id}.)"
        )

    async def _see_question(self, params: Mapping[str, Any]) -> None:
        """Show a question that waits, with what can be answered."""
        if params["taskId"].partition("~")[0] not in self._answering:
            return
        question = await self._client.get_question(params["questionId"])
        if question.state is not QuestionState.PENDING:
            return
        self._questions[question.id] = question
        self._asking.set()
        self._stream.end()
        several = len(question.schema["properties"]) > 1
        way = "Type NAME=VALUE … for each field" if several else "Type your answer"
        self._output.note(f"{in_words(question)}\n{way}; /refuse does not answer. (It is {question.id}.)")

    def _forget(self, decided_id: str) -> None:
        self._approvals.pop(decided_id, None)
        self._questions.pop(decided_id, None)
        if not self._approvals and not self._questions:
            self._asking.clear()

    async def _see(self, name: str, params: Mapping[str, Any]) -> None:
        match name:
            case RoomAnswering.wire_name:
                if params["taskId"] not in self._settled:
                    self._answering.add(params["taskId"])
            case RoomMessage.wire_name:
                await self._show_up_to(params["number"])
            case RoomPassed.wire_name:
                self._settle(params["taskId"])
            case RoomJoined.wire_name:
                self._output.note(f"{params['agentId']} has heard it.")
                self._settle(params["taskId"])
            case RoomUnanswered.wire_name:
                self._stream.end()
                self._output.note(f"{params['agentId']} did not answer: {params['error']['message']}")
                self._settle(params["taskId"])
            case RoomAbsent.wire_name:
                self._output.note(f"{params['agentId']} was not asked: it is {params['reason']}.")

    async def _show_up_to(self, number: int) -> None:
        """Show the messages up to this one, and none that the notifications have not come to."""
        if number > self._shown:
            missing = number - self._shown
            for message in await self._client.room_messages(self._room.id, after=self._shown, limit=missing):
                self._show(message)

    def _show(self, message: MessageRecord) -> None:
        self._shown = message.number
        self._owed |= set(message.asked.values()) - self._settled
        if self._output.as_json:
            self._output.json(message)
        elif message.id not in self._own and not self._stream.was(message):
            self._output.text(f"{message.sender}: {message.text}")
        if message.task_id is not None:
            self._settle(message.task_id)

    def _settle(self, task_id: str) -> None:
        self._settled.add(task_id)
        self._answering.discard(task_id)
        self._owed.discard(task_id)
        self._changed.set()


class _Stream:
    """An answer as it is being written: what was shown of its last attempt, and of the parts that it continues."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._attempt: tuple[str, str, int] | None = None
        self._parts: list[tuple[str, bool]] = []
        self._goes_on = False
        self._text = ""
        self._is_reclassified = False

    def take(self, params: Mapping[str, Any]) -> None:
        attempt = (params["taskId"], params["stepId"], params["attempt"])
        if attempt == self._attempt and "analysisUntil" in params and not self._is_reclassified:
            self._take_back(params["agentId"])
        if params["channel"] != "final":
            return
        if attempt != self._attempt:
            self._begin(attempt, params["agentId"])
            self._is_reclassified = "analysisUntil" in params
        self._text += params["text"]
        self._output.piece(params["text"])

    def _take_back(self, agent_id: str) -> None:
        """What was shown of the attempt turns out to be no answer."""
        self._is_reclassified = True
        self._text = ""
        self._output.text("")
        self._output.note(WAS_REASONING)
        self._output.piece(f"{agent_id}: ")

    def part_ended(self, params: Mapping[str, Any]) -> None:
        """A part of the answer has ended, and another goes on with it."""
        if self._attempt is not None and self._attempt[0] == params["taskId"]:
            self._end_part(cut=params.get("cut", False))

    def _end_part(self, *, cut: bool) -> None:
        self._parts.append((self._text, self._goes_on))
        self._text, self._goes_on = "", cut

    def _begin(self, attempt: tuple[str, str, int], agent_id: str) -> None:
        before, task_id = self._attempt, attempt[0]
        if before is not None and before[0] != task_id and is_part_of(task_id.partition("~")[0], before[0]):
            if self._text:
                self._end_part(cut=False)
            if not self._goes_on:
                self._output.text("")
        else:
            parts, goes_on = (
                (self._parts, self._goes_on) if before is not None and before[0] == task_id else ([], False)
            )
            self.end()
            self._parts, self._goes_on = parts, goes_on
            self._output.piece(f"{agent_id}: ")
        self._attempt = attempt

    def was(self, message: MessageRecord) -> bool:
        """Whether this is the message that was shown, to its end."""
        if message.task_id is None:
            return False
        shown = joined_final((*self._parts, (self._text, self._goes_on)))
        self.end()
        return shown == message.text.strip()

    def end(self) -> None:
        if self._attempt is not None:
            self._output.text("")
        self._attempt, self._parts, self._text, self._goes_on = None, [], "", False
