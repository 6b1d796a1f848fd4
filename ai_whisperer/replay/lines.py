"""What a line of a conversation script can say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct


class Line(Struct, frozen=True, kw_only=True):
    """A line, with its number and as it was written."""

    number: int
    written: str


class CreateAgent(Line, frozen=True, kw_only=True):
    agent: str
    template: str | None = None
    config: Mapping[str, Any] = {}


class CreateRoom(Line, frozen=True, kw_only=True):
    room: str
    members: Sequence[str]


class Say(Line, frozen=True, kw_only=True):
    """A task for an agent, in the one conversation that the script has with it."""

    agent: str
    text: str


class Post(Line, frozen=True, kw_only=True):
    """A message in a room."""

    room: str
    text: str


class SendMail(Line, frozen=True, kw_only=True):
    agent: str
    subject: str
    body: str


class Broadcast(Line, frozen=True, kw_only=True):
    event: str
    data: Any = None


class Act(Line, frozen=True, kw_only=True):
    """Start, pause, resume, stop or wake an agent."""

    action: str
    agent: str


class Sleep(Line, frozen=True, kw_only=True):
    agent: str
    seconds: float | None = None
    events: Sequence[str] = ()


class Decide(Line, frozen=True, kw_only=True):
    """Approve or refuse the call that an agent waits with."""

    agent: str
    approves: bool


class AnswerQuestion(Line, frozen=True, kw_only=True):
    """What the agent asks is answered so: a text for the one field of the form, or `name=value` for each."""

    agent: str
    answer: str


class Wait(Line, frozen=True, kw_only=True):
    """For so long; or until the agent, or everybody if there is none, has nothing left to do."""

    seconds: float | None = None
    agent: str | None = None


class Crash(Line, frozen=True, kw_only=True):
    """Pull the plug."""


class Restart(Line, frozen=True, kw_only=True):
    """Start again what was killed."""


class Comparison(StrEnum):
    CONTAINS = "contains"
    IS = "is"
    MATCHES = "matches"


class Wanted(Struct, frozen=True):
    """What a text is compared with."""

    comparison: Comparison
    text: str

    def fits(self, other: str) -> bool:
        match self.comparison:
            case Comparison.CONTAINS:
                return self.text in other
            case Comparison.IS:
                return self.text.strip() == other.strip()
            case Comparison.MATCHES:
                return re.search(self.text, other, re.MULTILINE) is not None


class Expect(Line, frozen=True, kw_only=True):
    """Something that has to come within so many seconds; with `never` something that must not have come by now."""

    wanted: Wanted | None = None
    within: float | None = None
    never: bool = False


class ExpectAnswer(Expect, frozen=True, kw_only=True):
    """The answer of an agent to what the script said to it last, in one of its channels."""

    agent: str
    channel: str = "final"


class ExpectFailure(Expect, frozen=True, kw_only=True):
    """What the script said last to an agent fails; what is wanted is of its error."""

    agent: str


class ExpectState(Expect, frozen=True, kw_only=True):
    agent: str


class ExpectMail(Expect, frozen=True, kw_only=True):
    """A mail that came while the script was played; what is wanted is of its subject, its body, or both."""

    sender: str | None = None
    owner: str = "user"
    part: str = "mail"


class ExpectMessage(Expect, frozen=True, kw_only=True):
    """A message in a room that is not the script's own."""

    room: str
    sender: str | None = None


class ExpectEvent(Expect, frozen=True, kw_only=True):
    """A notification of this name, or an event that was broadcast under it; what is wanted is of its data."""

    event: str
