"""Whoever sent a mail that could not be handled is told so: once, and never in a circle."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.errors import ModelRefusedError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, play, play_over_crash, prompt_of, results_of, round_of


def broken(request: ModelRequest) -> Answer | str:
    raise ModelRefusedError(f"the key of {request.agent_id} is wrong")


def ben_is_broken(request: ModelRequest) -> Answer | str:
    """Ann mails ben, who cannot handle it, and says what she hears."""
    if request.agent_id == "ben":
        return broken(request)
    if "You have mail" in prompt_of(request):
        return f"heard: {prompt_of(request)}"
    return call("send_mail", to_agent="ben", subject="plan", body="please") if round_of(request) == 0 else "mailed"


async def team(manager: AsyncAgentSessionManager, *names: str) -> None:
    for name in names:
        await manager.create_agent(name)
        await manager.start_agent(name)


async def notices(manager: AsyncAgentSessionManager, owner: str) -> list[MailRecord]:
    return [mail for mail in await manager.mailbox(owner) if mail.subject.startswith("Not done: ")]


def test_an_agent_is_told_by_mail_that_its_mail_could_not_be_handled() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        asked = await manager.send_task("ann", "go")
        await manager.at_rest()
        (sent,) = await manager.mailbox("ben")
        (notice,) = await notices(manager, "ann")
        assert sent.state is MailState.DEAD
        assert (notice.sender, notice.subject, notice.reply_to) == ("ben", "Not done: plan", sent.id)
        assert f"could not handle your mail {sent.id}: the key of ben is wrong" in notice.body
        heard = (await manager.list_tasks("ann", limit=1))[0]
        assert heard.result is not None
        assert "the key of ben is wrong" in heard.result.final
        assert (heard.thread_id, heard.root_id) == (asked.thread_id, asked.id)

    play(scenario, ben_is_broken)


@pytest.mark.parametrize("tool", ["send_mail", "delegate_task"])
@pytest.mark.parametrize("called", ["", "ann"])
def test_nobody_is_told_when_the_sender_was_deleted_meanwhile(tool: str, called: str) -> None:
    """Not even one that is called like it now."""
    arguments = {"send_mail": {"subject": "plan", "body": "please"}, "delegate_task": {"task": "please"}}[tool]

    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ben":
            return broken(request)
        return call(tool, to_agent="ben", **arguments) if round_of(request) == 0 else "sent"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        await manager.pause_agent("ben")
        await manager.wait_task(await manager.send_task("ann", "go"))
        await manager.stop_agent("ann")
        await manager.delete_agent("ann")
        if called:
            await manager.create_agent("cleo", {"name": called})
        await manager.resume_agent("ben")
        await manager.at_rest()
        (failed,) = await manager.list_tasks("ben")
        assert (failed.state, failed.restarts) == (TaskState.FAILED, 0)
        if called:
            assert await manager.mailbox("cleo") == []

    play(scenario, say)


def test_a_person_is_told_by_mail_that_their_mail_could_not_be_handled() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ben")
        sent = await manager.send_mail("ben", "plan", "please")
        await manager.at_rest()
        told = [(mail.sender, mail.reply_to) for mail in await notices(manager, "user")]
        assert told == [("ben", sent.id)]

    play(scenario, broken)


def test_nobody_is_told_of_a_notice_that_could_not_be_handled() -> None:
    """Both are broken: the notice fails as well, and that is the end of it."""

    def say(request: ModelRequest) -> Answer | str:
        is_first = "You have mail" not in prompt_of(request)
        return ben_is_broken(request) if is_first else broken(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        await manager.send_task("ann", "go")
        await manager.at_rest()
        assert [mail.state for mail in await notices(manager, "ann")] == [MailState.DEAD]
        assert await notices(manager, "ben") == []
        assert len(await manager.mailbox("ben")) == 1

    play(scenario, say)


def test_whoever_waits_for_an_answer_gets_no_notice_beside_the_result_of_the_call() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ben":
            return broken(request)
        if round_of(request) == 0:
            return call("send_mail_with_switch", to_agent="ben", subject="plan", body="?")
        return results_of(request)[0]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        assert "ben could not answer" in await manager.run_task("ann", "go")
        assert await manager.mailbox("ann") == []

    play(scenario, say)


def test_whoever_delegates_gets_the_report_alone_and_nobody_is_told_if_that_fails() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ben" or "You have mail" in prompt_of(request):
            return broken(request)
        return call("delegate_task", to_agent="ben", task="part") if round_of(request) == 0 else "delegated"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        await manager.run_task("ann", "go")
        await manager.at_rest()
        assert [mail.subject for mail in await manager.mailbox("ann")] == ["Not done (failed): part"]
        assert await manager.mailbox("ben") == []

    play(scenario, say)


def test_a_mail_that_was_answered_before_its_task_failed_needs_no_notice() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            mail_id = prompt_of(request).rpartition("mail_id ")[2].strip(".")
            return call("reply_mail", mail_id=mail_id, body="done")
        return broken(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ben")
        await manager.send_mail("ben", "plan", "please")
        await manager.at_rest()
        assert [mail.subject for mail in await manager.mailbox()] == ["Re: plan"]

    play(scenario, say)


def test_a_mail_whose_task_failed_in_a_continuation_brings_a_notice_over_a_crash_too() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request).startswith("Continue"):
            return broken(request)
        return Answer(text="the first half", finish="length")

    async def before(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ben")
        await manager.send_mail("ben", "plan", "please", mail_id="m1")
        await asyncio.sleep(1.5)
        await manager.pause_agent("ben")
        await asyncio.sleep(10)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.resume_agent("ben")
        await manager.at_rest()
        assert [mail.reply_to for mail in await notices(manager, "user")] == ["m1"]

    play_over_crash(before, after, say, crash_after_seconds=5.0)


def test_a_task_that_is_retried_and_fails_again_is_told_again() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ben")
        await manager.send_mail("ben", "plan", "please")
        await manager.at_rest()
        (failed,) = await manager.list_tasks("ben")
        await manager.retry_task(failed)
        await manager.at_rest()
        assert (await manager.get_task(failed)).state is TaskState.FAILED
        assert len(await notices(manager, "user")) == 2

    play(scenario, broken)


def test_a_notice_is_taken_by_a_full_queue_and_after_the_time_of_the_tree() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "ben":
            return call("sleepless") if round_of(request) == 0 else "late"
        if "You have mail" in prompt_of(request):
            return "heard"
        return call("send_mail", to_agent="ben", subject="plan", body="please") if round_of(request) == 0 else "mailed"

    async def sleepless() -> str:
        """Work for an hour."""
        await asyncio.sleep(3600)
        return "worked"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        await manager.set_limits({"max_queue_length": 1}, agent_id="ann")
        await manager.run_task("ann", "go", timeout_seconds=30)
        await manager.pause_agent("ann")
        await manager.send_task("ann", "something else")
        await asyncio.sleep(60)
        (notice,) = await notices(manager, "ann")
        assert "time" in notice.body
        await manager.resume_agent("ann")
        await manager.at_rest()
        (notice,) = await notices(manager, "ann")
        assert notice.state is MailState.READ

    play(scenario, say, tools=[sleepless])


@pytest.mark.parametrize("crash_after_seconds", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5])
def test_a_notice_is_sent_once_whenever_the_process_dies(crash_after_seconds: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await team(manager, "ann", "ben")
        await manager.send_task("ann", "go", task_id="t1")
        await manager.at_rest()

    async def after(manager: AsyncAgentSessionManager) -> None:
        if "ben" in manager.active_sessions:
            await manager.at_rest()
            sent = await manager.mailbox("ben")
            assert [mail.reply_to for mail in await notices(manager, "ann")] == [mail.id for mail in sent]

    play_over_crash(before, after, ben_is_broken, crash_after_seconds=crash_after_seconds)
