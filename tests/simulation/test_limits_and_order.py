"""Limits of loops and steps, and the order of work, in the corners."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.mail import MailState
from ai_whisperer.errors import ModelRefusedError, ModelServerError, StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, names_of, play, play_over_crash, prompt_of, round_of, until


def test_a_continuation_does_not_run_beside_the_next_task_of_an_agent_with_one_loop() -> None:
    running = 0

    def say(request: ModelRequest) -> str:
        return "more\n[CONTINUE]" if prompt_of(request) == "long" else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        nonlocal running
        await manager.create_agent("alice")
        tasks = [await manager.send_task("alice", prompt) for prompt in ("long", "short", "short")]
        for _ in range(100):
            running = max(running, len(manager.get_agent_status("alice").running_tasks))
            await asyncio.sleep(0.05)
        assert running == 1
        assert [(await manager.wait_task(task)).state for task in tasks] == [TaskState.COMPLETED] * 3

    play(scenario, say)


def test_the_answer_of_a_continued_task_is_all_its_parts_and_it_can_be_cancelled_by_its_first_id() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request) == "endless":
            return "again\n[CONTINUE]"
        if prompt_of(request) == "long":
            return Answer(text="first ha", finish="length")
        return "lf, second half"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "long") == "first half, second half"
        endless = await manager.send_task("alice", "endless")
        await asyncio.sleep(1.5)
        assert (await manager.get_task(endless.id)).state is TaskState.CONTINUED
        assert (await manager.cancel_task(endless)).state is TaskState.CANCELLED

    play(scenario, say)


def test_hundreds_of_tasks_that_end_as_soon_as_they_begin_do_not_pile_up() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_steps_per_task": 1, "max_concurrent_tasks": 500}})
        tasks = [await manager.send_task("alice", f"n{n}") for n in range(400)]
        await asyncio.gather(*(manager.wait_task(task) for task in tasks))
        await manager.stop_agent("alice")
        for task in tasks:
            await manager.retry_task(task)
        await manager.start_agent("alice", {"limits": {"max_steps_per_task": 1}})
        await until(lambda: manager.get_agent_status("alice").state is AgentState.IDLE)
        assert {(await manager.get_task(task.id)).state for task in tasks} == {TaskState.FAILED}

    play(scenario, lambda _: call("list_agents"))


def test_more_tool_calls_than_steps_are_left_run_not_at_all() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_steps_per_task": 3}})
        task = await manager.wait_task(await manager.send_task("alice", "go"))
        assert task.error is not None
        assert task.error.code == "step_limit"
        assert len(await manager.list_steps(task.id)) == 1

    play(scenario, lambda _: calls(*[("list_agents", {})] * 50))


def test_interrupts_do_not_use_up_the_retries() -> None:
    failures = [True, True]

    def say(request: ModelRequest) -> str:
        if failures:
            failures.pop()
            raise ModelServerError
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"retry": {"max_attempts": 3}})
        task = await manager.send_task("alice", "go")
        for _ in range(4):
            await asyncio.sleep(5)
            await manager.interrupt_agent("alice")
            await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert (await manager.list_steps(task.id))[0].attempt == 7

    play(scenario, say, latency_seconds=60)


def test_an_agent_that_is_being_paused_can_still_be_interrupted() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        await manager.pause_agent("alice")
        assert [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        await manager.interrupt_agent("alice")
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]

    play(scenario, latency_seconds=1000)


def test_important_mail_that_came_during_a_pause_wakes_the_sleeper_at_resume() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", duration_seconds=1000)
        await manager.pause_agent("alice")
        await manager.send_mail("alice", "Fire", "x", priority="urgent")
        await manager.resume_agent("alice")
        await asyncio.sleep(5)
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        assert (await manager.mailbox("alice"))[0].state is MailState.READ

    play(scenario)


def test_a_changed_sleep_is_announced_though_the_state_stays() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.sleep_agent("alice", duration_seconds=1000)
        await manager.sleep_agent("alice", duration_seconds=2000)
        assert (await manager.notifications())[-1].params["sleepingUntil"] == manager.get_agent_status(
            "alice"
        ).sleeping_until
        assert (await names_of(manager))[-1] == "agent.sleep_changed"

    play(scenario)


def test_two_cancels_of_one_task_end_it_once() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        results = await asyncio.gather(*(manager.cancel_task(task) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(result, StateError) or result.state is TaskState.CANCELLED for result in results)  # type: ignore[union-attr]
        assert (await names_of(manager)).count("async.task.cancelled") == 1

    for seed in range(10):
        play(scenario, latency_seconds=10, seed=seed)


def test_work_that_came_while_a_stop_was_given_up_is_taken() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_concurrent_tasks": 2}})
        await manager.send_task("alice", "first")
        await asyncio.sleep(1)
        stopping = asyncio.ensure_future(manager.stop_agent("alice"))
        await asyncio.sleep(0)
        second = await manager.send_task("alice", "second")
        stopping.cancel()
        await asyncio.wait([stopping])
        if manager.get_agent_status("alice").state is AgentState.STOPPED:
            await manager.start_agent("alice")
        assert (await manager.wait_task(second)).state is TaskState.COMPLETED

    for seed in range(10):
        play(scenario, latency_seconds=10, seed=seed)


def test_a_mail_task_that_failed_late_is_handled_once_when_it_is_retried() -> None:
    refusals = [True]

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("list_agents")
        if refusals:
            refusals.pop()
            raise ModelRefusedError
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob")
        await manager.send_mail("bob", "s", "b")

        async def is_so() -> bool:
            return bool((await manager.dead_letters()).mails)

        await until(is_so)
        await manager.retry_task(str((await manager.dead_letters()).mails[0].task_id))
        await asyncio.sleep(100)
        assert [task.state for task in await manager.list_tasks("bob")] == [TaskState.COMPLETED]
        assert (await manager.mailbox("bob"))[0].state is MailState.READ

    play(scenario, say)


def test_a_mail_that_was_read_before_a_crash_still_becomes_a_dead_letter() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("list_agents")
        raise ModelRefusedError

    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob")
        await manager.send_mail("bob", "s", "b")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert (await manager.mailbox("bob"))[0].state is MailState.READ
        await until(lambda: manager.get_agent_status("bob").state is AgentState.IDLE)
        assert [mail.state for mail in (await manager.dead_letters()).mails] == [MailState.DEAD]

    play_over_crash(before, after, say, crash_after_seconds=15, latency_seconds=10)


def test_a_retried_task_that_is_cancelled_before_its_turn_leaves_no_open_step() -> None:
    def say(request: ModelRequest) -> str:
        raise ModelRefusedError

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.wait_task(await manager.send_task("alice", "go"))
        await manager.pause_agent("alice")
        await manager.retry_task(task)
        await manager.cancel_task(task)
        assert [step.state for step in await manager.list_steps(task.id)] == ["failed"]

    play(scenario, say)


def test_an_answer_in_json_with_a_lone_surrogate_is_mended_and_ends_the_task() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "hi \ufffd"

    play(scenario, lambda _: r'{"final": "hi \ud83d"}')


def test_an_error_of_a_model_that_is_not_text_is_mended_and_retried() -> None:
    failures = [True]

    def say(request: ModelRequest) -> str:
        if failures:
            failures.pop()
            raise ModelServerError("broken \ud800")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "done"

    play(scenario, say)


def test_abandoned_waits_and_subscriptions_are_forgotten() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", auto_start=False)
        task = await manager.send_task("alice", "go")
        for _ in range(100):
            manager.subscribe(deltas=True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await manager.wait_task(task)
        await asyncio.sleep(1)
        assert len(manager._session.kernel._waiters) == 0
        assert len(manager._session.kernel.log._subscriptions) == 0
        assert len(manager._session.kernel.log._with_deltas) == 0

    play(scenario)


def test_concurrent_moves_of_the_users_mail_see_each_other() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if "report" in prompt_of(request) and round_of(request) == 0:
            return call("send_mail", to_agent="user", subject="Report", body="x")
        return "ok"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("bob")
        await manager.run_task("bob", "report")
        mail = (await manager.mailbox())[0]
        results = await asyncio.gather(
            manager.mark_mail(mail.id, "archived"), manager.reply_mail(mail.id, "late"), return_exceptions=True
        )
        assert sum(isinstance(result, StateError) for result in results) <= 1
        assert (await manager.mailbox())[0].state is MailState.ARCHIVED or not any(
            isinstance(result, StateError) for result in results
        )

    for seed in range(5):
        play(scenario, say, seed=seed)
