"""Plays a conversation script in a session, line by line, until the first thing that is not as expected."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from ai_whisperer.core.typed_answers import typed_line
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.errors import ConflictError, NotFoundError, UnknownAgentError, WhispererError
from ai_whisperer.replay import lines
from ai_whisperer.replay.expecting import LOOK_SECONDS, Expectations, UnmetError, plain
from ai_whisperer.replay.place import Given, Place
from ai_whisperer.replay.script import Script, parse_script, read_script

PATIENCE_SECONDS = 60.0
_MOST_MAILS = 1000


class Played(Struct, frozen=True, kw_only=True):
    """A line that was played: how long it took, and what was wrong, if something was."""

    line: lines.Line
    seconds: float
    failure: str = ""


async def play(
    script: Script, place: Place, *, patience_seconds: float = PATIENCE_SECONDS
) -> AsyncGenerator[Played, None]:
    """Each line when it was played; the last is the first that failed, if one did.

    Raises `ScriptError` before anything is done if the place cannot do what the script needs.
    """
    place.check(script)
    player = Player(place, patience_seconds=patience_seconds)
    await player.begin()
    for line in script.lines:
        begun = time.perf_counter()
        failure = ""
        try:
            await player.play(line)
        except UnmetError as error:
            failure = str(error)
        except WhispererError as error:
            failure = error.message
        yield Played(line=line, seconds=time.perf_counter() - begun, failure=failure)
        if failure:
            return


async def check(script: Script | Path | str, session: Any, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Play a script, a file or its text, in a session that is open, of a manager or a client.

    Raises an `AssertionError` that names the first line that was not as expected.
    """
    if not isinstance(script, Script):
        script = read_script(script) if isinstance(script, Path) else parse_script(script)
    async for each in play(script, Given(session), patience_seconds=patience_seconds):
        if each.failure:
            raise UnmetError(f"{script.name}, line {each.line.number}: {each.line.written}\n{each.failure}")


class Player:
    """Does what lines say, and remembers what expectations refer to.

    A line that is played again, since the process died meanwhile, does nothing twice.
    """

    def __init__(self, place: Place, *, patience_seconds: float) -> None:
        self._place = place
        self._patience_seconds = patience_seconds
        self.expectations = Expectations(lambda: place.session, patience_seconds=patience_seconds)
        self._conversation = ""
        self._decided: dict[int, ApprovalRecord | QuestionRecord] = {}
        """By line, the call or the question that it decides about."""

    @property
    def _session(self) -> Any:
        return self._place.session

    async def begin(self) -> None:
        """What there is before the script is none of its business; neither are ids that were used before."""
        found = self.expectations
        found.seq = (await plain(self._session.snapshot())).last_seq
        self._conversation = f"talk-{found.seq}"
        for owner in ("user", *(status.agent_id for status in await plain(self._session.list_agents()))):
            found.mails |= {mail.id for mail in await plain(self._session.mailbox(owner, limit=_MOST_MAILS))}
        found.rooms = {room.id: room.last_number for room in await plain(self._session.list_rooms())}

    async def play(self, line: lines.Line) -> None:
        """Raises `UnmetError` or what the session raises."""
        if isinstance(line, lines.Expect):
            await self.expectations.meet(line)
        else:
            await _DOING[type(line)](self, line)

    async def create_room(self, line: lines.CreateRoom) -> None:
        await self._session.create_room(list(line.members), room_id=line.room, title=line.room)

    async def say(self, line: lines.Say) -> None:
        task_id = self.id_of(line)
        await self._session.send_task(line.agent, line.text, task_id=task_id, thread_id=self._conversation)
        self.expectations.sent[line.agent] = task_id

    def id_of(self, line: lines.Line) -> str:
        """The id of what the line sends: under it that is sent once, however often it is tried."""
        return f"{self._conversation}-{line.number}"

    async def post(self, line: lines.Post) -> None:
        posted = await self._session.post_message(line.room, line.text, message_id=self.id_of(line))
        self.expectations.messages.add(posted.id)

    async def send_mail(self, line: lines.SendMail) -> None:
        await self._session.send_mail(line.agent, line.subject, line.body, mail_id=self.id_of(line))

    async def broadcast(self, line: lines.Broadcast) -> None:
        await self._session.broadcast_event(line.event, line.data, event_id=self.id_of(line))

    async def act(self, line: lines.Act) -> None:
        await getattr(self._session, f"{line.action}_agent")(line.agent)

    async def sleep(self, line: lines.Sleep) -> None:
        await self._session.sleep_agent(line.agent, duration_seconds=line.seconds, wake_events=list(line.events))

    async def crash(self, _: lines.Crash) -> None:
        await self._place.crash()

    async def restart(self, _: lines.Restart) -> None:
        await self._place.restart()

    async def create(self, line: lines.CreateAgent) -> None:
        with suppress(UnknownAgentError):
            await plain(self._session.get_agent_status(line.agent))
            return  # it is there since an earlier time
        await self._session.create_agent(line.agent, dict(line.config) or None, template=line.template)

    async def decide(self, line: lines.Decide | lines.AnswerQuestion) -> None:
        """As soon as there is something to decide. Whoever died meanwhile may know of the decision by now."""
        chosen = self._decided.get(line.number)
        if chosen is not None:
            with suppress(ConflictError, NotFoundError):
                await self._decide(line, chosen)
            return
        chosen = self._decided[line.number] = await self._asked(line)
        await self._decide(line, chosen)

    def has_chosen(self, line: lines.Line) -> bool:
        """Whether it is known what the line decides about; whether it was decided may not be."""
        return line.number in self._decided

    async def _asked(self, line: lines.Decide | lines.AnswerQuestion) -> ApprovalRecord | QuestionRecord:
        """What the agent asked first of all that waits for an answer."""
        is_question = isinstance(line, lines.AnswerQuestion)
        what = "question" if is_question else "call that waits for a decision"
        try:
            async with asyncio.timeout(self._patience_seconds):
                while True:
                    listed = self._session.list_questions if is_question else self._session.list_approvals
                    waiting: list[ApprovalRecord | QuestionRecord] = await plain(listed())
                    asked = [each for each in waiting if each.agent_id == line.agent]
                    if asked:
                        return min(asked, key=_moment_of)
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise UnmetError(f"{line.agent} has no {what} within {self._patience_seconds:g} s.") from None

    async def _decide(self, line: lines.Decide | lines.AnswerQuestion, chosen: ApprovalRecord | QuestionRecord) -> None:
        if isinstance(line, lines.AnswerQuestion):
            if isinstance(chosen, QuestionRecord):
                await self._session.answer_question(chosen.id, typed_line(chosen.schema, line.answer))
        elif line.approves:
            await self._session.approve(chosen.id)
        else:
            await self._session.refuse(chosen.id, reason="refused by the script")

    async def wait(self, line: lines.Wait) -> None:
        if line.seconds is not None:
            await asyncio.sleep(line.seconds)
            return
        try:
            async with asyncio.timeout(self._patience_seconds):
                if line.agent is None:
                    await self._session.at_rest()
                    return
                while True:
                    status: AgentStatus = await plain(self._session.get_agent_status(line.agent))
                    if not (status.running_tasks or status.queue_size):
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            who = line.agent or "everybody"
            raise UnmetError(f"{who} still had something to do after {self._patience_seconds:g} s.") from None


def _moment_of(asked: ApprovalRecord | QuestionRecord) -> float:
    return asked.asked_at if isinstance(asked, QuestionRecord) else asked.requested_at


_DOING: Mapping[type[lines.Line], Callable[[Player, Any], Awaitable[None]]] = {
    lines.CreateAgent: Player.create,
    lines.CreateRoom: Player.create_room,
    lines.Say: Player.say,
    lines.Post: Player.post,
    lines.SendMail: Player.send_mail,
    lines.Broadcast: Player.broadcast,
    lines.Act: Player.act,
    lines.Sleep: Player.sleep,
    lines.Decide: Player.decide,
    lines.AnswerQuestion: Player.decide,
    lines.Wait: Player.wait,
    lines.Crash: Player.crash,
    lines.Restart: Player.restart,
}
