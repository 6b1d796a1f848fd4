"""Reads conversation scripts. A script is read as a whole before anything is done, so a typo costs nothing.

Each line begins with what is done; text that belongs to a line may go on in lines that are indented.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from ai_whisperer.choices import nearest
from ai_whisperer.core.definitions import with_access
from ai_whisperer.core.fields import check_fields
from ai_whisperer.core.moments import seconds_in
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.definition import AgentDefinition
from ai_whisperer.errors import ScriptError
from ai_whisperer.replay import lines
from ai_whisperer.replay.entries import entries
from ai_whisperer.replay.lines import Comparison, Line, Wanted

MOST_BYTES = 1 << 20
CHANNELS = ("final", "analysis", "commentary")
_NAME = r"[\w.~-]+"
_SAY = re.compile(rf"(@?)({_NAME}):\s*(.*)", re.DOTALL)
_WITHIN = re.compile(r'\s+within\s+([^"]+)$')
_NEVER = "no"
_KEY = re.compile(r"(?<!\S)(\w+)=")


class Script(Struct, frozen=True, kw_only=True):
    """A script: its lines, and what a server of its own is to be given."""

    name: str
    lines: Sequence[Line]
    rules: Path | None = None
    tools: Sequence[Path] = ()

    @property
    def crashes(self) -> Line | None:
        """The first line that needs a process which may be killed."""
        return next((line for line in self.lines if isinstance(line, lines.Crash | lines.Restart)), None)


def read_script(path: Path) -> Script:
    """The script in a file; raises `ScriptError`. Files that it names are beside it."""
    try:
        raw = path.read_bytes()
        text = raw[: MOST_BYTES + 1].decode("utf-8-sig")
    except OSError as error:
        raise ScriptError(f"The script {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ScriptError(f"The script {path} is not UTF-8 text (byte {error.start}).") from error
    if len(raw) > MOST_BYTES:
        raise ScriptError(f"The script {path} is larger than {MOST_BYTES >> 20} MiB. Split it.")
    return parse_script(text, name=str(path), folder=path.parent)


def parse_script(text: str, *, name: str = "script", folder: Path | None = None) -> Script:
    """The same for a text."""
    reader = _Reader(name, folder or Path())
    for number, first, rest in entries(text, name):
        reader.read(number, first, rest)
    if not reader.lines:
        raise ScriptError(f"{name} has no line that does something. Begin with one such as `writer: Hello.`")
    return Script(name=name, lines=reader.lines, rules=reader.rules, tools=reader.tools)


class _Reader:
    """Makes lines of what is written, one after the other."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._folder = folder
        self._number = 0
        self._written = ""
        self._is_down = False
        self.lines: list[Line] = []
        self.rules: Path | None = None
        self.tools: list[Path] = []

    def read(self, number: int, first: str, rest: str) -> None:
        self._number, self._written = number, first
        if self._is_down and first.split()[0] not in ("restart", "wait"):
            raise self._wrong("the server was killed before this line. `restart` comes first.")
        said = _SAY.fullmatch(first)
        word, _, argument = first.partition(" ")
        if said and word.endswith(":"):
            self._say(said, rest)
        elif (reading := _READERS.get(word)) is not None:
            if rest and word not in _WITH_TEXT:
                raise self._wrong(f"no text belongs to '{word}': what is indented below it would be left out.")
            reading(self, argument.strip(), rest)
        else:
            raise self._wrong(f"'{word}' is nothing that a line can begin with{_meant(word, _READERS)} {_HELP}")

    def _add(self, kind: Callable[..., Line], **fields: Any) -> None:
        self.lines.append(kind(number=self._number, written=self._written, **fields))

    def _wrong(self, what: str) -> ScriptError:
        return ScriptError(f"{self._name}, line {self._number}: {what}")

    def _say(self, said: re.Match[str], rest: str) -> None:
        text = "\n".join(filter(None, (said[3], rest)))
        if not text:
            raise self._wrong(f"there is nothing that is said to {said[2]}. Write it behind the colon.")
        if said[1]:
            self._add(lines.Post, room=said[2], text=text)
        else:
            self._add(lines.Say, agent=said[2], text=text)

    def agent(self, argument: str, rest: str) -> None:
        found = re.fullmatch(rf"({_NAME})(?:\s+from\s+({_NAME}))?(?:\s+(.+))?", argument)
        if found is None:
            raise self._wrong(f"'{argument}' names no agent. Write for instance `agent writer from coder`.")
        config = self._values(found[1], found[3] or "")
        if rest and "prompt" in config:
            raise self._wrong(f"{found[1]} has two prompts: `prompt=`, and the indented text below. Leave out one.")
        if rest:
            config["prompt"] = rest
        self._check_definition(config)
        self._add(lines.CreateAgent, agent=found[1], template=found[2], config=config)

    def _check_definition(self, config: dict[str, Any]) -> None:
        def complain(_: object, complaint: str) -> NoReturn:
            raise self._wrong(f"the agent definition is not valid: {complaint}")

        check_fields(with_access(config), AgentDefinition, complain=complain)

    def _values(self, name: str, text: str) -> dict[str, Any]:
        """By its key, each value; one ends where the next key begins."""
        begins = list(_KEY.finditer(text))
        if not text:
            return {}
        if not begins or begins[0].start():
            raise self._wrong(f"'{text}' is no KEY=VALUE. Write for instance `agent {name} from coder model=scripted`.")
        ends = [each.start() for each in begins[1:]] + [len(text)]
        return {found[1]: self._value(text[found.end() : end].strip()) for found, end in zip(begins, ends, strict=True)}

    def _value(self, text: str) -> Any:
        """JSON if it is, else the text itself; what begins as an object or a list was meant to be JSON."""
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            if text[:1] in _BEGIN_JSON and not isinstance(error, RecursionError):
                raise self._wrong(
                    f"'{text[:80]}' begins like JSON, but is not valid: {error}. Correct it, or put a text in quotes."
                ) from error
            return text

    def room(self, argument: str, _: str) -> None:
        found = re.fullmatch(rf"({_NAME})\s+of\s+(.+)", argument)
        if found is None:
            raise self._wrong("a room needs a name and members: `room planning of ann, ben`.")
        self._add(lines.CreateRoom, room=found[1], members=_names(found[2]))

    def mail(self, argument: str, rest: str) -> None:
        found = re.fullmatch(rf"({_NAME}):\s*(.+)", argument)
        if found is None:
            raise self._wrong(
                "a mail needs an agent and a subject: `mail writer: The draft`, its text in indented lines."
            )
        self._add(lines.SendMail, agent=found[1], subject=found[2], body=rest or found[2])

    def broadcast(self, argument: str, _: str) -> None:
        event, _, data = argument.partition(" ")
        self._named(event, 'broadcast alert {"disk": 90}')
        self._add(lines.Broadcast, event=event, data=self._value(data.strip()) if data.strip() else None)

    def act(self, argument: str, _: str) -> None:
        action = self._written.split()[0]
        self._named(argument, f"{action} writer")
        self._add(lines.Act, action=action, agent=argument)

    def sleep(self, argument: str, _: str) -> None:
        found = re.fullmatch(rf"({_NAME})(?:\s+for\s+(.+?))?(?:\s+until\s+(.+))?", argument)
        if found is None:
            raise self._wrong(
                "say who sleeps, and for how long or until which events: `sleep monitor for 10m until alert`."
            )
        seconds = None if found[2] is None else self._seconds(found[2])
        self._add(lines.Sleep, agent=found[1], seconds=seconds, events=_names(found[3] or ""))

    def decide(self, argument: str, *, approves: bool) -> None:
        self._named(argument, f"{'approve' if approves else 'refuse'} writer")
        self._add(lines.Decide, agent=argument, approves=approves)

    def answer(self, argument: str, rest: str) -> None:
        found = re.fullmatch(rf"({_NAME}):\s*(.*)", argument, re.DOTALL)
        text = "\n".join(filter(None, (found[2], rest))) if found else ""
        if found is None or not text:
            raise self._wrong("say who is answered, and what: `answer writer: blue`, or `name=value` for each field.")
        self._add(lines.AnswerQuestion, agent=found[1], answer=text)

    def wait(self, argument: str, _: str) -> None:
        found = re.fullmatch(rf"for\s+({_NAME})", argument)
        if found is not None:
            self._add(lines.Wait, agent=None if found[1] == "all" else found[1])
        else:
            self._add(lines.Wait, seconds=self._seconds(argument))

    def expect(self, argument: str, rest: str) -> None:
        within, found = None, _WITHIN.search(argument)
        if found is not None:
            within, argument = self._seconds(found[1]), argument[: found.start()]
        never = argument.startswith(f"{_NEVER} ")
        if never and within is not None:
            raise self._wrong(
                "what must not have come is looked for at once. Leave out `within`, and `wait` before it."
            )
        what = argument.removeprefix(f"{_NEVER} ") if never else argument
        subject, test = self._test(what, rest)
        kind, fields = self._expected(subject.split(), test)
        self._add(kind, wanted=test, within=within, never=never, **fields)

    def rules_of(self, argument: str, _: str) -> None:
        if self.rules is not None:
            raise self._wrong("there is one file of rules. Put all of them into it.")
        self.rules = self._file(argument)

    def tools_of(self, argument: str, _: str) -> None:
        path = self._file(argument)
        if path.name in [each.name for each in self.tools]:
            raise self._wrong(f"there is another file of tools with the name '{path.name}'. Give one of them another.")
        self.tools.append(path)

    def crash(self, argument: str, _: str) -> None:
        self._check_alone(argument)
        self._is_down = True
        self._add(lines.Crash)

    def restart(self, argument: str, _: str) -> None:
        self._check_alone(argument)
        if not self._is_down:
            raise self._wrong("the server runs here. `crash` comes before `restart`.")
        self._is_down = False
        self._add(lines.Restart)

    def _check_alone(self, argument: str) -> None:
        if argument:
            raise self._wrong(f"nothing follows '{self._written.split()[0]}'.")

    def _test(self, what: str, rest: str) -> tuple[str, Wanted | None]:
        """Who or what is looked at, and what it is compared with."""
        found = _TEST.fullmatch(what)
        if found is None:
            if rest:
                raise self._wrong(f"say how the text is compared: {_some(Comparison)}.")
            return what, None
        wanted = "\n".join(filter(None, (_unquoted(found[3] or ""), rest)))
        if not wanted:
            raise self._wrong(f"say what it {found[2]}.")
        if found[2] == Comparison.MATCHES:
            try:
                re.compile(wanted)
            except (re.error, OverflowError, RecursionError) as error:
                raise self._wrong(f"'{wanted}' is no regular expression: {error}.") from error
        return found[1], Wanted(Comparison(found[2]), wanted)

    def _expected(self, words: list[str], test: Wanted | None) -> tuple[type[lines.Expect], dict[str, Any]]:
        match words:
            case ["mail", *more]:
                if test is None and more[-1:] in (["subject"], ["body"]):
                    raise self._wrong(f"say how the {more[-1]} is compared: {_some(Comparison)}.")
                return lines.ExpectMail, self._of_mail(more)
            case ["event", event]:
                return lines.ExpectEvent, {"event": event}
            case [room, "from", sender] if room[0] == "@":
                return lines.ExpectMessage, {"room": room[1:], "sender": sender}
            case [room] if room[0] == "@":
                return lines.ExpectMessage, {"room": room[1:]}
            case [agent, "fails"]:
                return lines.ExpectFailure, {"agent": self._told(agent)}
            case [agent, "state"]:
                self._check_state(test)
                return lines.ExpectState, {"agent": agent}
            case [agent, *channel] if test is not None and len(channel) < 2:
                if channel and channel[0] not in CHANNELS:
                    raise self._wrong(f"'{channel[0]}' is no channel{_meant(channel[0], CHANNELS)} {_some(CHANNELS)}.")
                return lines.ExpectAnswer, {"agent": self._told(agent), "channel": (channel or CHANNELS)[0]}
            case _:
                raise self._wrong(f"this is nothing that can be expected. {_EXPECTED}")

    def _told(self, agent: str) -> str:
        """The agent, if something was said to it before."""
        told = {line.agent for line in self.lines if isinstance(line, lines.Say)}
        if agent not in told:
            name, _, channel = agent.partition(".")
            meant = f". Did you mean '{name} {channel}'?" if channel in CHANNELS else _meant(agent, told)
            raise self._wrong(f"nothing was said to {agent} before{meant} Say something first: `{agent}: …`")
        return agent

    def _of_mail(self, words: list[str]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        rest = iter(words)
        for word in rest:
            if word in ("from", "to"):
                name = next(rest, None)
                if name is None:
                    raise self._wrong(f"say who the mail is {word}.")
                fields["sender" if word == "from" else "owner"] = name
            elif word in ("subject", "body"):
                fields["part"] = word
            else:
                raise self._wrong(
                    f"'{word}' says nothing about a mail: `expect mail from ann to user subject contains done`."
                )
        return fields

    def _check_state(self, test: Wanted | None) -> None:
        states = [str(state) for state in AgentState]
        if test is None or test.comparison is not Comparison.IS or test.text not in states:
            wanted = "" if test is None else test.text
            raise self._wrong(
                f"'{wanted}' is no state{_meant(wanted, states)} Write `state is` and one of {_some(states)}."
            )

    def _named(self, name: str, example: str) -> None:
        if not re.fullmatch(_NAME, name):
            raise self._wrong(f"'{name}' is no name. Write for instance `{example}`.")

    def _seconds(self, text: str) -> float:
        seconds = seconds_in(text)
        if seconds is None or not math.isfinite(seconds):
            raise self._wrong(f"'{text}' is not a length of time. Write 90 (seconds), 0.5s, 15min or 1h 30min.")
        return seconds

    def _file(self, argument: str) -> Path:
        if self.lines:
            raise self._wrong("files come first: what a server is given cannot change while it runs.")
        path = self._folder / argument
        try:
            is_there = bool(argument) and path.is_file()
        except (OSError, ValueError):  # no name that a file could have
            is_there = False
        if not is_there:
            raise self._wrong(f"there is no file '{argument}' beside the script.")
        return path.resolve()


_BEGIN_JSON = ("{", "[")
_TEST = re.compile(r"(.*?)\s+(contains|is|matches)(?:\s+(.*))?", re.DOTALL)
_READERS: Mapping[str, Callable[[_Reader, str, str], None]] = {
    "agent": _Reader.agent,
    "room": _Reader.room,
    "rules": _Reader.rules_of,
    "tools": _Reader.tools_of,
    "mail": _Reader.mail,
    "broadcast": _Reader.broadcast,
    **dict.fromkeys(("start", "pause", "resume", "stop", "wake"), _Reader.act),
    "sleep": _Reader.sleep,
    "approve": lambda reader, argument, _: reader.decide(argument, approves=True),
    "refuse": lambda reader, argument, _: reader.decide(argument, approves=False),
    "answer": _Reader.answer,
    "wait": _Reader.wait,
    "expect": _Reader.expect,
    "crash": _Reader.crash,
    "restart": _Reader.restart,
}
_WITH_TEXT = {"agent", "mail", "answer", "expect"}
_HELP = (
    f"Say something with `NAME: text` or `@ROOM: text`, or begin with {', '.join(_READERS)}; # begins a comment, "
    "and a text continues in indented lines."
)
_EXPECTED = (
    "Write `expect NAME contains TEXT`, `expect NAME state is idle`, `expect NAME fails`, `expect mail from NAME "
    "subject contains TEXT`, `expect @ROOM from NAME contains TEXT`, or `expect event NAME`."
)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in re.split(r"[,\s]+", text) if name)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _meant(word: str, known: Collection[str]) -> str:
    near = nearest(word, known)
    return "." if near is None else f". Did you mean '{near}'?"


def _some(names: Any) -> str:
    return ", ".join(names)
