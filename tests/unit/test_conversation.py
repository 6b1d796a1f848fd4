"""A conversation shows each answer once and whole, whatever comes in which order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest

from ai_whisperer.cli.conversation import Conversation
from ai_whisperer.cli.output import Output
from ai_whisperer.client import Client
from ai_whisperer.domain.agents import AgentState, AgentStatus
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.rooms import MessageRecord, RoomKind, RoomRecord

ROOM = "chat~ann"


class Notes:
    """The notifications of a session, as a test tells them."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Notification] = asyncio.Queue()

    def tell(self, name: str, **params: Any) -> None:
        self._queue.put_nowait(
            Notification(seq=1, session_id="default", name=name, cause="", at=0.0, params={"roomId": ROOM, **params})
        )

    def delta(
        self, text: str, *, task: str = "t1", attempt: int = 1, channel: str = "final", until: int | None = None
    ) -> None:
        about = {"agentId": "ann", "taskId": task, "stepId": f"{task}.1", "attempt": attempt}
        also = {} if until is None else {"analysisUntil": until}
        self.tell("async.task.delta", channel=channel, text=text, **about, **also)

    def continued(self, task: str, **more: Any) -> None:
        self.tell("async.task.continuation", agentId="ann", taskId=task, **more)

    async def __aiter__(self) -> AsyncIterator[Notification]:
        while True:
            yield await self._queue.get()


class Room:
    """A client of which the conversation uses only the room."""

    def __init__(self, notes: Notes, *, state: AgentState = AgentState.IDLE) -> None:
        self.messages: list[MessageRecord] = []
        self._notes = notes
        self._state = state

    async def post_message(self, _: str, text: str, *, message_id: str) -> MessageRecord:
        message = self.say("user", text, message_id=message_id, asked={"ann": "t1"})
        self._notes.tell("room.answering", taskId="t1")
        return message

    async def room_messages(self, _: str, *, after: int, limit: int) -> list[MessageRecord]:
        return self.messages[after : after + limit]

    async def get_agent_status(self, agent: str) -> AgentStatus:
        empty: dict[str, Any] = dict.fromkeys(AgentStatus.__struct_fields__, ())
        told = {"agent_id": agent, "state": self._state, "started": True, "paused_limit": None}
        return AgentStatus(**{**empty, **told})

    def say(self, sender: str, text: str, **more: Any) -> MessageRecord:
        number = len(self.messages) + 1
        given: Mapping[str, Any] = {"id": more.pop("message_id", f"m{number}"), **more}
        message = MessageRecord(
            session_id="default", room_id=ROOM, number=number, sender=sender, text=text, cause="", **given
        )
        self.messages.append(message)
        self._notes.tell("room.message", number=number)
        return message


def talk(play: Any, *, state: AgentState = AgentState.IDLE, kind: RoomKind = RoomKind.DIRECT) -> None:
    """Say hello in a room in which `play(notes, room)` happens."""

    async def run() -> None:
        notes = Notes()
        room = Room(notes, state=state)
        record = RoomRecord(session_id="default", id=ROOM, kind=kind, title="", members=("ann",), hop_limit=4)
        conversation = Conversation(cast(Client, room), record, Output(as_json=False))
        following = asyncio.create_task(conversation.follow(aiter(notes)))
        saying = asyncio.create_task(conversation.say("hello"))
        await asyncio.sleep(0)
        play(notes, room)
        async with asyncio.timeout(60):
            await saying
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())


def test_an_answer_is_shown_while_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("thinking", channel="analysis")
        notes.delta("Good ")
        notes.continued("t1")
        notes.delta("morning", task="t1~1")
        notes.delta("not for this room", task="t9")
        room.say("ann", "Good\nmorning", task_id="t1")

    talk(play)
    assert capsys.readouterr().out == "ann: Good \nmorning\n"


def test_a_part_of_an_answer_that_was_asked_for_again_is_counted_once(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("One")
        notes.delta("Tw", task="t1~1")
        notes.delta("Two", task="t1~1", attempt=2)
        notes.delta("Three", task="t1~2")
        room.say("ann", "One\nTwo\nThree", task_id="t1")

    talk(play)
    assert capsys.readouterr().out == "ann: One\nTw\nann: Two\nThree\n"


def test_an_answer_that_was_cut_within_a_word_goes_on_there(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("Good mor")
        notes.continued("t1", cut=True)
        notes.delta("ning, ", task="t1~1")
        notes.continued("t1~1", cut=True)
        notes.delta("Ann.", task="t1~2")
        room.say("ann", "Good morning, Ann.", task_id="t1")

    talk(play)
    assert capsys.readouterr().out == "ann: Good morning, Ann.\n"


def test_what_turns_out_to_be_reasoning_is_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("She greets.")
        notes.delta("", channel="analysis", until=11)
        notes.delta("Good ", until=11)
        notes.delta("morning.", until=11)
        room.say("ann", "Good morning.", task_id="t1")

    talk(play)
    shown = capsys.readouterr()
    assert shown.out == "ann: She greets.\nann: Good morning.\n"
    assert shown.err.count("reasoning") == 1


def test_an_answer_that_was_shown_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("Good ")
        notes.delta("morning ")
        room.say("ann", "Good morning", task_id="t1")

    talk(play)
    assert capsys.readouterr().out == "ann: Good morning \n"


def test_an_answer_that_turned_out_otherwise_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("Good mor")
        notes.delta("Good", attempt=2)
        room.say("ann", "Good evening", task_id="t1")

    talk(play)
    assert capsys.readouterr().out == "ann: Good mor\nann: Good\nann: Good evening\n"


def test_pieces_that_come_after_the_answer_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        room.say("ann", "Hello", task_id="t1", asked={"bob": "t2"})
        notes.tell("room.answering", taskId="t1")
        notes.delta("Hello")
        notes.tell("room.passed", taskId="t2")

    talk(play)
    assert capsys.readouterr().out == "ann: Hello\n"


def test_in_a_group_messages_are_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        notes.delta("Hel")
        room.say("ann", "Hello", task_id="t1")

    talk(play, kind=RoomKind.GROUP)
    assert capsys.readouterr().out == "ann: Hello\n"


def test_those_whom_an_answer_asks_are_awaited_too(capsys: pytest.CaptureFixture[str]) -> None:
    def play(notes: Notes, room: Room) -> None:
        room.say("ann", "What does @bob say?", task_id="t1", asked={"bob": "t2"})
        room.say("bob", "Nothing", task_id="t2")

    talk(play, kind=RoomKind.GROUP)
    assert capsys.readouterr().out == "ann: What does @bob say?\nbob: Nothing\n"


def test_one_who_passes_or_fails_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    talk(lambda notes, _: notes.tell("room.passed", taskId="t1"))
    told = {"agentId": "ann", "taskId": "t1", "error": {"message": "The model is away."}}
    talk(lambda notes, _: notes.tell("room.unanswered", **told))
    assert capsys.readouterr() == ("", "ann did not answer: The model is away.\n")


@pytest.mark.parametrize(("state", "words"), [(AgentState.PAUSED, "is paused"), (AgentState.ACTIVE, "is busy")])
def test_it_is_told_why_an_answer_is_late(capsys: pytest.CaptureFixture[str], state: AgentState, words: str) -> None:
    def play(notes: Notes, _: Room) -> None:
        asyncio.get_running_loop().call_later(0.01, lambda: notes.tell("room.passed", taskId="t1"))

    talk(play, state=state)
    assert words in capsys.readouterr().err
