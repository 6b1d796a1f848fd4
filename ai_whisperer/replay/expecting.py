"""Whether what a script expects has come, and what there was instead."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.tasks import TaskRecord
from ai_whisperer.replay import lines

LOOK_SECONDS = 0.1
_MOST = 1000
_SHOWN = 5
_SHOWN_CHARACTERS = 300


class UnmetError(AssertionError):
    """Something that was expected did not come, or what must not come has come."""


async def plain(value: Any) -> Any:
    """What a call of a session brings: a manager tells some things at once, a client tells all of them later."""
    return await value if inspect.isawaitable(value) else value


class Expectations:
    """Looks at a session until what a line expects is there."""

    def __init__(self, session: Callable[[], Any], *, patience_seconds: float) -> None:
        """`session` is asked each time, since a restart brings another."""
        self._session = session
        self._patience_seconds = patience_seconds
        self.sent: dict[str, str] = {}
        """By agent, the task that was said to it last."""
        self.seq = 0
        """What was told up to here was before the script."""
        self.mails: set[str] = set()
        """Mails that were there before the script."""
        self.messages: set[str] = set()
        """What the script has posted itself."""
        self.rooms: dict[str, int] = {}
        """By room, the number of its last message before the script."""

    async def meet(self, line: lines.Expect) -> None:
        """Return when it is met; raises `UnmetError` with what there was instead."""
        within = self._patience_seconds if line.within is None else line.within
        seen: list[str] = []
        try:
            async with asyncio.timeout(within):
                if isinstance(line, lines.ExpectAnswer | lines.ExpectFailure):
                    found, seen = await self._answered(line)
                else:
                    found, seen = await self.look(line)
                    while not (found or line.never):
                        await asyncio.sleep(LOOK_SECONDS)
                        found, seen = await self.look(line)
        except TimeoutError:
            raise UnmetError(f"it did not come within {within:g} s. {await self._meanwhile(line, seen)}") from None
        if found and line.never:
            raise UnmetError(f"this has come, and must not: {_listed(seen)}")
        if not (found or line.never):
            raise UnmetError(_instead(seen))

    async def _meanwhile(self, line: lines.Expect, seen: list[str]) -> str:
        """What there is in place of what is expected; of an answer, what the agent does that owes it."""
        if not isinstance(line, lines.ExpectAnswer | lines.ExpectFailure):
            return _instead(seen)
        return f"{doing(await plain(self._session().get_agent_status(line.agent)))}."

    async def _answered(self, line: lines.ExpectAnswer | lines.ExpectFailure) -> tuple[bool, list[str]]:
        """Whether the answer to what was said last is as expected, once it is there; and what it is."""
        task_id = self.sent.get(line.agent)
        if task_id is None:
            raise UnmetError(f"nothing was said to {line.agent} before. Say something first: `{line.agent}: …`")
        task: TaskRecord = await (self._session().get_task if line.never else self._session().wait_task)(task_id)
        if line.never and not task.state.ended:
            return False, []
        failure = "" if task.error is None else f"{task.error.code}: {task.error.message}"
        if isinstance(line, lines.ExpectFailure):
            final = "" if task.result is None else task.result.final
            return _fits(line, [failure]) if failure else (False, [f"it was completed: {final}"])
        if task.result is None:
            return False, [f"the task ended as {task.state}: {failure}"]
        return _fits(line, [getattr(task.result, line.channel)])

    async def look(self, line: lines.Expect) -> tuple[bool, list[str]]:
        """Whether it is there now, and what is. Answers are no such thing: they are waited for."""
        session = self._session()
        match line:
            case lines.ExpectState():
                status = await plain(session.get_agent_status(line.agent))
                return _fits(line, [str(status.state)])
            case lines.ExpectMail():
                mails = await plain(session.mailbox(line.owner, limit=_MOST))
                new = [mail for mail in mails if mail.id not in self.mails and line.sender in (None, mail.sender)]
                return _fits(line, [_part_of(mail, line.part) for mail in new])
            case lines.ExpectMessage():
                said = await self._messages(line.room)
                others = [each for each in said if each.id not in self.messages and line.sender in (None, each.sender)]
                return _fits(line, [each.text for each in others])
            case lines.ExpectEvent():
                return _fits(line, await self._events(line.event))
        raise TypeError(line)

    async def _messages(self, room: str) -> list[MessageRecord]:
        """What was posted since the script began."""
        found: list[MessageRecord] = []
        after = self.rooms.get(room, 0)
        while some := await plain(self._session().room_messages(room, after=after, limit=_MOST)):
            found += some
            after = some[-1].number
        return found

    async def _events(self, name: str) -> list[str]:
        """The data of the notifications of this name since the script began, and of events that were broadcast."""
        found: list[str] = []
        after = self.seq
        while notes := await self._session().notifications(after=after, limit=_MOST):
            found += [
                json.dumps(msgspec.to_builtins(note.params), ensure_ascii=False)
                for note in notes
                if note.name == name or (note.name == "event.broadcast" and note.params.get("event") == name)
            ]
            after = notes[-1].seq
        return found


def doing(status: AgentStatus) -> str:
    """What an agent does and waits for, in words."""
    waits = ", ".join((*status.waiting_for, *status.paused_for))
    words = {
        f"{len(status.running_tasks)} running": status.running_tasks,
        f"{status.queue_size} queued": status.queue_size,
        f"{status.unread_mail} unread mail": status.unread_mail,
        f"waits for {waits}": waits,
        f"lacks the tools {', '.join(status.missing_tools)}": status.missing_tools,
        f"asks its model again: {status.retry_reason}": status.retry_at is not None,
        status.reason: status.reason,
    }
    return f"{status.agent_id} ({status.state}): {', '.join(each for each, is_so in words.items() if is_so)}"


def _part_of(mail: Any, part: str) -> str:
    return f"{mail.subject}\n{mail.body}" if part == "mail" else str(getattr(mail, part))


def _fits(line: lines.Expect, texts: Iterable[str]) -> tuple[bool, list[str]]:
    seen = list(texts)
    if line.wanted is None:
        return bool(seen), seen
    fitting = [text for text in seen if line.wanted.fits(text)]
    return bool(fitting), fitting or seen


def _instead(seen: list[str]) -> str:
    return f"There is: {_listed(seen)}" if seen else "There is nothing."


def _listed(texts: list[str]) -> str:
    shown = [text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…" for text in texts[:_SHOWN]]
    more = len(texts) - len(shown)
    return " | ".join(shown) + (f" and {more} more" if more > 0 else "")
