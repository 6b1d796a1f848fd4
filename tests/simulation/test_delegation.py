"""Delegated work, task trees, and the time and budget that a tree shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer, Usage
from ai_whisperer.domain.tasks import Budget
from ai_whisperer.errors import InvalidInputError, StateError
from ai_whisperer.models.base import ModelRequest
from tests.simulation.stage import call, calls, play, play_over_crash, prompt_of, results_of, round_of, until

Say = Callable[[ModelRequest], Answer | str]


def planner(*coders: str, **terms: Any) -> Say:
    """Delegates a part to each coder, and says what came back when mail comes."""

    def say(request: ModelRequest) -> Answer | str:
        prompt = prompt_of(request)
        if "You have mail" in prompt:
            return f"heard: {prompt}"
        if round_of(request) == 0:
            return calls(*(("delegate_task", {"to_agent": who, "task": f"part of {who}", **terms}) for who in coders))
        return "; ".join(results_of(request))

    return say


def by_name(**members: Say) -> Say:
    def did_it(request: ModelRequest) -> str:
        return f"{request.agent_id} did it"

    return lambda request: members.get(request.agent_id, did_it)(request)


@tool
async def hours(number: float) -> str:
    """Work for so many hours."""
    await asyncio.sleep(number * 3600)
    return "worked"


def worker(number: float) -> Say:
    return lambda request: call("hours", number=number) if round_of(request) == 0 else "worked"


async def all_idle(manager: AsyncAgentSessionManager) -> None:
    await manager.at_rest()


def test_delegated_tasks_run_side_by_side_and_their_results_come_as_mail() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "c1", "c2", "c3"):
            await manager.create_agent(name)
        task = await manager.send_task("plan", "go")
        ended = await manager.wait_task(task)
        assert ended.result is not None
        assert ended.result.final.count("Its result will come as mail") == 3
        await all_idle(manager)
        started = {(await manager.list_tasks(name))[0].started_at for name in ("c1", "c2", "c3")}
        assert len(started) == 1, "they run at the same time"
        mails = await manager.mailbox("plan")
        assert {mail.body.split(":\n")[1] for mail in mails} == {"c1 did it", "c2 did it", "c3 did it"}
        assert all(mail.thread_id == task.thread_id and mail.subject.startswith("Result of part") for mail in mails)

    play(scenario, by_name(plan=planner("c1", "c2", "c3")))


def test_the_tree_shows_what_caused_what() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        task = await manager.send_task("plan", "go")
        await manager.wait_task(task)
        await all_idle(manager)
        tree = await manager.get_task_tree(task.id)
        assert [(each.agent_id, each.kind) for each in tree] == [
            ("plan", "user_prompt"),
            ("c1", "delegated_task"),
            ("plan", "mailbox_message"),
        ]
        assert [each.parent_id for each in tree] == [None, tree[0].id, tree[1].id]
        assert await manager.get_task_tree(tree[2].id) == tree

    play(scenario, by_name(plan=planner("c1")))


def test_a_delegated_task_that_fails_is_reported_too() -> None:
    from ai_whisperer.errors import ModelRefusedError

    def broken(_: ModelRequest) -> Answer | str:
        raise ModelRefusedError

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        await manager.run_task("plan", "go")
        await all_idle(manager)
        mail = (await manager.mailbox("plan"))[0]
        assert mail.subject == "Not done (failed): part of c1"
        assert "The provider refused the request" in mail.body
        failed = (await manager.dead_letters()).tasks[0]
        await manager.retry_task(failed)

        async def is_so() -> bool:
            return len(await manager.mailbox("plan")) == 2

        await until(is_so)

    play(scenario, by_name(plan=planner("c1"), c1=broken))


def test_the_result_of_a_task_in_several_parts_is_reported_as_a_whole_under_its_first_id() -> None:
    def c1(request: ModelRequest) -> str:
        return "part two" if "Continue" in prompt_of(request) else "part one\n[CONTINUE]"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        final = await manager.run_task("plan", "go")
        await all_idle(manager)
        (mail,) = await manager.mailbox("plan")
        delegated = final.split(" as task ")[1].split(". ")[0]
        assert (mail.subject, mail.body) == ("Result of part of c1", f"Task {delegated}:\npart one\npart two")

    play(scenario, by_name(plan=planner("c1"), c1=c1))


@pytest.mark.parametrize(
    ("to", "task", "told"),
    [
        ("plan", "x", "cannot delegate to itself"),
        ("nobody", "x", "There is no agent 'nobody'. Valid names: plan, tom"),
        ("tom", "x", "'tom' is not started"),
        ("plan2", "  ", "The task is empty"),
    ],
)
def test_a_delegation_that_makes_no_sense_is_an_error_for_the_model(to: str, task: str, told: str) -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("delegate_task", to_agent=to, task=task) if round_of(request) == 0 else results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("tom", auto_start=False)
        if to == "plan2":
            await manager.create_agent("plan2")
        assert told in await manager.run_task("plan", "go")
        assert await manager.list_tasks("tom") == []

    play(scenario, say)


def test_a_deadline_holds_for_the_whole_tree() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        await manager.send_task("plan", "go", timeout_seconds=600, task_id="root")
        await all_idle(manager)
        late = (await manager.list_tasks("c1"))[0]
        assert (late.state, late.error and late.error.code) == ("failed", "deadline")
        assert late.deadline_at == (await manager.get_task("root")).deadline_at
        assert late.finished_at is not None
        assert late.deadline_at is not None
        assert late.finished_at - late.deadline_at < 1
        step = (await manager.list_steps(late.id))[-1]
        assert step.state == "unknown", "the tool that was under way is gone"

    play(scenario, by_name(plan=planner("c1"), c1=worker(5)), tools=[hours])


def test_a_delegation_with_a_time_of_its_own_reports_that_it_is_late() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        await manager.run_task("plan", "go")
        await all_idle(manager)
        assert (await manager.mailbox("plan"))[0].subject == "Not done (failed): part of c1"
        heard = (await manager.list_tasks("plan"))[0]
        assert (heard.state, heard.deadline_at) == ("completed", None)

    play(scenario, by_name(plan=planner("c1", timeout_seconds=60), c1=worker(5)), tools=[hours])


def test_a_task_that_waits_beyond_its_deadline_fails_at_the_deadline() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", auto_start=False)
        task = await manager.send_task("a", "go", timeout_seconds=60)
        ended = await manager.wait_task(task)
        assert ended.error is not None
        assert (ended.error.code, ended.state, ended.started_at) == ("deadline", "failed", None)

    play(scenario)


@pytest.mark.parametrize("down_for", [0, 5000])
def test_a_deadline_survives_a_crash(down_for: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.send_task("a", "go", timeout_seconds=600, task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        ended = await manager.wait_task("t")
        assert (ended.state, ended.error and ended.error.code) == ("failed", "deadline")

    play_over_crash(
        before, after, worker(5), crash_after_seconds=100, down_for_seconds=down_for, tools=[_repeatable_hours()]
    )


def _repeatable_hours() -> Any:
    return tool(idempotent=True, name="hours")(hours.function)


def costly(request: ModelRequest) -> Answer | str:
    if round_of(request) < 5 and "You have mail" not in prompt_of(request):
        answer = (
            call("delegate_task", to_agent="c1", task="more") if request.agent_id == "plan" else call("list_agents")
        )
        return Answer(tool_calls=answer.tool_calls, usage=Usage(input_tokens=600, output_tokens=400, cost_usd=0.1))
    return Answer(text="; ".join(results_of(request)) or "ok", usage=Usage(input_tokens=600, output_tokens=400))


@pytest.mark.parametrize("budget", [Budget(max_tokens=4_500), Budget(max_cost_usd=0.45)])
def test_a_budget_holds_for_the_whole_tree(budget: Budget) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1", {"limits": {"max_concurrent_tasks": 5}})
        task = await manager.send_task("plan", "go", budget=budget)
        await manager.wait_task(task)
        await all_idle(manager)
        tree = await manager.get_task_tree(task.id)
        used = sum(each.usage.input_tokens + each.usage.output_tokens for each in tree)
        assert 2_000 <= used <= 4_500
        assert {each.error.code for each in tree if each.error} == {"budget"}
        assert all(each.state.ended for each in tree)

    play(scenario, costly)


def test_a_budget_survives_a_restart_of_the_process() -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        await manager.send_task("plan", "go", task_id="t", budget=Budget(max_tokens=4_500))
        await asyncio.sleep(100)

    async def after(manager: AsyncAgentSessionManager) -> None:
        await all_idle(manager)
        used = sum(each.usage.input_tokens + each.usage.output_tokens for each in await manager.get_task_tree("t"))
        assert 2_000 <= used <= 4_500

    play_over_crash(before, after, costly, crash_after_seconds=2.5)


def test_delegation_on_a_spent_budget_is_refused() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            answer = call("delegate_task", to_agent="c1", task="more")
            return Answer(tool_calls=answer.tool_calls, usage=Usage(input_tokens=1_500, output_tokens=1_000))
        return "never asked"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        task = await manager.send_task("plan", "go", budget=Budget(max_tokens=2_000))
        ended = await manager.wait_task(task)
        assert (ended.state, ended.error and ended.error.code) == ("failed", "budget")
        result = (await manager.list_steps(task.id))[1].result
        assert result is not None
        assert "The budget is spent (2,500 of 2,000 tokens are used)" in result.content
        assert await manager.list_tasks("c1") == []

    play(scenario, say)


@pytest.mark.parametrize(
    "terms",
    [
        {"timeout_seconds": 0},
        {"timeout_seconds": -1},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": 1e300},
        {"timeout_seconds": "5"},
        {"budget": Budget(max_tokens=0)},
        {"budget": Budget(max_cost_usd=-1)},
        {"budget": Budget(max_cost_usd=float("inf"))},
        {"budget": {"max_tokens": 5}},
    ],
)
def test_terms_that_make_no_sense_are_refused_and_nothing_changes(terms: dict[str, Any]) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        with pytest.raises(InvalidInputError):
            await manager.send_task("a", "go", **terms)
        assert await manager.list_tasks("a") == []

    play(scenario)


def test_cancelling_a_tree_ends_all_of_it_and_nobody_is_told_of_parts() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "c1", "c2", "d1", "bystander"):
            await manager.create_agent(name)
        await manager.send_task("bystander", "work")
        task = await manager.send_task("plan", "go")
        await asyncio.sleep(600)
        cancelled = await manager.cancel_tree(task)
        assert {each.agent_id for each in cancelled} == {"c1", "c2", "d1"}
        assert all(each.state.ended for each in await manager.get_task_tree(task.id))
        assert await manager.mailbox("plan") == []
        assert manager.get_agent_status("bystander").state is AgentState.ACTIVE
        with pytest.raises(StateError, match="nothing to cancel"):
            await manager.cancel_tree(task)

    def c1(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("delegate_task", to_agent="d1", task="deeper")
        return call("hours", number=5) if round_of(request) == 1 else "done"

    say = by_name(plan=planner("c1", "c2"), c1=c1, c2=worker(5), d1=worker(5), bystander=worker(5))
    play(scenario, say, tools=[hours])


def test_a_tool_cannot_cancel_the_tree_that_its_own_agent_is_in_and_nothing_is_cancelled() -> None:
    told: list[str] = []

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        @tool
        async def cancel_all(root: str) -> str:
            """Cancel the whole tree."""
            await asyncio.sleep(60)
            await manager.cancel_tree(root)
            return "cancelled"

        def say(request: ModelRequest) -> Answer | str:
            if round_of(request) == 0:
                return calls(("delegate_task", {"to_agent": "c1", "task": "work"}), ("cancel_all", {"root": "root"}))
            told.extend(results_of(request))
            return "done"

        says["plan"] = say
        await manager.create_agent("plan", tools=[cancel_all])
        await manager.create_agent("c1")
        await manager.wait_task(await manager.send_task("plan", "go", task_id="root"))
        assert "cannot cancel the tree of a task of its own agent" in told[1]
        assert (await manager.list_tasks("c1"))[0].state is TaskState.RUNNING

    says: dict[str, Say] = {"c1": worker(5)}
    play(scenario, lambda request: says[request.agent_id](request), tools=[hours])


def test_cancelling_a_branch_leaves_the_rest_of_the_tree() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "c1", "c2"):
            await manager.create_agent(name)
        task = await manager.send_task("plan", "go")
        await asyncio.sleep(600)
        branch = (await manager.list_tasks("c1"))[0]
        assert [each.id for each in await manager.cancel_tree(branch)] == [branch.id]
        await all_idle(manager)
        assert (await manager.list_tasks("c2"))[0].state is TaskState.COMPLETED
        assert len(await manager.get_task_tree(task.id)) == 4

    play(scenario, by_name(plan=planner("c1", "c2"), c1=worker(5), c2=worker(5)), tools=[hours])


def test_cancelling_a_tree_withdraws_mail_that_nobody_has_begun() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return calls(("send_mail", {"to_agent": "b", "subject": "s", "body": "b"}), ("hours", {"number": 5}))
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.create_agent("b")
        await manager.pause_agent("b")
        task = await manager.send_task("a", "go")
        await asyncio.sleep(60)
        await manager.cancel_tree(task)
        assert (await manager.mailbox("b"))[0].state == "archived"
        await manager.resume_agent("b")
        await asyncio.sleep(60)
        assert await manager.list_tasks("b") == []

    play(scenario, say, tools=[hours])


def test_help_goes_to_the_named_one_or_to_those_who_offer_it_or_to_the_person() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id != "a" or "You have mail" in prompt_of(request):
            return "ok"
        if round_of(request) == 0:
            named = {"to_agent": "b"} if "b" in prompt_of(request) else {}
            return call("request_help", problem="The tests hang.", **named)
        return results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a")
        await manager.create_agent("b")
        assert "No agent offers help" in await manager.run_task("a", "go")
        assert (await manager.mailbox())[0].subject == "Help wanted: The tests hang."
        assert "Asked b for help" in await manager.run_task("a", "b")
        assert (await manager.mailbox("b"))[0].priority == "high"
        await manager.create_agent("d", {"subscribes": ["help_requested"]}, auto_start=False)
        assert "No agent offers help" in await manager.run_task("a", "go"), "one that is not started is no help"
        await manager.create_agent("c", {"subscribes": ["help_requested"]})
        assert "Asked 1 agent(s) that offer help" in await manager.run_task("a", "go")
        assert "The tests hang." in (await manager.list_tasks("c"))[0].prompt

    play(scenario, say)


def test_others_can_read_the_progress_of_a_task() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "c1":
            return calls(("report_progress", {"percent": 40, "note": "half way"}), ("hours", {"number": 1}))
        return call("agent_status", agent="c1") if round_of(request) == 0 else results_of(request)[-1]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("c1")
        await manager.create_agent("watch")
        await manager.send_task("c1", "go")
        await asyncio.sleep(60)
        final = await manager.run_task("watch", "look")
        assert '"progress_percent":40.0,"progress_note":"half way"' in final

    play(scenario, say, tools=[hours])


@pytest.mark.parametrize("crash_after", [0.3 + 0.35 * step for step in range(14)])
def test_a_delegation_is_done_and_reported_once_over_a_crash(crash_after: float) -> None:
    async def before(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "c1", "c2"):
            await manager.create_agent(name)
        await manager.send_task("plan", "go", task_id="t")
        await asyncio.sleep(1000)

    async def after(manager: AsyncAgentSessionManager) -> None:
        if len(manager.active_sessions) < 3:
            return
        await all_idle(manager)
        if not await manager.list_tasks("plan"):
            return
        assert [len(await manager.list_tasks(name)) for name in ("plan", "c1", "c2")] == [3, 1, 1]
        assert len(await manager.mailbox("plan")) == 2

    play_over_crash(before, after, by_name(plan=planner("c1", "c2")), crash_after_seconds=crash_after)


def test_a_task_without_time_or_budget_left_cannot_be_retried() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("a", auto_start=False)
        late = await manager.wait_task(await manager.send_task("a", "go", timeout_seconds=5))
        await manager.create_agent("plan")
        await manager.create_agent("c1")
        poor = await manager.wait_task(await manager.send_task("plan", "go", budget=Budget(max_cost_usd=0.1)))
        await all_idle_of(manager, "plan")
        for task, why in ((late, "time for task .* is over"), (poor, "budget of task .* is spent")):
            with pytest.raises(StateError, match=why):
                await manager.retry_task(task)
            assert (await manager.get_task(task)).state is TaskState.FAILED

    async def all_idle_of(manager: AsyncAgentSessionManager, name: str) -> None:
        await until(lambda: manager.get_agent_status(name).state is AgentState.IDLE)

    play(scenario, costly)


def asks_after(name: str) -> Say:
    """Delegates a part to the coder, and asks after it, or after what is called so, a minute later."""

    def say(request: ModelRequest) -> Answer | str:
        results = results_of(request)
        if "You have mail" in prompt_of(request):
            return "heard"
        match round_of(request):
            case 0:
                return call("delegate_task", to_agent="coder", task="part")
            case 1:
                return call("hours", number=1 / 60)
            case 2:
                return call("agent_status", agent=name or results[0].split()[5].rstrip("."))
            case _:
                return results[-1]

    return say


def coder_with_progress(request: ModelRequest) -> Answer | str:
    if round_of(request) == 0:
        return call("report_progress", percent=40, note="compiling")
    return call("hours", number=1) if round_of(request) == 1 else "built"


def test_an_agent_can_read_the_progress_of_a_task_that_it_gave_away_by_its_id() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "coder"):
            await manager.create_agent(name)
            await manager.start_agent(name)
        status = msgspec.json.decode(await manager.run_task("plan", "go"))
        assert (status["agent"], status["state"]) == ("coder", "running")
        assert (status["progress_percent"], status["progress_note"]) == (40, "compiling")
        assert status["running_seconds"] > 0

    play(scenario, by_name(plan=asks_after(""), coder=coder_with_progress), tools=[hours])


def test_the_task_of_somebody_else_cannot_be_read_by_its_id() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "spy", "coder"):
            await manager.create_agent(name)
            await manager.start_agent(name)
        await manager.run_task("plan", "go", task_id="t1")
        assert "You have delegated no task 't1.2~task'" in await manager.run_task("spy", "go", task_id="t2")

    play(scenario, by_name(plan=asks_after(""), spy=asks_after("t1.2~task"), coder=coder_with_progress), tools=[hours])


def test_a_delegated_task_that_was_continued_is_read_as_it_is_in_the_end() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request).startswith("Continue"):
            return (
                call("report_progress", percent=90, note="nearly")
                if round_of(request) == 0
                else call("hours", number=1)
            )
        return Answer(text="the first half", finish="length")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name in ("plan", "coder"):
            await manager.create_agent(name)
            await manager.start_agent(name)
        status = msgspec.json.decode(await manager.run_task("plan", "go", task_id="t1"))
        assert (status["task"], status["state"], status["progress_note"]) == ("t1.2~task", "running", "nearly")
        assert (await manager.get_task("t1.2~task")).state is TaskState.CONTINUED

    play(scenario, by_name(plan=asks_after("t1.2~task"), coder=say), tools=[hours])
