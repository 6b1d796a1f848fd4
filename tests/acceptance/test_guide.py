"""Every block of code of the user guide runs as it is printed: in process, over the socket, in a script."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ai_whisperer
from ai_whisperer import AgentState, AsyncAgentSessionManager, Client, MailRecord, TaskRecord, scripting
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.settings import Settings
from ai_whisperer.simulation.loop import VirtualClock, simulate
from tests.acceptance.raw_socket import frame
from tests.acceptance.server_in_thread import ServerInThread
from tests.simulation.stage import calls, play, prompt_of, results_of, round_of

GUIDE = (Path(__file__).parent / "guide" / "guide.md").read_text(encoding="utf-8")
BLOCKS: dict[str, list[tuple[str, str]]] = {}
for _heading, _language, _text in re.findall(r"^## (.+?)\n+```(\w+)\n(.*?)```", GUIDE, re.MULTILINE | re.DOTALL):
    BLOCKS.setdefault(_language, []).append((_heading, _text))

NOT_FOR_RUNNING = {"Before (Sequential):": "how programs looked before there were agents: `alice.do_task1()`"}
TOOL_CALL = "Via Tools (within AIWhisperer):"
MANAGER = "The session manager"
SCRIPTS = [text for heading, text in BLOCKS["python"] if heading not in (*NOT_FOR_RUNNING, TOOL_CALL, MANAGER)]
REQUESTS = [text for _, text in BLOCKS["json"] if "method" in json.loads(text)]
DEMO = "scripted:demo"


def block(heading: str) -> str:
    return next(text for each in BLOCKS.values() for name, text in each if name == heading)


def test_every_block_is_run() -> None:
    """Whoever adds one to the guide sees here that a test for it is missing."""
    assert {language: len(blocks) for language, blocks in BLOCKS.items()} == {"python": 7, "javascript": 1, "json": 9}
    assert (len(SCRIPTS), len(REQUESTS)) == (4, 8)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a script that nothing is set for, but the model that needs no key."""
    for name in [name for name in os.environ if name.startswith("WHISPERER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WHISPERER_MODEL", DEMO)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    scripting.disconnect()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerInThread]:
    settings = Settings(data=tmp_path_factory.mktemp("data"), port=0, model=DEMO, shutdown_grace_seconds=0)
    with ServerInThread(settings) as server:
        yield server


def awaited(text: str) -> Callable[[Any], Any]:
    """The block as a coroutine function of the API that its functions are those of: `await api.send_task(…)`."""

    class Await(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            assert isinstance(node.func, ast.Name)
            api = ast.Attribute(ast.Name("api", ast.Load()), node.func.id, ast.Load())
            return ast.Await(ast.Call(api, node.args, node.keywords))

    function = ast.parse("async def run(api): pass").body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = Await().visit(ast.parse(text)).body
    module = ast.fix_missing_locations(ast.Module([function], []))
    names: dict[str, Any] = {}
    exec(compile(module, "guide", "exec"), names)  # noqa: S102 - the blocks of the guide
    run: Callable[[Any], Any] = names["run"]
    return run


def check_outcome(tasks: list[TaskRecord], mails: list[MailRecord], states: dict[str, AgentState]) -> None:
    """All that the comments of the guide tell has happened, and nothing is told that has not."""
    assert states == {
        **dict.fromkeys(["analyzer", "writer", "reviewer"], AgentState.IDLE),
        **dict.fromkeys(["planner", "coder1", "coder2", "coder3", "integrator"], AgentState.IDLE),
        **dict.fromkeys(["alice", "patricia", "eamonn"], AgentState.IDLE),
        "monitor": AgentState.SLEEPING,
    }
    told = {(task.agent_id, task.result.final) for task in tasks if task.result is not None}
    assert len(told) > 15
    finals = {final for _, final in told}
    assert not [final for final in finals if "No rule matches" in final or "I play fixed answers" in final]
    assert (
        "planner",
        "Task A is with coder1, task B with coder2, task C with coder3; the integrator joins them.",
    ) in told
    assert any(agent == "analyzer" and "I have not analysed the feedback" in final for agent, final in told)
    assert not [final for final in finals if re.search(r"analysed the feedback and mailed|tested and delivered", final)]
    assert {(mail.sender, mail.subject) for mail in mails} == {
        ("reviewer", "Not approved: customer sentiment"),
        ("integrator", "The parts of the feature are here, not tested"),
        ("eamonn", "Tasks 1 to 3 are done"),
    }


def test_the_workflows_run_in_a_script(project: Path) -> None:
    imports = "from ai_whisperer import create_agent, send_task, sleep_agent\n"
    exec(imports + "\n".join(SCRIPTS), {})  # noqa: S102 - the blocks of the guide
    states = scripting.wait_until_done(timeout_seconds=60)
    check_outcome(scripting.list_tasks(), scripting.mailbox(), {name: each.state for name, each in states.items()})
    assert [each.definition.event for each in scripting.list_schedules("monitor")] == ["hourly_check"]
    assert scripting.broadcast_event("alert").woken == 1
    assert set(scripting.agent_threads()) == set(states)


def test_the_workflows_run_in_process() -> None:
    async def main() -> None:
        async with AsyncAgentSessionManager(model=DEMO, templates=(), clock=VirtualClock()) as manager:
            for text in SCRIPTS:
                await awaited(text)(manager)
            await manager.at_rest()
            states = {status.agent_id: status.state for status in manager.list_agents()}
            check_outcome(await manager.list_tasks(), await manager.mailbox(), states)
            await asyncio.sleep(3700)
            assert [event.name for event in await manager.list_events()] == ["hourly_check"], (
                "the timer of the guide fires"
            )
            assert manager.get_agent_status("monitor").state is AgentState.SLEEPING, "and the monitor sleeps again"

    simulate(main(), seed=0)


def test_the_workflows_run_over_the_socket(server: ServerInThread) -> None:
    async def main() -> None:
        url = f"http://127.0.0.1:{server.port}"
        async with asyncio.timeout(90), Client(url, server.token, session_id="nobody-made-it") as client:
            for text in SCRIPTS:
                await awaited(text)(client)
            await client.at_rest()
            states = {status.agent_id: status.state for status in await client.list_agents()}
            check_outcome(await client.list_tasks(), await client.mailbox(), states)

    asyncio.run(main())


def test_the_requests_are_answered_in_the_order_of_the_guide(server: ServerInThread) -> None:
    """With nothing before them, and nothing between them but a start of the agent that the guide stops."""
    with server.connect() as client:
        for text in REQUESTS:
            client.send(frame(text.encode()))
            answer = client.answer_to(None)
            assert "error" not in answer, (text, answer)
            if "stopAgent" in text:
                client.call("async.startAgent", sessionId="session-123", agentId="analyzer")
        completed = client.notes_until("async.task.completed")[-1]["params"]
        assert completed["sessionId"] == "session-123"
        assert set(completed["result"]) == {"analysis", "commentary", "final"}


def test_the_answer_about_states_has_the_shape_of_the_guide(server: ServerInThread) -> None:
    wanted = next(json.loads(text) for _, text in BLOCKS["json"] if "method" not in json.loads(text))
    with server.connect() as client:
        for name in wanted["agents"]:
            client.call("async.createAgent", sessionId="shape", agentId=name)
        answer = client.call("async.getAgentStates", sessionId="shape")
        assert set(answer["agents"]) == set(wanted["agents"])
        for name, state in wanted["agents"].items():
            assert state.keys() <= answer["agents"][name].keys()


def test_the_requests_in_javascript_create_agents(server: ServerInThread) -> None:
    sent = re.findall(r'sendRequest\("([\w.]+)", (\{.*?\})\)', BLOCKS["javascript"][0][1], re.DOTALL)
    assert len(sent) == 2
    with server.connect() as client:
        for method, literal in sent:
            quoted = re.sub(
                r"(\w+):", r'"\1":', literal.replace("sessionId: sessionId", 'sessionId: "from-javascript"')
            )
            assert client.call(method, **json.loads(quoted))["started"] is True
        agents = client.call("async.getAgentStates", sessionId="from-javascript")["agents"]
        assert list(agents) == ["analyzer", "writer"]


def test_the_manager_has_what_the_guide_prints() -> None:
    (printed,) = ast.parse(block(MANAGER)).body
    assert isinstance(printed, ast.ClassDef)
    manager = getattr(ai_whisperer, printed.name)()
    for method in printed.body:
        assert isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        if method.name == "__init__":
            held = [node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute)]
            assert held == ["active_sessions", "agent_threads"]
            assert all(hasattr(type(manager), name) for name in held)
            continue
        known = getattr(manager, method.name)
        assert inspect.iscoroutinefunction(known) is isinstance(method, ast.AsyncFunctionDef)
        inspect.signature(known).bind(**{each.arg: "x" for each in method.args.args if each.arg != "self"})


def test_the_threads_of_agents_are_those_that_are_started_with_what_they_run() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("idle")
        await manager.create_agent("new", auto_start=False)
        await manager.create_agent("busy")
        task = await manager.send_task(agent_id="busy", prompt="go")
        await asyncio.sleep(0.5)
        assert manager.agent_threads == {"idle": (), "busy": (task.id,)}

    play(scenario)


def test_the_parameter_names_of_the_guide_work_as_keywords() -> None:
    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.start_agent(agent_id="a", config={})
        await manager.send_task(agent_id="a", prompt="go")
        await manager.pause_agent(agent_id="a")
        await manager.resume_agent(agent_id="a")
        await manager.at_rest()
        await manager.sleep_agent(agent_id="a", duration_seconds=60, wake_events=["alert"])
        await manager.wake_agent(agent_id="a", reason="User requested immediate check")
        await manager.broadcast_event(event="data_ready", data={"source": "a"})
        assert manager.get_agent_status(agent_id="a").agent_id == "a"
        await manager.stop_agent(agent_id="a")

    play(scenario)


def test_the_question_that_is_waited_for_is_a_tool_call_with_these_arguments() -> None:
    (statement,) = ast.parse(block(TOOL_CALL)).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    name = ast.unparse(statement.value.func)
    arguments = {str(each.arg): ast.literal_eval(each.value) for each in statement.value.keywords}

    def say(request: ModelRequest) -> Answer | str:
        if request.agent_id == "alice" and round_of(request) == 0:
            return calls((name, arguments))
        return results_of(request)[-1] if request.agent_id == "alice" else f"I was asked: {prompt_of(request)}"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("alice")
        answer = await manager.run_task("alice", "go")
        assert "Please analyze the current project structure" in answer
        assert [task.agent_id for task in await manager.list_tasks("debbie")] == ["debbie"], "nobody else created her"

    play(scenario, say)
