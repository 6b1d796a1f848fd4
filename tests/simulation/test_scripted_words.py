"""What a test says its models answer: told if it cannot be meant, and if nobody asks for it."""

from __future__ import annotations

import asyncio
import sys
import traceback

import pytest

from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import UnknownRecipientError
from ai_whisperer.testing.said import UnusedWordsError
from ai_whisperer.testing.story import story_of
from ai_whisperer.testing.team import Team
from ai_whisperer.testing.watched_tools import ToolFailedError
from ai_whisperer.testing.words import call


def pay(invoice: str, api_key: str = "") -> str:
    """Pay an invoice."""
    return f"paid {invoice}"


async def count() -> str:
    """Count, for a minute."""
    await asyncio.sleep(60)
    return "many"


def mail_to(name: str) -> Answer:
    return call("send_mail", to_agent=name, subject="Draft", body="It rained.")


def test_a_mail_to_nobody_is_told_with_the_line_that_says_it() -> None:
    with Team() as team:
        team.agent("writer", tools=["send_mail"])
        team.says("writer", call("send_mail", to_agent="editr", subject="Draft", body="It rained."), "Sent.")
        line = sys._getframe().f_lineno - 1
        place = (
            rf"writer's call of send_mail failed \(test_scripted_words.py, line {line}\): Nobody here is called 'editr'"
        )
        with pytest.raises(ToolFailedError, match=place):
            team.send("writer", "Write.")


def test_a_test_may_want_a_mail_to_nobody() -> None:
    with Team() as team:
        team.agent("writer", tools=["send_mail"])
        team.lets_fail("send_mail")
        team.says("writer", mail_to("editr"), "Nobody is there.")
        assert team.ask("writer", "Write.") == "Nobody is there."


def test_a_function_that_speaks_may_write_to_nobody() -> None:
    with Team() as team:
        team.agent("writer", tools=["send_mail"])
        team.says("writer", lambda request: mail_to("editr") if len(request.turns) == 1 else "Nobody is there.")
        assert team.ask("writer", "Write.") == "Nobody is there."


def test_what_a_person_refuses_and_what_is_waited_for_without_success_is_no_mistake() -> None:
    with Team() as team:
        team.agent("ann", tools=[pay, "acquire_lock"], approve=["pay"])
        team.agent("ben", tools=["acquire_lock", count])
        team.says("ann", call("pay", invoice="7"), call("acquire_lock", name="x", wait_seconds=5), "Neither.")
        team.says("ben", call("acquire_lock", name="x", ttl_seconds=600), call("count"), "Counted.")
        team.begin("ben", "Lock it.")
        team.later("3s")
        team.begin("ann", "Pay, and lock it.")
        team.until(team.approvals)
        team.refuse("ann")
        team.settle()
        assert team.answers("ann") == ["Neither."]
        assert [each.failed for each in team.calls(agent="ann")] == [True, True]


def test_answers_that_nobody_asks_for_fail_the_test_with_their_lines() -> None:
    team = Team()
    team.agent("writer", tools=[])
    team.says("writer", "First.", "Second.")
    team.says("writr", "Third.")
    line = sys._getframe().f_lineno - 1
    assert team.ask("writer", "Write.") == "First."
    with pytest.raises(UnusedWordsError) as told:
        team.close()
    assert f"test_scripted_words.py, line {line - 1}: team.says('writer', …) has 'Second.'" in str(told.value)
    assert f"test_scripted_words.py, line {line}: team.says('writr', …) has 'Third.'" in str(told.value)
    assert "There is no agent 'writr'. Did you mean 'writer'?" in str(told.value)
    assert "optional=True" in str(told.value)


def test_answers_that_are_optional_need_not_be_asked_for() -> None:
    with Team() as team:
        team.agent("writer", tools=[])
        team.says("writer", "First.")
        team.says("writer", "Second.", optional=True)
        assert team.ask("writer", "Write.") == "First."


def test_a_test_that_fails_by_itself_is_not_told_of_unused_answers_as_well() -> None:
    def fails() -> None:
        with Team() as team:
            team.agent("writer", tools=[])
            team.says("writer", "Never.")
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        fails()


def test_an_error_of_the_session_shows_the_line_of_the_test_alone() -> None:
    with Team() as team:
        team.agent("writer", tools=[])
        with pytest.raises(UnknownRecipientError) as told:
            team.send_mail("editr", "Hello")
    names = [each.filename.rpartition("/")[2] for each in traceback.extract_tb(told.value.__traceback__)]
    assert names == ["test_scripted_words.py", "team.py", "team.py"]


def test_the_story_has_the_arguments_of_calls_short_and_without_secrets() -> None:
    with Team() as team:
        team.agent("clerk", tools=[pay, "send_mail"])
        team.lets_fail("send_mail")
        team.says("clerk", call("pay", invoice="7" * 500, api_key="sk-1234567890abcdef1234"), mail_to("bos"), "Paid.")
        team.ask("clerk", "Pay.")
        told = story_of(team, most=50)
    assert f'clerk used pay(invoice="{"7" * 20}' in told
    assert "7" * 100 not in told
    assert "sk-1234567890" not in told
    assert 'clerk used send_mail(to_agent="bos", ' in told
    assert "which failed: Nobody here is called 'bos'" in told
