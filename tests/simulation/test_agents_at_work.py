"""Tasks, loops and the lifecycle, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.errors import StateError, TaskEndedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.records import Answer, StepState, ToolTurn
from tests.simulation.stage import call, calls, names_of, play, prompt_of, results_of, round_of, until


def test_a_task_is_answered_and_the_agent_comes_to_rest() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        agent = await manager.create_agent("alice")
        assert await manager.run_task(agent, "Say hello") == "hello to Say hello"
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        assert await names_of(manager) == [
            "agent.created",
            "agent.started",
            "async.task.queued",
            "agent.state_changed",
            "async.task.started",
            "step.started",
            "step.finished",
            "async.task.completed",
            "agent.state_changed",
        ]

    play(scenario, lambda request: f"hello to {prompt_of(request)}")


def test_tool_results_reach_the_model_and_the_answer_has_its_channels() -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return call("add", a=2, b=3)
        return f"[ANALYSIS]easy\n[FINAL]The sum is {results_of(request)[0]}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        ended = await manager.wait_task(await manager.send_task("alice", "2+3?"))
        assert ended.result is not None
        assert ended.result.final == "The sum is 5"
        assert ended.result.analysis == "easy"
        assert 'add({"a":2,"b":3}) → 5' in ended.result.commentary
        assert ended.usage.input_tokens > 10
        assert [step.state for step in manager.list_steps(ended.id)] == [StepState.DONE] * 3

    play(scenario, say, tools=[add])


def test_several_tool_calls_of_one_answer_run_side_by_side() -> None:
    running = 0
    most = 0

    @tool
    async def slow(n: int) -> int:
        """Take a while."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(10)
        running -= 1
        return n

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            return calls(*(("slow", {"n": n}) for n in range(5)))
        return ",".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "0,1,2,3,4"
        assert most == 5

    play(scenario, say, tools=[slow])


def test_agents_work_at_the_same_time() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        agents = [await manager.create_agent(f"a{n}") for n in range(20)]
        clock = asyncio.get_running_loop()
        begun = clock.time()
        await asyncio.gather(*(manager.run_task(agent, "go") for agent in agents))
        assert clock.time() - begun < 11

    play(scenario, latency_seconds=10)


def test_an_agent_runs_as_many_loops_as_it_may_and_the_rest_wait_in_order() -> None:
    order: list[str] = []

    def say(request: ModelRequest) -> str:
        order.append(prompt_of(request))
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_concurrent_tasks": 2}}, auto_start=False)
        tasks = [await manager.send_task("alice", f"n{n}") for n in range(4)]
        tasks.append(await manager.send_task("alice", "urgent", priority="urgent"))
        assert manager.get_agent_status("alice").queue_size == 5
        await manager.start_agent("alice")
        assert len(manager.get_agent_status("alice").running_tasks) == 2
        await asyncio.gather(*(manager.wait_task(task) for task in tasks))
        assert set(order[:2]) == {"urgent", "n0"}
        assert set(order[2:4]) == {"n1", "n2"}
        assert order[4] == "n3"

    play(scenario, say)


def test_tasks_of_one_thread_run_in_order_and_share_their_history() -> None:
    seen: list[list[str]] = []

    def say(request: ModelRequest) -> str:
        seen.append([turn.text for turn in request.turns if hasattr(turn, "text")])
        return "ok"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_concurrent_tasks": 5}})
        tasks = [await manager.send_task("alice", f"t{n}", thread_id="talk") for n in range(3)]
        tasks.append(await manager.send_task("alice", "elsewhere"))
        await asyncio.gather(*(manager.wait_task(task) for task in tasks))
        assert sorted(seen, key=len) == [["elsewhere"], ["t0"], ["t0", "t1"], ["t0", "t1", "t2"]] or sorted(
            seen, key=len
        ) == [["t0"], ["elsewhere"], ["t0", "t1"], ["t0", "t1", "t2"]]
        assert {thread.id: thread.tasks for thread in manager.list_threads("alice")}["talk"] == 3

    play(scenario, say)


def test_an_answer_that_asks_for_more_is_continued_in_the_same_thread() -> None:
    def say(request: ModelRequest) -> str:
        rounds = sum(prompt in ("long", "Go on where you stopped.") for prompt in prompts(request))
        return "the end" if rounds == 3 else f"part {rounds}\n[CONTINUE]"

    def prompts(request: ModelRequest) -> list[str]:
        return [turn.text for turn in request.turns if hasattr(turn, "text")]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.send_task("alice", "long")
        last = await manager.wait_task(first)
        assert last.result is not None
        assert last.result.final == "the end"
        assert last.continuation == 2
        part = manager.get_task(first.id)
        assert part.result is not None
        assert part.result.final == "part 1"
        assert (await names_of(manager)).count("async.task.continuation") == 2

    play(scenario, say)


def test_a_task_that_never_stops_asking_for_more_fails_at_the_limit() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_continuations": 3}})
        ended = await manager.wait_task(await manager.send_task("alice", "go"))
        assert ended.state is TaskState.FAILED
        assert ended.error is not None
        assert ended.error.code == "continuation_limit"

    play(scenario, lambda _: "more\n[CONTINUE]")


def test_a_task_that_never_stops_calling_tools_fails_at_the_step_limit() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_steps_per_task": 7}})
        with pytest.raises(TaskEndedError, match="wants step 8 and may have 7"):
            await manager.run_task("alice", "go")

    play(scenario, lambda _: call("list_agents"))


def test_pause_lets_the_step_under_way_finish_and_begins_no_other() -> None:
    def say(request: ModelRequest) -> Answer | str:
        return call("list_agents") if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(0.5)
        await manager.pause_agent("alice")
        await asyncio.sleep(100)
        assert [step.state for step in manager.list_steps(task.id)] == [StepState.DONE]
        assert manager.get_agent_status("alice").state is AgentState.PAUSED
        await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert manager.get_agent_status("alice").state is AgentState.IDLE

    play(scenario, say)


def test_pause_and_resume_within_one_step_changes_nothing_for_the_task() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> str:
        asked.append(request.step_id)
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await manager.pause_agent("alice")
        await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert len(asked) == 1

    play(scenario, say)


def test_interrupt_cancels_the_model_request_and_resume_repeats_it() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        await manager.interrupt_agent("alice")
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("loop")]
        await asyncio.sleep(1000)
        (step,) = manager.list_steps(task.id)
        assert (step.state, step.attempt) == (StepState.STARTED, 1)
        await manager.resume_agent("alice")
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        (step,) = manager.list_steps(task.id)
        assert step.attempt == 2

    play(scenario, latency_seconds=60)


def test_resume_while_the_interrupt_is_still_under_way_does_not_leave_the_loop_behind() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(5)
        interrupting = asyncio.ensure_future(manager.interrupt_agent("alice"))
        await until(lambda: manager.get_agent_status("alice").state is AgentState.PAUSED)
        await manager.resume_agent("alice")
        await interrupting
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED

    for seed in range(20):
        play(scenario, latency_seconds=60, seed=seed)


def test_stop_cancels_what_runs_keeps_the_queue_and_a_start_goes_on_with_it() -> None:
    ended: list[str] = []

    @tool
    async def forever() -> str:
        """Never end by itself."""
        try:
            await asyncio.sleep(1e9)
        finally:
            ended.append("tool")
        return "never"

    def say(request: ModelRequest) -> Answer | str:
        return call("forever") if "first" in prompt_of(request) and round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.send_task("alice", "first")
        second = await manager.send_task("alice", "second")
        await asyncio.sleep(10)
        status = await manager.stop_agent("alice", reason="enough")
        assert ended == ["tool"]
        assert (status.state, status.reason, status.queue_size) == (AgentState.STOPPED, "enough", 1)
        cancelled = await manager.wait_task(first)
        assert cancelled.state is TaskState.CANCELLED
        assert manager.list_steps(first.id)[-1].state is StepState.UNKNOWN
        await manager.start_agent("alice")
        assert (await manager.wait_task(second)).state is TaskState.COMPLETED

    play(scenario, say, tools=[forever])


def test_a_running_and_a_waiting_task_can_be_cancelled() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        tasks = [await manager.send_task("alice", f"n{n}") for n in range(3)]
        await asyncio.sleep(5)
        assert (await manager.cancel_task(tasks[1])).state is TaskState.CANCELLED
        assert (await manager.cancel_task(tasks[0])).state is TaskState.CANCELLED
        assert (await manager.wait_task(tasks[2])).state is TaskState.COMPLETED
        assert manager.get_agent_status("alice").state is AgentState.IDLE
        with pytest.raises(StateError, match="is cancelled already"):
            await manager.cancel_task(tasks[0])

    play(scenario, latency_seconds=60)


@pytest.mark.parametrize("what", ["stop", "cancel"])
def test_a_stop_or_cancel_that_its_caller_gives_up_did_not_happen(what: str) -> None:
    @tool
    async def lingering() -> str:
        """Take its time to end."""
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(50)
            raise
        return "ended"

    def say(request: ModelRequest) -> Answer | str:
        return call("lingering") if round_of(request) == 0 else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        task = await manager.send_task("alice", "go")
        await asyncio.sleep(10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await (manager.stop_agent("alice") if what == "stop" else manager.cancel_task(task))
        assert (await manager.wait_task(task)).state is TaskState.COMPLETED
        assert manager.get_agent_status("alice").state is AgentState.IDLE

    play(scenario, say, tools=[lingering])


def test_a_failed_task_is_retried_at_the_step_where_it_failed() -> None:
    asked: list[str] = []

    def say(request: ModelRequest) -> Answer | str:
        asked.append(request.step_id.rpartition(".")[2])
        if round_of(request) == 0:
            return call("list_agents")
        if len(asked) == 2:
            raise ValueError("the client is broken")
        return "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        failed = await manager.wait_task(await manager.send_task("alice", "go"))
        assert failed.state is TaskState.FAILED
        assert failed.error is not None
        assert "the client is broken" in failed.error.message
        await manager.retry_task(failed)
        assert (await manager.wait_task(failed)).state is TaskState.COMPLETED
        assert asked == ["1", "3", "3"]
        with pytest.raises(StateError, match="Only a failed, cancelled or dead task"):
            await manager.retry_task(failed)

    play(scenario, say)


def test_errors_of_tools_are_for_the_model_and_end_nothing() -> None:
    @tool
    async def broken(kind: str) -> object:
        """Fail in some way."""
        if kind == "raise":
            raise ValueError("no such file")
        if kind == "exit":
            raise SystemExit(3)
        if kind == "cancel":
            raise asyncio.CancelledError
        return object()

    def say(request: ModelRequest) -> Answer | str:
        if round_of(request) == 0:
            kinds = ("raise", "exit", "cancel", "return")
            return calls(
                *(("broken", {"kind": kind}) for kind in kinds),
                ("broken", {"kind": 5}),
                ("broken", {}),
                ("nonsense", {}),
            )
        assert all(turn.is_error for turn in request.turns if isinstance(turn, ToolTurn))
        return "\n".join(results_of(request))

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        told = (await manager.run_task("alice", "go")).splitlines()
        assert told[0] == "The tool 'broken' failed: ValueError: no such file"
        assert told[1] == "The tool 'broken' failed: SystemExit: 3"
        assert told[2] == "The tool 'broken' cancelled itself."
        assert "returned something that is not JSON" in told[3]
        assert "Expected `str`, got `int` - at `$.kind`" in told[4]
        assert "missing required field `kind`" in told[5]
        assert told[6].startswith("You have no tool 'nonsense'. Your tools: agent_status, broken, check_mail")

    play(scenario, say, tools=[broken])


def test_text_that_is_not_text_is_mended_on_its_way_from_models_and_tools() -> None:
    @tool
    async def listing() -> str:
        """Name a file whose name is not text."""
        return "file\udcff"

    def say(request: ModelRequest) -> Answer | str:
        return call("listing") if round_of(request) == 0 else f"\ud800 {results_of(request)[0]}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go") == "? file?"

    play(scenario, say, tools=[listing])


def test_an_agent_has_only_the_tools_that_it_was_granted() -> None:
    def say(request: ModelRequest) -> Answer | str:
        assert [spec.name for spec in request.tools] == ["check_mail"]
        return call("send_mail", to_agent="user", subject="s", body="b") if round_of(request) == 0 else "end"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"tools": ["check_mail"]})
        task = await manager.send_task("alice", "go")
        await manager.wait_task(task)
        result = manager.list_steps(task.id)[1].result
        assert result is not None
        assert result.content == "You have no tool 'send_mail'. Your tools: check_mail."
        assert manager.mailbox() == []

    play(scenario, say)


def test_idle_agents_have_no_asyncio_task() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        before = len(asyncio.all_tasks())
        for n in range(50):
            await manager.create_agent(f"a{n}")
        assert len(asyncio.all_tasks()) == before

    play(scenario)
