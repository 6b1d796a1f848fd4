"""Asking another agent and waiting for its answer: `send_mail_with_switch`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import StepKind
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, results_of, round_of, until

Team = dict[str, Callable[[ModelRequest], Answer | str]]


def team(**members: Callable[[ModelRequest], Answer | str]) -> Callable[[ModelRequest], Answer | str]:
    """A model in which each agent says what its function says."""
    return lambda request: members[request.agent_id](request)


def asks(to: str, *, then: str = "got: {}", **arguments: object) -> Callable[[ModelRequest], Answer | str]:
    """An agent that asks another once and answers with what came back."""

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("send_mail_with_switch", to_agent=to, subject="Question", body="What?", **arguments)
        return then.format(results_of(request)[-1])

    return say


async def create(manager: AsyncAgentSessionManager, *names: str, **config: object) -> None:
    for name in names:
        await manager.create_agent(name, config or None)


def test_the_answer_of_the_one_who_is_asked_is_the_result_of_the_call() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "patricia")
        final = await manager.run_task("alice", "ask her")
        assert "From: patricia" in final
        assert final.endswith("It is fine.")
        question = (await manager.mailbox("patricia"))[0]
        reply = (await manager.mailbox("alice"))[0]
        assert (question.state, question.awaited) == ("replied", True)
        assert (reply.reply_to, reply.body, reply.state) == (question.id, "It is fine.", "read")

    play(scenario, team(alice=asks("patricia"), patricia=lambda _: "It is fine."))


def test_an_explicit_reply_is_the_answer_and_there_is_no_second_one() -> None:
    def patricia(request: ModelRequest) -> Answer | str:
        mail_id = prompt_of(request).split("Mail id: ")[1].split()[0]
        return call("reply_mail", mail_id=mail_id, body="The reply.") if round_of(request) == 0 else "Done talking."

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "patricia")
        assert (await manager.run_task("alice", "ask her")).endswith("The reply.")
        await until(lambda: manager.get_agent_status("patricia").state is AgentState.IDLE)
        assert [mail.body for mail in await manager.mailbox("alice")] == ["The reply."]

    play(scenario, team(alice=asks("patricia"), patricia=patricia))


def test_the_context_of_the_one_who_asks_is_intact_afterwards() -> None:
    seen: list[list[str]] = []

    def alice(request: ModelRequest) -> Answer | str:
        seen.append([type(turn).__name__ for turn in request.turns])
        return asks("patricia")(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "patricia")
        await manager.run_task("alice", "first", thread_id="t")
        await manager.run_task("alice", "second", thread_id="t")
        assert seen[-1] == ["UserTurn", "AnswerTurn", "ToolTurn", "AnswerTurn", "UserTurn", "AnswerTurn", "ToolTurn"]

    play(scenario, team(alice=alice, patricia=lambda _: "yes"))


def test_a_busy_agent_answers_beside_its_other_work() -> None:
    @tool
    async def long_work() -> str:
        """Work for an hour."""
        await asyncio.sleep(3600)
        return "worked"

    def patricia(request: ModelRequest) -> Answer | str:
        if "You have mail" in prompt_of(request):
            return "here you are"
        return call("long_work") if round_of(request) == 0 else "long work done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "patricia")
        work = await manager.send_task("patricia", "work long")
        await asyncio.sleep(10)
        started = asyncio.get_running_loop().time()
        assert (await manager.run_task("alice", "ask her")).endswith("here you are")
        assert asyncio.get_running_loop().time() - started < 10
        assert (await manager.get_task(work.id)).state is TaskState.RUNNING
        assert (await manager.wait_task(work)).state is TaskState.COMPLETED

    play(scenario, team(alice=asks("patricia"), patricia=patricia), tools=[long_work])


def test_a_sleeper_is_woken_for_the_question_and_sleeps_on() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "patricia")
        await manager.sleep_agent("patricia", duration_seconds=1000)
        due = manager.get_agent_status("patricia").sleeping_until
        assert (await manager.run_task("alice", "ask her")).endswith("mm-hm")
        await until(lambda: manager.get_agent_status("patricia").state is AgentState.SLEEPING)
        assert manager.get_agent_status("patricia").sleeping_until == due
        await asyncio.sleep(1000)
        assert "the sleep time is over" in (await manager.list_tasks("patricia"))[0].prompt

    play(scenario, team(alice=asks("patricia"), patricia=lambda _: "mm-hm"))


def test_a_chain_of_switches_comes_back_step_by_step() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b", "c", "d")
        assert (await manager.run_task("a", "go")).endswith("from the bottom")
        notes = await manager.notifications(limit=10_000)
        shown = [(n.name, n.params["agentId"], n.params["toAgent"]) for n in notes if n.name.startswith("switch.")]
        assert shown == [
            ("switch.began", "a", "b"),
            ("switch.began", "b", "c"),
            ("switch.began", "c", "d"),
            ("switch.ended", "c", "d"),
            ("switch.ended", "b", "c"),
            ("switch.ended", "a", "b"),
        ]
        assert [n.params["depth"] for n in notes if n.name == "switch.began"] == [1, 2, 3]

    play(scenario, team(a=asks("b"), b=asks("c"), c=asks("d"), d=lambda _: "from the bottom"))


def test_a_wait_that_closes_a_circle_is_refused_with_the_circle() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b", "c")
        final = await manager.run_task("a", "go")
        assert "c → a → b → c" in final
        assert asyncio.get_running_loop().time() < 20
        assert len(await manager.mailbox("a")) == 1, "nothing was sent to a but the answer"

    play(scenario, team(a=asks("b"), b=asks("c"), c=asks("a")))


def test_two_agents_may_ask_each_other_in_separate_matters() -> None:
    def say(request: ModelRequest) -> Answer | str:
        other = {"a": "b", "b": "a"}[request.agent_id]
        return "answer" if "You have mail" in prompt_of(request) else asks(other)(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b")
        finals = await asyncio.gather(manager.run_task("a", "go"), manager.run_task("b", "go"))
        assert all(final.endswith("answer") for final in finals)

    play(scenario, say)


def test_an_agent_cannot_ask_itself_a_stranger_or_a_stopped_one() -> None:
    told: dict[str, str] = {}

    def alice(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return calls(
                *(
                    ("send_mail_with_switch", {"to_agent": who, "subject": "s", "body": "b"})
                    for who in ("alice", "x", "tom")
                )
            )
        told.update(zip(("self", "stranger", "stopped"), results_of(request), strict=True))
        return "ok"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "tom")
        await manager.stop_agent("tom")
        await manager.run_task("alice", "go")
        assert "cannot wait for itself" in told["self"]
        assert "Valid names: alice, tom, user" in told["stranger"]
        assert "'tom' is not started" in told["stopped"]
        assert await manager.mailbox("tom") == []

    play(scenario, team(alice=alice))


def test_a_paused_agent_lets_the_caller_run_into_a_timeout_and_its_late_answer_comes_as_mail() -> None:
    def alice(request: ModelRequest) -> Answer | str:
        return "late: thanks" if "You have mail" in prompt_of(request) else asks("bob", timeout_seconds=30)(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        await manager.pause_agent("bob")
        final = await manager.run_task("alice", "go")
        assert "Timeout: bob did not answer within 30 seconds (it is paused now)" in final
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        await manager.resume_agent("bob")

        async def is_so() -> bool:
            return len(await manager.list_tasks("alice")) == 2

        await until(is_so)
        await until(lambda: manager.get_agent_status("alice").state is AgentState.IDLE)
        assert [mail.body for mail in await manager.mailbox("alice")] == ["late answer"]
        assert (await manager.list_tasks("alice"))[0].thread_id == (await manager.list_tasks("alice"))[1].thread_id

    play(scenario, team(alice=alice, bob=lambda _: "late answer"))


def test_a_paused_agent_that_is_resumed_in_time_answers() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        await manager.pause_agent("bob")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(20)
        assert manager.get_agent_status("alice").waiting_for == ("bob",)
        await manager.resume_agent("bob")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert ended.result.final.endswith("in time")
        assert manager.get_agent_status("alice").waiting_for == ()

    play(scenario, team(alice=asks("bob"), bob=lambda _: "in time"))


def test_nested_waits_do_not_outlast_the_patience_of_the_first() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b", "c")
        await manager.pause_agent("c")
        final = await manager.run_task("a", "go")
        assert "b did not answer within 60 seconds" in final or "c did not answer" in final
        assert asyncio.get_running_loop().time() < 70

    play(scenario, team(a=asks("b", timeout_seconds=60), b=asks("c", timeout_seconds=5000), c=lambda _: "?"))


@pytest.mark.parametrize("how", ["stop", "cancel"])
def test_the_caller_is_told_at_once_when_the_answer_will_not_come(how: str) -> None:
    @tool
    async def forever() -> str:
        """Never end."""
        await asyncio.sleep(1e6)
        return ""

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        if how == "stop":
            await manager.stop_agent("bob")
        else:
            await manager.cancel_task((await manager.list_tasks("bob"))[0].id)
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert "bob could not answer" in ended.result.final
        assert asyncio.get_running_loop().time() < 20

    play(scenario, team(alice=asks("bob"), bob=lambda _: call("forever")), tools=[forever])


def test_a_question_that_a_paused_agent_holds_ends_when_it_is_stopped() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        await manager.pause_agent("bob")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        await manager.stop_agent("bob")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert "bob was stopped" in ended.result.final

    play(scenario, team(alice=asks("bob"), bob=lambda _: "?"))


def test_a_caller_that_is_cancelled_gets_the_answer_as_mail() -> None:
    def alice(request: ModelRequest) -> Answer | str:
        return "noted" if "You have mail" in prompt_of(request) else asks("bob")(request)

    @tool
    async def think() -> str:
        """Think for a minute."""
        await asyncio.sleep(60)
        return ""

    def bob(request: ModelRequest) -> Answer | str:
        return call("think") if round_of(request) == 0 else "after a minute"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        await manager.cancel_task(task)
        assert manager.get_agent_status("alice").waiting_for == ()

        async def is_so() -> bool:
            return len(await manager.list_tasks("alice")) == 2

        await until(is_so)
        await until(lambda: manager.get_agent_status("alice").state is AgentState.IDLE)
        assert (await manager.mailbox("alice"))[0].body == "after a minute"
        assert (await manager.list_steps(task.id))[-1].result is not None

    play(scenario, team(alice=alice, bob=bob), tools=[think])


def test_switches_side_by_side_and_beside_a_tool_all_come_back() -> None:
    @tool
    async def slow() -> str:
        """Take a while."""
        await asyncio.sleep(30)
        return "slow result"

    def alice(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return calls(
                ("send_mail_with_switch", {"to_agent": "bob", "subject": "s", "body": "b"}),
                ("slow", {}),
                ("send_mail_with_switch", {"to_agent": "cid", "subject": "s", "body": "b"}),
                ("report_progress", {"percent": 10}),
            )
        bob, slow_result, cid, noted = results_of(request)
        return f"{bob[-3:]} {slow_result} {cid[-3:]} {noted}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob", "cid")
        assert await manager.run_task("alice", "go") == "BOB slow result CID Noted."

    play(scenario, team(alice=alice, bob=lambda _: "I am BOB", cid=lambda _: "I am CID"), tools=[slow])


def test_the_person_can_be_asked_too() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice")
        task = await manager.send_task("alice", "go")

        async def is_so() -> bool:
            return bool(await manager.mailbox())

        await until(is_so)
        await manager.reply_mail((await manager.mailbox())[0].id, "the person says yes")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert ended.result.final.endswith("the person says yes")

    play(scenario, team(alice=asks("user")))


def test_a_chain_that_is_too_deep_is_refused() -> None:
    def say(request: ModelRequest) -> Answer | str:
        number = int(request.agent_id[1:])
        return asks(f"a{number + 1}")(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for number in range(5):
            await manager.create_agent(f"a{number}", {"limits": {"max_switch_depth": 3}})
        assert "3 agents wait for each other in a row" in await manager.run_task("a0", "go")

    play(scenario, say)


def test_an_answer_in_several_parts_comes_as_a_whole() -> None:
    def bob(request: ModelRequest) -> str:
        return "the end" if "Continue" in prompt_of(request) else "first part\n[CONTINUE]"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        assert (await manager.run_task("alice", "go")).endswith("first part\nthe end")

    play(scenario, team(alice=asks("bob"), bob=bob))


def test_a_second_question_of_the_same_conversation_knows_the_first() -> None:
    heard: list[int] = []

    def alice(request: ModelRequest) -> Answer | str:
        if round_of(request) < 2:
            return call("send_mail_with_switch", to_agent="bob", subject="Question", body=f"number {round_of(request)}")
        return "done"

    def bob(request: ModelRequest) -> str:
        heard.append(sum("You have mail" in getattr(turn, "text", "") for turn in request.turns))
        return "yes"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "alice", "bob")
        await manager.run_task("alice", "go")
        assert heard == [1, 2]

    play(scenario, team(alice=alice, bob=bob))


@pytest.mark.parametrize("crash_after", [0.5 + 0.25 * step for step in range(24)])
def test_a_wait_survives_a_crash_on_either_side(crash_after: float) -> None:
    asked: list[str] = []

    def counted(say: Callable[[ModelRequest], Answer | str]) -> Callable[[ModelRequest], Answer | str]:
        def count(request: ModelRequest) -> Answer | str:
            asked.append(request.step_id)
            return say(request)

        return count

    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b", "c")
        await manager.send_task("a", "go", task_id="task")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        if "a" not in manager.active_sessions:
            return
        ended = await manager.wait_task("task")
        assert ended.result is not None
        assert ended.result.final.endswith("the bottom")
        await until(lambda: all(status.state is AgentState.IDLE for status in manager.list_agents()))
        assert (
            len(await manager.mailbox("a"))
            == len(await manager.mailbox("b")) - 1
            == len(await manager.mailbox("c"))
            == 1
        )
        for agent in "abc":
            for task in await manager.list_tasks(agent):
                finished = [step for step in await manager.list_steps(task.id) if step.kind is StepKind.MODEL]
                assert all(asked.count(step.id) <= step.attempt for step in finished)
        began = [n for n in await manager.notifications(limit=10_000) if n.name == "switch.began"]
        ended_notes = [n for n in await manager.notifications(limit=10_000) if n.name == "switch.ended"]
        assert len(began) == len(ended_notes) == 2

    say = counted(team(a=asks("b"), b=asks("c"), c=lambda _: "the bottom"))
    play_over_crash(before, after, say, crash_after_seconds=crash_after, down_for_seconds=3)


def test_a_wait_whose_time_ran_out_while_the_process_was_down_ends_at_the_start() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await create(manager, "a", "b")
        await manager.pause_agent("b")
        await manager.send_task("a", "go", task_id="task")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("task")
        assert ended.result is not None
        assert "Timeout: b did not answer" in ended.result.final

    say = team(a=asks("b", timeout_seconds=60), b=lambda _: "?")
    play_over_crash(before, after, say, crash_after_seconds=10, down_for_seconds=100)


def test_a_task_that_only_waits_is_not_counted_out_by_many_deaths() -> None:
    from ai_whisperer.simulation.disk import SimulatedDisk
    from ai_whisperer.simulation.loop import VirtualClock, simulate
    from tests.simulation.stage import opened

    disk = SimulatedDisk(0)
    say = team(a=asks("user", timeout_seconds=10_000))

    async def life(number: int) -> None:
        manager = opened(disk.open(), say, clock=VirtualClock().later(number * 100))
        await manager.open()
        if number == 0:
            await manager.create_agent("a")
            await manager.send_task("a", "go", task_id="task")
        await asyncio.sleep(50)
        disk.crash()

    async def last() -> None:
        async with opened(disk.open(), say, clock=VirtualClock().later(1000)) as manager:
            await manager.reply_mail((await manager.mailbox())[0].id, "at last")
            ended = await manager.wait_task("task")
            assert ended.result is not None
            assert ended.result.final.endswith("at last")

    for number in range(6):
        simulate(life(number), seed=number)
    simulate(last(), seed=9)
    disk.close()
