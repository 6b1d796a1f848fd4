"""The snippets of the user guide run as they are printed, and what a script needs around them."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AgentState, Client, TaskState, scripting
from ai_whisperer.errors import ClosedError, DuplicateIdError, StateError, UnknownAgentError
from ai_whisperer.scripting import SyncClient
from ai_whisperer.server.address import ADDRESS_FILE, find_address
from tests.acceptance.client_stage import StagedServer

ROOT = Path(__file__).parents[2]

PARALLEL_ANALYSIS = """
# Create agents
analyzer = create_agent("analyzer")
writer = create_agent("writer")
reviewer = create_agent("reviewer")

# Start parallel workflow
send_task(analyzer, "Analyze customer sentiment from feedback.csv")
send_task(writer, "Prepare report template for sentiment analysis")

# Analyzer finishes and sends results to writer
# Writer incorporates results and sends to reviewer
# Reviewer approves and notifies completion
"""

MONITORING = """
# Create monitor agent
monitor = create_agent("monitor")

# Set to wake on events
sleep_agent(monitor, wake_events=["alert", "hourly_check"])

# Monitor sleeps until:
# - An "alert" event is broadcast
# - The "hourly_check" timer fires
# - Manual wake is triggered
"""

DECOMPOSITION = """
# Planner decomposes work
planner = create_agent("planner")
send_task(planner, "Create plan for new feature implementation")

# Planner creates tasks and delegates:
# - Task A → Coder1
# - Task B → Coder2
# - Task C → Coder3

# Coders work in parallel
# Each sends results to integrator when done
# Integrator combines and tests
"""

MIGRATION = """
# Start independent tasks in parallel
alice_task = send_task("alice", "Do task 1")
patricia_prep = send_task("patricia", "Prepare for task 2")

# When alice completes, she sends result to patricia
# Patricia combines prep work with alice's result
# Eamonn monitors and processes when ready
"""

IMPORTS = "from ai_whisperer.scripting import create_agent, send_task, sleep_agent\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a script that nothing is set for, but the model that needs no key."""
    for name in [name for name in os.environ if name.startswith("WHISPERER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WHISPERER_MODEL", "scripted")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    scripting.disconnect()


def run(*snippets: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(IMPORTS + "\n".join(snippets), names)  # noqa: S102 - the snippets above
    return names


def test_the_workflows_of_the_guide_run_as_printed() -> None:
    names = run(PARALLEL_ANALYSIS, MONITORING, DECOMPOSITION, MIGRATION)
    states = scripting.wait_until_done(timeout_seconds=60)
    assert {name: status.state for name, status in states.items()} == {
        **dict.fromkeys(["analyzer", "writer", "reviewer", "planner", "alice", "patricia"], AgentState.IDLE),
        "monitor": AgentState.SLEEPING,
    }
    assert states["monitor"].wake_events == ("alert", "hourly_check")
    assert {(task.agent_id, task.prompt) for task in scripting.list_tasks()} >= {
        ("analyzer", "Analyze customer sentiment from feedback.csv"),
        ("writer", "Prepare report template for sentiment analysis"),
        ("planner", "Create plan for new feature implementation"),
        ("patricia", "Prepare for task 2"),
    }
    assert scripting.wait_task(names["alice_task"]).state is TaskState.COMPLETED
    assert scripting.broadcast_event("alert").woken == 1


def test_a_script_may_run_again_and_finds_its_agents_there(project: Path) -> None:
    run(PARALLEL_ANALYSIS, MONITORING)
    scripting.wait_until_done(timeout_seconds=60)
    scripting.disconnect()
    assert find_address(project / ".whisperer") is None
    names = run(PARALLEL_ANALYSIS, MONITORING)
    assert names["analyzer"].tasks >= 1
    assert len(scripting.agent_states()) == 4


def test_the_other_functions_take_handles_and_names() -> None:
    ada = scripting.create_agent("ada", {"description": "first"})
    assert scripting.run_task(ada, "hello").startswith("[scripted model]")
    for change, state in (
        (scripting.pause_agent, AgentState.PAUSED),
        (scripting.resume_agent, AgentState.IDLE),
        (scripting.stop_agent, AgentState.STOPPED),
        (scripting.start_agent, AgentState.IDLE),
    ):
        assert change(ada).state is state
    scripting.sleep_agent("ada", duration_seconds=3600)
    scripting.wake_agent("ada", reason="look")
    sent = scripting.send_mail(ada, "subject", "body")
    assert [mail.id for mail in scripting.mailbox(ada)] == [sent.id]
    assert [mail.id for mail in scripting.sent_mail()] == [sent.id]
    events = scripting.events(after=0)
    assert [next(events).seq for _ in range(3)] == [1, 2, 3]
    events.close()  # type: ignore[attr-defined]


def test_an_agent_that_has_no_template_is_not_made_up() -> None:
    with pytest.raises(UnknownAgentError, match="no agent 'nobody'"):
        scripting.send_task("nobody", "go")
    scripting.create_agent("ada", {"aliases": ["countess"]})
    assert scripting.create_agent("countess").agent_id == "ada"
    with pytest.raises(DuplicateIdError, match="already means 'ada'"):
        scripting.create_agent("grace", {"aliases": ["countess"]})


def test_an_agent_that_is_there_is_returned_unless_it_is_to_be_another() -> None:
    stated = {"description": "first", "limits": {"max_steps_per_task": 7}}
    scripting.create_agent("ada", stated)
    assert scripting.create_agent("ada", stated).agent_id == "ada"
    assert scripting.create_agent("ada", {"limits": {"max_steps_per_task": 7}}).agent_id == "ada"
    with pytest.raises(DuplicateIdError, match=r"another definition \(description, limits\).*stop_agent\('ada'\)"):
        scripting.create_agent("ada", {"description": "second", "limits": {"max_steps_per_task": 8}})


def test_a_script_uses_the_server_that_runs_in_its_folder(project: Path) -> None:
    server = StagedServer(project / ".whisperer")
    try:
        assert scripting.run_task("alice", "in two parts") == "one\ntwo"
        with SyncClient(server.address.url, session_id="mine") as other:  # the token is found, the session is made
            assert other.agent_states() == {}
            assert other.create_agent("alice").agent_id == "alice"
            with pytest.raises(StateError, match="wait for itself"):
                other.run(nested(other))
        with pytest.raises(ClosedError, match="Call connect"):
            other.list_agents()
        with scripting.connect(server.address.page, session_id="mine"):
            assert list(scripting.agent_states()) == ["alice"]
    finally:
        scripting.disconnect()
        server.close()


def test_events_that_nobody_reads_any_more_let_go_of_their_connection(project: Path) -> None:
    server = StagedServer(project / ".whisperer")
    try:
        scripting.create_agent("ada", {"description": "first"})
        before = connections(server)
        unread, read = scripting.events(after=0), scripting.events(after=0)
        next(read)
        assert connections(server) == before + 2
        del unread, read
        while connections(server) > before:
            time.sleep(0.01)
    finally:
        scripting.disconnect()
        server.close()


def connections(server: StagedServer) -> float:
    return server.counted("whisperer_connections")


async def nested(client: SyncClient) -> None:
    client.list_agents()


def test_the_settings_say_which_server(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = StagedServer(project / "elsewhere")
    try:
        monkeypatch.setenv("WHISPERER_URL", server.address.url)
        monkeypatch.setenv("WHISPERER_TOKEN", server.address.token)
        assert scripting.run_task("alice", "in two parts") == "one\ntwo"
        assert not (project / ".whisperer").exists()
    finally:
        scripting.disconnect()
        server.close()


def test_the_synchronous_client_has_all_methods_of_the_other() -> None:
    methods = {name for name, method in inspect.getmembers(Client, callable) if not name.startswith("_")}
    assert methods - set(dir(SyncClient)) == {"open", "session"}


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
from ai_whisperer.scripting import *
send_task(create_agent("alice"), "Do task 1")
pause_agent("alice")
task = send_task("alice", "never")
print("waiting" if {waits} else "leaving", flush=True)
if {waits}:
    wait_task(task)
"""


@pytest.mark.parametrize("waits", [True, False], ids=["interrupted", "at its end"])
def test_a_script_leaves_in_peace(project: Path, waits: bool) -> None:  # noqa: FBT001
    """Its server ends with it, on Ctrl-C too, and what it was given is kept."""
    script = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(waits=waits)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert script.stdout is not None
    assert script.stdout.readline() == ("waiting\n" if waits else "leaving\n")
    if waits:
        script.send_signal(signal.SIGINT)
    _, complaint = script.communicate(timeout=60)
    assert script.returncode == (-signal.SIGINT if waits else 0)
    if waits:
        assert (complaint.count("Traceback"), complaint.splitlines()[-1]) == (1, "KeyboardInterrupt")
    else:
        assert complaint == ""
    left = {file.name for file in (project / ".whisperer").iterdir()}
    assert left.isdisjoint({ADDRESS_FILE, "whisperer.db-wal"})
    assert [task.prompt for task in scripting.list_tasks("alice", limit=1)] == ["never"]


def test_scripts_that_need_the_same_new_session_at_once_all_get_it(project: Path) -> None:
    server = StagedServer(project / ".whisperer")

    def agents_of(number: int) -> list[str]:
        with SyncClient(session_id=f"new-{number // 4}") as client:
            return list(client.agent_states())

    try:
        with ThreadPoolExecutor(max_workers=4) as together:
            assert list(together.map(agents_of, range(20))) == [[]] * 20
    finally:
        server.close()


FORKING = """
import os, signal, sys
from ai_whisperer import scripting
held = scripting.connect()
scripting.create_agent("ada", {"description": "first"})
child = os.fork()
if child == 0:
    signal.alarm(60)
    try:
        held.list_agents()
    except Exception as error:
        print(type(error).__name__, flush=True)
    held.close()
    print([each.agent_id for each in scripting.list_agents()], flush=True)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print(scripting.run_task("ada", "go")[:10], flush=True)
"""


def test_a_forked_process_connects_for_itself_and_leaves_the_other_alone(project: Path) -> None:
    outcome = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (outcome.stdout.splitlines(), outcome.stderr) == (["StateError", "['ada']", "[scripted "], "")


TOGETHER = """
from ai_whisperer.scripting import create_agent
print(create_agent("ada", {"description": "first"}).agent_id, flush=True)
input()
"""


def test_scripts_that_begin_together_share_a_server_and_a_session(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them finds a server or the session when it begins, and none of them fails."""
    monkeypatch.setenv("WHISPERER_SESSION", "new")
    scripts = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    first_lines = [script.stdout.readline() for script in scripts if script.stdout is not None]
    complaints = [script.communicate("\n", timeout=60)[1] for script in scripts]
    assert (first_lines, complaints) == (["ada\n"] * 3, [""] * 3)
