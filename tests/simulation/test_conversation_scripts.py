"""Conversation scripts in a session of this process, on virtual time: what they do, and what they find."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer, ToolTurn
from ai_whisperer.errors import ModelRefusedError, ScriptError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.replay.expecting import UnmetError
from ai_whisperer.replay.place import Given
from ai_whisperer.replay.playing import Played, check, play
from ai_whisperer.replay.script import parse_script
from tests.simulation.stage import call, prompt_of
from tests.simulation.stage import play as act

ASKS = {"question": "Which colour?", "schema": {"properties": {"colour": {"type": "string"}}, "required": ["colour"]}}


@tool
async def pay(amount: int) -> str:
    """Pay something."""
    return f"paid {amount}"


def says(request: ModelRequest) -> Answer | str:
    prompt = prompt_of(request)
    has_called = isinstance(request.turns[-1], ToolTurn)
    if "fail" in prompt:
        raise ModelRefusedError
    if "mail me" in prompt and not has_called:
        return call("send_mail", to_agent="user", subject="News", body="All is well.")
    if "pay" in prompt:
        return f"It is {request.turns[-1]}" if has_called else call("pay", amount=5)
    if "ask me" in prompt:
        return f"It is {request.turns[-1]}" if has_called else call("ask_user", **ASKS)
    return f"[ANALYSIS]Let me think.[/ANALYSIS][FINAL]You said: {prompt}[/FINAL]"


def played(text: str, *, patience_seconds: float = 30.0) -> list[Played]:
    """What came of the lines."""
    found: list[Played] = []

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        script = parse_script(text)
        found.extend([each async for each in play(script, Given(manager), patience_seconds=patience_seconds)])

    act(scenario, says, tools=[pay])
    return found


_ASKING = "ann (active): 1 running, waits for question:"
BEGIN = 'agent ann tools=["send_mail","ask_user"]\nagent ben\n'


def test_what_is_as_expected_is_played_to_the_end() -> None:
    outcome = played(
        BEGIN
        + """
room both of ann, ben
ann: Hello there.
expect ann contains Hello there
expect ann analysis is Let me think.
expect no ann contains goodbye
ann: mail me
expect mail from ann subject is News
expect mail from ann body matches ^All
expect no mail from ben
ben: please fail
expect ben fails contains refused
@both: Hello all
expect @both from ann contains Hello all
mail ben: A letter
  with a text
wait for ben
sleep ben for 2h until alert
expect ben state is sleeping
broadcast alert {"disk": 90}
expect event alert contains 90
expect event agent.paused contains ann within 1s
"""
    )
    assert outcome[-1].failure == "it did not come within 1 s. There is nothing."
    assert [each.failure for each in outcome[:-1]] == [""] * (len(outcome) - 1)
    assert outcome[-1].line.written == "expect event agent.paused contains ann within 1s"


def test_agents_are_led_through_their_states_and_time_passes_at_once() -> None:
    outcome = played(
        BEGIN
        + """
pause ann
expect ann state is paused
resume ann
stop ann
expect ann state is stopped
start ann
expect ann state is idle
sleep ann for 5h
wait 6h
expect ann state is idle
sleep ann until rain
wake ann
wait for ann
wait for all
"""
    )
    assert [each.failure for each in outcome] == [""] * 16


def test_questions_are_answered_and_calls_decided_when_they_come() -> None:
    outcome = played(
        'agent ann tools=["ask_user","pay"] approve=["pay"]\nann: ask me\nanswer ann: blue\n'
        "expect ann contains blue\nann: pay\napprove ann\nexpect ann contains paid 5\n"
        "ann: pay\nrefuse ann\nexpect ann contains refused by the script"
    )
    assert [each.failure for each in outcome] == [""] * 10


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("ann: hi\nexpect ann contains bye", "There is: You said: hi"),
        ("ann: fail\nexpect ann contains hi", "the task ended as failed: model_refused: "),
        ("ann: hi\nexpect ann fails", "it was completed: You said: hi"),
        ("ann: hi\nwait for ann\nexpect no ann contains hi", "this has come, and must not: You said: hi"),
        ("expect ann state is paused within 2s", "it did not come within 2 s. There is: idle"),
        ("expect mail from ann within 2s", "it did not come within 2 s. There is nothing."),
        ("answer ann: blue", "ann has no question within 30 s."),
        ("approve ann", "ann has no call that waits for a decision within 30 s."),
        ("ann: ask me\nwait for ann", f"ann still had something to do after 30 s. {_ASKING}"),
        ("ann: ask me\nwait for all", f"everybody still had something to do after 30 s. {_ASKING}"),
        ("ann: ask me\nexpect ann contains so", f"it did not come within 30 s. {_ASKING}"),
        ("zoe: hi", "There is no agent 'zoe'"),
        ("resume ann", "resume"),
    ],
)
def test_what_is_not_as_expected_ends_the_script_and_says_what_there_was(text: str, failure: str) -> None:
    last = played(f"{BEGIN}{text}\nwait 1s")[-1]
    assert last.line.written == text.splitlines()[-1]
    assert failure in last.failure


def test_what_was_there_before_the_script_is_not_what_it_expects() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await check(f"{BEGIN}ann: mail me\nexpect mail from ann\nbroadcast alert", manager)
        await check(
            "agent ann\nexpect no mail from ann\nexpect no event alert\nann: mail me\nexpect mail from ann", manager
        )

    act(scenario, says)


def test_what_was_said_in_a_room_before_the_script_is_not_what_it_expects() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await check(f"{BEGIN}room r of ann, ben\n@r: ann, hello\nexpect @r from ann\nwait for all", manager)
        await check("expect no @r from ann\n@r: ann, more\nexpect @r from ann contains more", manager)

    act(scenario, says)


def test_an_agent_is_made_with_the_prompt_that_is_indented_below_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await check(
            'agent zoe description=Knows all birds. tools=["send_mail", "ask_user"]\n  Be kind.\n  Be brief.', manager
        )
        definition = manager._session.roster.agents["zoe"].record.definition
        assert (definition.prompt, definition.description) == ("Be kind.\nBe brief.", "Knows all birds.")
        assert definition.tools == ("send_mail", "ask_user")

    act(scenario, says)


def test_what_must_not_have_come_is_looked_for_at_once() -> None:
    outcome = played(f"{BEGIN}pause ann\nann: hi\nexpect no ann contains bye\nresume ann\nexpect ann contains hi")
    assert [each.failure for each in outcome] == [""] * 7


def test_a_check_names_the_line_that_was_not_as_expected() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(UnmetError, match=r"script, line 3: expect ann is no\nThere is: You said: hi"):
            await check("agent ann\nann: hi\nexpect ann is no", manager)

    act(scenario, says)


def test_a_session_of_somebody_else_is_not_killed() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(ScriptError, match="line 2: this session is not ours to kill"):
            await check("agent ann\ncrash", manager)
        assert manager.list_agents() == []

    act(scenario, says)


def test_looking_takes_no_time_of_others() -> None:
    """A script that waits for something looks again and again, and lets everything else go on."""

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        beats: list[Any] = []

        async def beat() -> None:
            while True:
                await asyncio.sleep(0.05)
                beats.append(None)

        beating = asyncio.ensure_future(beat())
        with pytest.raises(UnmetError):
            await check("agent ann\nexpect mail from ann within 2s", manager)
        beating.cancel()
        assert len(beats) > 30

    act(scenario, says)
