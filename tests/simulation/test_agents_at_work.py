"""Tasks and loops, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from ai_whisperer import AgentState, AsyncAgentSessionManager, TaskState, tool
from ai_whisperer.domain.conversation import Answer, ToolTurn
from ai_whisperer.domain.tasks import StepState
from ai_whisperer.errors import TaskEndedError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.store.base import Unit
from ai_whisperer.store.operations import INSERT_AGENT, UPDATE_AGENT
from ai_whisperer.store.sqlite.store import SqliteStore
from tests.simulation.stage import call, calls, names_of, play, prompt_of, results_of, round_of

OF_AGENTS = (INSERT_AGENT, UPDATE_AGENT)


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


def test_an_agent_that_is_created_and_started_is_one_row() -> None:
    async def scenario() -> None:
        store = SqliteStore.in_memory()
        submit, units = store.submit, list[Unit]()

        def noting(unit: Unit) -> asyncio.Future[None]:
            units.append(unit)
            return submit(unit)

        store.submit = noting  # type: ignore[method-assign]
        async with AsyncAgentSessionManager(store=store, model="scripted") as manager:
            await manager.create_agent("alice")
            written = [change for unit in units for change in unit.changes]
            assert [operation for operation, _ in written if operation in OF_AGENTS] == [INSERT_AGENT]
            await manager.stop_agent("alice")
        async with AsyncAgentSessionManager(store=store, model="scripted") as manager:
            await manager.create_agent("bert")
        async with AsyncAgentSessionManager(store=store, model="scripted") as manager:
            started = {agent_id: agent.record.started for agent_id, agent in manager.active_sessions.items()}
            assert started == {"alice": False, "bert": True}
            assert manager.active_sessions["bert"].record.started_at is not None
        await store.close()

    asyncio.run(scenario())


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
        assert [step.state for step in await manager.list_steps(ended.id)] == [StepState.DONE] * 3

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
        assert {thread.id: thread.tasks for thread in await manager.list_threads("alice")}["talk"] == 3

    play(scenario, say)


def test_an_answer_that_asks_for_more_is_continued_in_the_same_thread() -> None:
    def say(request: ModelRequest) -> str:
        rounds = sum(prompt in ("long", "Continue where you stopped.") for prompt in prompts(request))
        return "the end" if rounds == 3 else f"part {rounds}\n[CONTINUE]"

    def prompts(request: ModelRequest) -> list[str]:
        return [turn.text for turn in request.turns if hasattr(turn, "text")]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        first = await manager.send_task("alice", "long")
        last = await manager.wait_task(first)
        assert last.result is not None
        assert last.result.final == "part 1\npart 2\nthe end"
        assert last.continuation == 2
        part = await manager.get_task(first.id)
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

    play(scenario, lambda request: f"more after {len(request.turns)}\n[CONTINUE]")


def test_a_task_that_never_stops_calling_tools_fails_at_the_step_limit() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"limits": {"max_steps_per_task": 7}})
        with pytest.raises(TaskEndedError, match="wants step 8 and may have 7"):
            await manager.run_task("alice", "go")

    play(scenario, lambda _: call("list_agents"))


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
        assert told[6].startswith(
            "You have no tool 'nonsense'. Your tools: acquire_lock, agent_status, broadcast_event, broken"
        )

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
        assert await manager.run_task("alice", "go") == "\ufffd file\ufffd"

    play(scenario, say, tools=[listing])


def test_an_agent_has_only_the_tools_that_it_was_granted() -> None:
    def say(request: ModelRequest) -> Answer | str:
        assert [spec.name for spec in request.tools] == ["check_mail"]
        return call("send_mail", to_agent="user", subject="s", body="b") if round_of(request) == 0 else "end"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice", {"tools": ["check_mail"]})
        task = await manager.send_task("alice", "go")
        await manager.wait_task(task)
        result = (await manager.list_steps(task.id))[1].result
        assert result is not None
        assert result.content == "You have no tool 'send_mail'. Your tools: check_mail."
        assert await manager.mailbox() == []

    play(scenario, say)


def test_idle_agents_have_no_asyncio_task() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        before = len(asyncio.all_tasks())
        for n in range(50):
            await manager.create_agent(f"a{n}")
        assert len(asyncio.all_tasks()) == before

    play(scenario)


def test_others_can_see_since_when_an_agent_works_and_when_it_last_got_further() -> None:
    @tool
    async def hang() -> str:
        """Never come back."""
        await asyncio.sleep(1e9)
        return ""

    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "worker":
            return call("report_progress", percent=50) if round_of(request) == 0 else call("hang")
        return call("agent_status", agent="worker") if round_of(request) == 0 else results_of(request)[0]

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("worker")
        await manager.create_agent("watcher")
        assert '"running_seconds":null,"seconds_since_last_step":null' in await manager.run_task("watcher", "look")
        await manager.send_task("worker", "go")  # two requests of a second each, then it hangs
        await asyncio.sleep(60)
        assert '"running_seconds":61.0,"seconds_since_last_step":59.0' in await manager.run_task("watcher", "look")
        await manager.stop_agent("worker")

    play(scenario, say, tools=[hang])


def test_a_task_that_is_run_again_under_its_id_is_the_same_task() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        assert await manager.run_task("alice", "go", task_id="t") == await manager.run_task("alice", "go", task_id="t")
        assert [task.id for task in await manager.list_tasks("alice")] == ["t"]

    play(scenario)
