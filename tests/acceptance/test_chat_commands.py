"""Lines of a chat that begin with a slash."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ai_whisperer.cli.talking import ChatCommands
from tests.acceptance.command_stage import Process, Whisperer, running

ASKS_FIRST = {"tools": ["read_file"], "approve": ["read_file"]}


@contextmanager
def chat(whisperer: Whisperer, agent: str, **config: object) -> Iterator[Process]:
    whisperer.ok("agents", "create", agent, "--config", json.dumps(config))
    with running("--data", str(whisperer.data), "chat", agent, folder=whisperer.data) as process:
        yield process


def write(process: Process, *lines: str) -> None:
    assert process.process.stdin is not None
    process.process.stdin.write("".join(f"{line}\n" for line in lines))
    process.process.stdin.flush()


def test_a_call_that_waits_is_shown_with_its_arguments_and_approved(whisperer: Whisperer) -> None:
    with chat(whisperer, "ann", **ASKS_FIRST) as process:
        write(process, "look into the cellar", "/approve", "and now?")
        assert "There is no 'the cellar" in process.line()
        assert process.line() == "ann: Done: and now?\n"
        code, _, told = process.ended()
    assert code == 0
    assert 'ann wants to call read_file with {\n  "path": "the cellar/stairs' in told
    assert "the end" in told
    assert "ann may call read_file." in told
    (approval,) = [each for each in whisperer.json("approvals", "--all") if each["agentId"] == "ann"]
    assert approval["state"] == "approved"


def test_a_call_that_waits_is_refused_with_the_reason(whisperer: Whisperer) -> None:
    with chat(whisperer, "bob", **ASKS_FIRST) as process:
        write(process, "look into the cellar", "/refuse too dark")
        assert "They say: too dark" in process.line()
        assert "bob may not call read_file" in process.ended()[2]
    (approval,) = [each for each in whisperer.json("approvals", "--all") if each["agentId"] == "bob"]
    assert (approval["state"], approval["reason"]) == ("refused", "too dark")


def test_what_waits_no_more_cannot_be_approved(whisperer: Whisperer) -> None:
    with chat(whisperer, "cat", **ASKS_FIRST) as process:
        write(process, "look into the cellar", "/approve")
        process.line()
        write(process, "/approve")
        code, _, told = process.ended()
    assert (code, "Nothing waits for your approval in this chat." in told) == (1, True)


class Typed(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


def typed(whisperer: Whisperer, monkeypatch: pytest.MonkeyPatch, agent: str, *lines: str) -> tuple[str, str]:
    whisperer.ok("agents", "create", agent)
    monkeypatch.setattr(sys, "stdin", Typed("".join(f"{line}\n" for line in lines)))
    monkeypatch.setattr("ai_whisperer.cli.output.Output.is_terminal", property(lambda _: True))
    ran = whisperer("chat", agent)
    assert ran.code == 0
    return ran.out, ran.err


def test_an_answer_that_takes_long_is_stopped(whisperer: Whisperer, monkeypatch: pytest.MonkeyPatch) -> None:
    obey = ChatCommands.obey

    async def when_it_is_under_way(self: ChatCommands, name: str, rest: str) -> None:
        while not self._conversation.awaited:  # noqa: ASYNC110 - what is typed here comes all at once
            await asyncio.sleep(0.01)
        await obey(self, name, rest)

    monkeypatch.setattr(ChatCommands, "obey", when_it_is_under_way)
    _, told = typed(whisperer, monkeypatch, "dan", "eternally", "/stop")
    assert "dan did not answer: stopped by the person in the chat" in told
    assert [each["state"] for each in whisperer.json("tasks", "--agent", "dan")] == ["cancelled"]


def test_help_tells_the_commands_and_others_are_refused_with_them(
    whisperer: Whisperer, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, told = typed(
        whisperer, monkeypatch, "eve", "/help", "/quit now", "/stop", "/approve", "//etc", "/etc/hosts is"
    )
    assert all(each in told for each in ("/help", "/approve [ID]", "/refuse [REASON]", "/answer [ID]", "/stop"))
    assert "There is no command '/quit'. Commands: /help, /approve, /refuse, /answer, /stop." in told
    assert "Nobody is answering now." in told
    assert "Nothing waits for your approval in this chat." in told
    assert "eve: Done: /etc\n" in out
    assert "eve: Done: /etc/hosts is\n" in out
    assert whisperer.json("tasks", "--agent", "eve")[-1]["prompt"] != "/help"


def test_a_program_that_writes_an_unknown_command_is_told_and_ends(whisperer: Whisperer) -> None:
    with chat(whisperer, "fay") as process:
        write(process, "/quit", "this is not said")
        code, out, told = process.ended()
    assert (code, out) == (1, "")
    assert "There is no command '/quit'." in told
    assert "those after it are not read" in told
