"""Tools that need a person's approval: their calls wait for it, over restarts too, and run at most once on it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import FilePath

from ai_whisperer import AsyncAgentSessionManager, TaskState, ToolContext, tool
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.approvals import ApprovalRecord, ApprovalState
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import DefinitionError, InvalidInputError, StateError, UnknownApprovalError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.models.scripted import FunctionModel
from tests.simulation.stage import (
    Say,
    call,
    calls,
    names_of,
    play,
    play_over_crash,
    prompt_of,
    results_of,
    round_of,
    until,
)

REFUSED = "Refused: a person did not allow this call of 'pay', and it was not run."


class Till:
    """Counts what was paid, by step; what it knows survives the process."""

    def __init__(self, *, seconds: float = 0.0) -> None:
        self.paid: Counter[str] = Counter()
        self.looked: Counter[str] = Counter()
        self._seconds = seconds

    def tools(self, *, idempotent: bool = False, needs_approval: Any = True) -> list[Any]:
        @tool(idempotent=idempotent, needs_approval=needs_approval)
        async def pay(amount: int, context: ToolContext) -> str:
            """Pay so much."""
            self.paid[context.step_id] += 1
            await asyncio.sleep(self._seconds)
            return f"paid {amount}"

        @tool
        async def look(context: ToolContext) -> str:
            """Look at the till."""
            self.looked[context.step_id] += 1
            return "looked"

        return [pay, look]


def pays_once(request: ModelRequest) -> Answer | str:
    return call("pay", amount=5) if round_of(request) == 0 else results_of(request)[0]


async def asked(manager: AsyncAgentSessionManager, *, count: int = 1) -> list[ApprovalRecord]:
    """Wait until so many calls wait for a person."""

    async def is_so() -> bool:
        return len(await manager.list_approvals()) == count

    await until(is_so)
    return await manager.list_approvals()


async def one_that_waits(manager: AsyncAgentSessionManager) -> ApprovalRecord:
    await manager.create_agent("alice")
    await manager.send_task("alice", "go", task_id="t")
    return (await asked(manager))[0]


def test_a_call_waits_until_a_person_allows_it_and_then_runs_once() -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        approval = await one_that_waits(manager)
        assert (approval.id, approval.agent_id, approval.task_id) == ("t.2", "alice", "t")
        assert (approval.tool, approval.arguments, approval.state) == ("pay", '{"amount":5}', "pending")
        assert manager.get_agent_status("alice").waiting_for == ("approval:t.2",)
        assert [step.number for step in await manager.list_steps("t")] == [1]
        assert not till.paid
        approved = await manager.approve("t.2", digest=approval.digest, reason="fine", by="ann")
        assert (approved.state, approved.decided_by, approved.reason) == ("approved", "ann", "fine")
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED
        assert till.paid == {"t.2": 1}
        assert await manager.get_approval("t.2") == approved
        assert [name for name in await names_of(manager) if name.startswith(("approval", "step"))] == [
            "step.started",
            "step.finished",
            "approval.requested",
            "approval.approved",
            "step.started",
            "step.finished",
            "step.started",
            "step.finished",
        ]

    play(scenario, pays_once, tools=till.tools())


def test_a_refusal_with_its_reason_is_what_the_model_reads() -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        refused = await manager.refuse("t.2", reason="Ask the treasurer first.")
        assert refused.state is ApprovalState.REFUSED
        ended = await manager.wait_task("t")
        assert ended.result is not None
        assert ended.result.final.startswith(f"{REFUSED} They say: Ask the treasurer first.")
        result = (await manager.list_steps("t"))[1].result
        assert result is not None
        assert result.is_error
        assert not till.paid
        assert "approval.refused" in await names_of(manager)

    play(scenario, pays_once, tools=till.tools())


def test_the_same_decision_again_changes_nothing_and_the_opposite_one_is_an_error() -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        first = await manager.approve("t.2", reason="yes")
        assert await manager.approve("t.2", reason="again") == first
        with pytest.raises(StateError, match="approved already"):
            await manager.refuse("t.2")
        await manager.wait_task("t")
        assert await manager.approve("t.2") == first
        await manager.send_task("alice", "go", task_id="u", thread_id="other")
        await asked(manager)
        refused = await manager.refuse("u.2")
        assert await manager.refuse("u.2") == refused
        with pytest.raises(StateError, match="refused already"):
            await manager.approve("u.2")
        await manager.wait_task("u")
        assert till.paid == {"t.2": 1}

    play(scenario, pays_once, tools=till.tools())


def test_a_yes_to_other_arguments_than_those_that_wait_is_no_yes() -> None:
    till = Till()

    def say(request: ModelRequest) -> Answer | str:
        return call("pay", amount=int(prompt_of(request))) if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        for name, amount in (("alice", "5"), ("bob", "5000")):
            await manager.create_agent(name)
            await manager.send_task(name, amount, task_id=name)
        small, large = await asked(manager, count=2)
        with pytest.raises(StateError, match="not the one you saw"):
            await manager.approve(large.id, digest=small.digest)
        assert await manager.list_approvals() == [small, large]
        assert not till.paid
        await manager.approve(large.id, digest=large.digest)
        await manager.wait_task("bob")
        assert till.paid == {large.id: 1}

    play(scenario, say, tools=till.tools())


def test_arguments_that_nobody_allowed_do_not_run_on_a_yes_to_others() -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.pause_agent("alice")
        await manager.approve("t.2")
        steps = manager._session.roster.running["t"].running.journal.steps
        answer = steps[0].answer
        assert answer is not None
        changed = replace(answer.tool_calls[0], arguments='{"amount":5000}')
        steps[0] = replace(steps[0], answer=replace(answer, tool_calls=(changed,)))
        await manager.resume_agent("alice")
        (again,) = await asked(manager)
        assert (again.arguments, again.state) == ('{"amount":5000}', "pending")
        assert not till.paid

    play(scenario, pays_once, tools=till.tools())


def test_the_other_calls_of_an_answer_run_while_one_waits() -> None:
    till = Till()

    def say(request: ModelRequest) -> Answer | str:
        wanted = calls(("pay", {"amount": 1}), ("look", {}), ("pay", {"amount": 2}))
        return wanted if round_of(request) == 0 else " | ".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "go", task_id="t")
        first, second = await asked(manager, count=2)
        await until(lambda: till.looked == {"t.3": 1})
        assert manager.get_agent_status("alice").waiting_for == ("approval:t.2", "approval:t.4")
        await manager.approve(second.id)
        await until(lambda: till.paid == {"t.4": 1})
        assert await manager.list_approvals() == [first]
        await manager.refuse(first.id, reason="too little")
        ended = await manager.wait_task("t")
        assert ended.result is not None
        assert ended.result.final.startswith(REFUSED)
        assert ended.result.final.endswith("| looked | paid 2")
        assert till.paid == {"t.4": 1}

    play(scenario, say, tools=till.tools())


@pytest.mark.parametrize("deed", ["cancel", "stop"])
@pytest.mark.parametrize("allowed", ["not allowed", "allowed"])
def test_when_the_task_ends_the_approval_is_withdrawn_and_the_task_asks_again_when_it_is_taken_up(
    deed: str, allowed: str
) -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        if allowed == "allowed":
            await manager.pause_agent("alice")
            await manager.approve("t.2")
        await (manager.cancel_task("t") if deed == "cancel" else manager.stop_agent("alice"))
        withdrawn = await manager.get_approval("t.2")
        assert (withdrawn.state, withdrawn.decided_by) == (ApprovalState.WITHDRAWN, None)
        assert withdrawn.reason
        assert (await names_of(manager)).count("approval.withdrawn") == 1
        assert await manager.list_approvals() == []
        with pytest.raises(StateError, match="withdrawn already"):
            await manager.approve("t.2")
        if deed == "stop":
            await manager.start_agent("alice")
        elif allowed == "allowed":
            await manager.resume_agent("alice")
        await manager.retry_task("t")
        await asked(manager)
        assert not till.paid
        await manager.approve("t.2")
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED
        assert till.paid == {"t.2": 1}

    play(scenario, pays_once, tools=till.tools())


def test_a_person_may_take_as_long_as_the_task_has() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "go", task_id="t", timeout_seconds=86_400)
        await asked(manager)
        await asyncio.sleep(86_000)
        assert len(await manager.list_approvals()) == 1
        assert (await manager.wait_task("t")).state is TaskState.FAILED
        expired = await manager.get_approval("t.2")
        assert (expired.state, expired.decided_by) == (ApprovalState.EXPIRED, None)
        assert "approval.withdrawn" in await names_of(manager)

    play(scenario, pays_once, tools=Till().tools())


def test_what_a_paused_agent_is_allowed_runs_when_it_is_resumed() -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.pause_agent("alice")
        await manager.approve("t.2")
        await asyncio.sleep(10)
        assert manager.get_agent_status("alice").state is AgentState.PAUSED
        assert not till.paid
        await manager.resume_agent("alice")
        await manager.wait_task("t")
        assert till.paid == {"t.2": 1}

    play(scenario, pays_once, tools=till.tools())


@pytest.mark.parametrize("decision", ["approve", "refuse"])
def test_a_call_that_waits_goes_on_waiting_after_a_restart(decision: str) -> None:
    till = Till()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)

    async def after(manager: AsyncAgentSessionManager) -> None:
        (approval,) = await manager.list_approvals()
        assert manager.get_agent_status("alice").waiting_for == ("approval:t.2",)
        await (manager.approve(approval.id) if decision == "approve" else manager.refuse(approval.id))
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED
        assert till.paid == ({"t.2": 1} if decision == "approve" else {})
        assert (await names_of(manager)).count("approval.requested") == 1

    play_over_crash(before, after, pays_once, crash_after_seconds=10, tools=till.tools())


def test_what_was_allowed_and_had_not_begun_runs_after_a_restart_without_being_asked_again() -> None:
    till = Till()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.pause_agent("alice")
        await manager.approve("t.2")

    async def after(manager: AsyncAgentSessionManager) -> None:
        assert not till.paid
        await manager.resume_agent("alice")
        assert (await manager.wait_task("t")).state is TaskState.COMPLETED
        assert till.paid == {"t.2": 1}
        assert (await names_of(manager)).count("approval.requested") == 1

    play_over_crash(before, after, pays_once, crash_after_seconds=10, tools=till.tools())


@pytest.mark.parametrize(("idempotent", "times", "state"), [(False, 1, StepState.UNKNOWN), (True, 2, StepState.DONE)])
def test_a_call_cut_off_after_the_yes_is_repeated_only_if_that_does_no_harm(
    *, idempotent: bool, times: int, state: StepState
) -> None:
    till = Till(seconds=50)

    async def before(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.approve("t.2")
        await until(lambda: bool(till.paid))

    async def after(manager: AsyncAgentSessionManager) -> None:
        await manager.wait_task("t")
        assert till.paid == {"t.2": times}
        assert (await manager.list_steps("t"))[1].state is state
        assert (await names_of(manager)).count("approval.requested") == 1
        assert (await manager.get_approval("t.2")).state is ApprovalState.APPROVED

    play_over_crash(before, after, pays_once, crash_after_seconds=10, tools=till.tools(idempotent=idempotent))


@pytest.mark.parametrize("instant", [1.0 + n / 250 for n in range(16)])
def test_wherever_the_process_dies_around_the_yes_the_call_runs_at_most_once(instant: float) -> None:
    till = Till()

    async def before(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.approve("t.2")
        await manager.wait_task("t")

    async def after(manager: AsyncAgentSessionManager) -> None:
        while not (await manager.get_task("t")).state.ended:
            for approval in await manager.list_approvals():
                await manager.approve(approval.id)

            async def is_so() -> bool:
                return bool(await manager.list_approvals()) or (await manager.get_task("t")).state.ended

            await until(is_so)
        assert till.paid["t.2"] <= 1
        assert (await manager.list_steps("t"))[1].state is StepState.UNKNOWN or till.paid["t.2"] == 1

    play_over_crash(before, after, pays_once, crash_after_seconds=instant, tools=till.tools())


def over_ten(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments["amount"] > 10)


def cannot_tell(arguments: Mapping[str, Any]) -> bool:
    raise RuntimeError(f"cannot tell of {arguments}")


@pytest.mark.parametrize(("says", "amount", "asks"), [(over_ten, 5, 0), (over_ten, 50, 1), (cannot_tell, 5, 1)])
def test_a_function_of_the_arguments_says_whether_a_person_is_asked(says: Any, amount: int, asks: int) -> None:
    till = Till()

    def say(request: ModelRequest) -> Answer | str:
        return call("pay", amount=amount) if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.send_task("alice", "go", task_id="t")
        if asks:
            await asked(manager)
            assert not till.paid
            await manager.approve("t.2")
        await manager.wait_task("t")
        assert till.paid == {"t.2": 1}
        assert (await names_of(manager)).count("approval.requested") == asks

    play(scenario, say, tools=till.tools(needs_approval=says))


@pytest.mark.parametrize("approve", [["pay"], ["*"], ["p*"]])
def test_a_definition_puts_tools_under_approval_whatever_they_say(approve: list[str]) -> None:
    till = Till()

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"approve": approve})
        await manager.send_task("alice", "go", task_id="t")
        await asked(manager)
        assert not till.paid

    play(scenario, pays_once, tools=till.tools(needs_approval=False))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pey", "does not have"),
        ("send_mail", "no effects outside"),
        ("mcp__files", "Write 'mcp__files__[*]'"),
        ("mcp__files__read.all", "Write 'mcp__files__read_all'"),
    ],
)
def test_a_definition_that_asks_about_a_tool_that_is_not_there_is_refused(name: str, why: str) -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        with pytest.raises(DefinitionError, match=why):
            await manager.create_agent("alice", {"approve": [name]})

    play(scenario, tools=Till().tools())


def test_a_tool_of_an_mcp_server_is_put_under_approval_by_a_definition() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("mcp__files__remove", path="all") if round_of(request) == 0 else results_of(request)[0]

    async def main() -> None:
        async with AsyncAgentSessionManager(
            mcp_servers={"files": {"command": "false"}}, model_factory=lambda _: FunctionModel(say)
        ) as manager:
            await manager.create_agent("alice", {"tools": ["mcp__files__*"], "approve": ["mcp__files__*"]})
            subscription = manager.subscribe()
            await manager.send_task("alice", "go", task_id="t")
            while (await anext(subscription)).name != "approval.requested":
                pass
            assert (await manager.list_approvals())[0].arguments == '{"path":"all"}'
            await manager.refuse("t.2")
            assert (await manager.wait_task("t")).state is TaskState.COMPLETED
            subscription.close()

    asyncio.run(main())


def test_nobody_is_asked_about_a_call_whose_arguments_do_not_fit() -> None:
    till = Till()

    def say(request: ModelRequest) -> Answer | str:
        return call("pay", amount="much") if round_of(request) == 0 else results_of(request)[0]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert "do not fit" in await manager.run_task("alice", "go")
        assert not till.paid

    play(scenario, say, tools=till.tools())


def test_whoever_waits_for_a_task_that_waits_for_a_person_gets_its_answer() -> None:
    def say(request: ModelRequest) -> Answer | str:
        if prompt_of(request) == "ask":
            asks = call("send_mail_with_switch", to_agent="alice", subject="Please", body="go")
            return asks if round_of(request) == 0 else results_of(request)[0]
        return pays_once(request)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        await manager.create_agent("bob")
        await manager.send_task("bob", "ask", task_id="b")
        (approval,) = await asked(manager)
        assert manager.get_agent_status("bob").waiting_for == ("alice",)
        await manager.approve(approval.id)
        ended = await manager.wait_task("b")
        assert ended.result is not None
        assert "paid 5" in ended.result.final

    play(scenario, say, tools=Till().tools())


def test_all_that_was_decided_can_be_looked_up() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await one_that_waits(manager)
        await manager.refuse("t.2")
        await manager.wait_task("t")
        await manager.send_task("alice", "go", task_id="u", thread_id="other")
        await asked(manager)
        await manager.flushed()
        assert [each.id for each in await manager.list_approvals(state=None)] == ["u.2", "t.2"]
        assert [each.id for each in await manager.list_approvals(state="refused")] == ["t.2"]
        with pytest.raises(UnknownApprovalError, match="no approval 'nope'"):
            await manager.get_approval("nope")
        with pytest.raises(InvalidInputError, match="state must be one of"):
            await manager.list_approvals(state="odd")

    play(scenario, pays_once, tools=Till().tools())


def test_needs_approval_must_be_a_truth_value_or_a_plain_function() -> None:
    async def later(_: Mapping[str, Any]) -> bool:
        return True

    odd: list[Any] = [later, "yes", None, 1]
    for each in odd:
        with pytest.raises(InvalidInputError, match="needs_approval must be"):
            tool(needs_approval=each)(lambda: "x")


def touch(path: str) -> None:
    Path(path).touch()


def opens_and_destroys(order: tuple[str, str], target: Path) -> Say:
    def say(request: ModelRequest) -> Answer | str:
        if round_of(request):
            return " | ".join(results_of(request))
        return calls(*((name, {"path": str(target)}) for name in order))

    return say


@pytest.mark.parametrize("stated", [{"needs_approval": True}, {"needs_approval": lambda _: True}])
@pytest.mark.parametrize("order", [("make", "destroy"), ("destroy", "make")])
def test_a_call_whose_arguments_fit_only_when_it_would_run_is_not_run_without_a_yes(
    stated: dict[str, Any], order: tuple[str, str], tmp_path: Path
) -> None:
    destroyed: list[Path] = []
    target = tmp_path / "precious"

    async def make(path: str) -> str:
        """Make the file."""
        touch(path)
        return "made"

    @tool(**stated)
    async def destroy(path: FilePath) -> str:
        """Destroy the file."""
        destroyed.append(path)
        return "destroyed"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        answer = await manager.run_task("alice", "go")
        assert target.exists()
        assert "made" in answer
        assert "do not fit" in answer
        assert destroyed == []

    play(scenario, opens_and_destroys(order, target), tools=[make, destroy])


def test_a_call_that_waits_for_its_turn_runs_with_what_it_touches_or_not_at_all(tmp_path: Path) -> None:
    read: list[Path] = []
    target = tmp_path / "precious"

    async def make(path: str) -> str:
        """Make the file."""
        touch(path)
        return "made"

    @tool(touches="write file:{path}")
    async def destroy(path: FilePath) -> str:
        """Destroy the file."""
        read.append(path)
        return "destroyed"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert "do not fit" in await manager.run_task("alice", "go")
        assert read == []

    play(scenario, opens_and_destroys(("make", "destroy"), target), tools=[make, destroy])
