"""Agents that run commands and Python: what they see, what is journaled and told, and what ends with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.conversation import ToolResult, ToolRun
from ai_whisperer.domain.definition import Access
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.notification import Notification
from ai_whisperer.errors import InvalidInputError, SandboxError, ToolError
from ai_whisperer.models.scripted import FunctionModel
from ai_whisperer.sandbox.base import Ending, Job, Outcome, ignored
from ai_whisperer.sandbox.choosing import ChosenSandbox
from ai_whisperer.sandbox.probing import Probe
from ai_whisperer.tools.commands import run_command, run_python
from ai_whisperer.tools.function import CancelSignal, ToolContext
from ai_whisperer.tools.workplace import Folder, Workplace
from tests.acceptance.sandbox_stage import STRONG_LEVELS, a_name, need_a_strong_one, processes_of, until
from tests.simulation.stage import Say, call, round_of

CANARY = "canary-51b7e0"


class FakeSandbox:
    """Runs nothing: keeps the job, and ends it as it is told to."""

    name = "fake"

    def __init__(self, **outcome: Any) -> None:
        self.jobs: list[Job] = []
        self._outcome = Outcome(run=ToolRun(sandbox="fake"), **{"ending": Ending.EXITED, **outcome})

    async def run(self, job: Job, on_output: Callable[[bytes], None] = ignored) -> Outcome:
        self.jobs.append(job)
        on_output(self._outcome.output)
        return self._outcome


def workplace(folder: Path, sandbox: Any, **fields: Any) -> Workplace:
    own = Folder(path=folder / "data/work/s/agents/ada", access=Access.WRITE)
    granted = {"shared": Folder(path=folder / "data/work/s/shared", access=Access.WRITE), **fields.pop("granted", {})}
    given = {"network": (), "limits": EffectiveLimits(), **fields}
    return Workplace(folders={"": own, **granted}, sandbox=sandbox, **given)


def context(place: Workplace | None, seen: list[str] | None = None) -> ToolContext:
    return ToolContext(
        session_id="s",
        agent_id="ada",
        task_id="t",
        step_id="t.1",
        cancelled=CancelSignal(),
        workplace=place,
        progress=([] if seen is None else seen).append,
    )


def ran(place: Workplace | None, command: str = "true", **more: Any) -> ToolResult:
    return asyncio.run(run_command(command, context(place), **more))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ChosenSandbox]:
    need_a_strong_one()
    chosen = ChosenSandbox()
    yield chosen
    asyncio.run(chosen.close())


def test_a_job_is_held_to_the_limits_of_its_agent(tmp_path: Path) -> None:
    fake = FakeSandbox()
    limits = EffectiveLimits(
        max_tool_seconds=7.0, max_tool_cpu_seconds=3.0, max_tool_memory_bytes=1 << 26, max_tool_processes=5
    )
    ran(workplace(tmp_path, fake, limits=limits), timeout_seconds=100)
    (job,) = fake.jobs
    assert (job.wall_seconds, job.cpu_seconds, job.memory_bytes, job.processes) == (7.0, 3.0, 1 << 26, 5)


def test_granted_folders_are_readable_or_writable_as_they_are_granted(tmp_path: Path) -> None:
    fake = FakeSandbox()
    (tmp_path / "books").mkdir()
    books = Folder(path=tmp_path / "books", access=Access.READ)
    ran(workplace(tmp_path, fake, granted={"books": books}))
    (job,) = fake.jobs
    own = str(tmp_path / "data/work/s/agents/ada")
    assert job.cwd == own
    assert job.writable == (own, str(tmp_path / "data/work/s/shared"))
    assert str(tmp_path / "books") in job.readable


def test_a_granted_folder_that_holds_the_data_folder_lets_nothing_run(tmp_path: Path) -> None:
    fake = FakeSandbox()
    around = Folder(path=tmp_path, access=Access.READ)
    with pytest.raises(SandboxError, match="data folder lies in"):
        ran(workplace(tmp_path, fake, granted={"all": around}))
    assert fake.jobs == []


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ({"ending": Ending.TIMED_OUT}, "Timed out after 60 s"),
        ({"ending": Ending.OUT_OF_MEMORY}, "more than 512 MiB of memory"),
        ({"ending": Ending.OUT_OF_CPU}, "more than 300 s of CPU time"),
        ({"ending": Ending.TOO_MANY_PROCESSES}, "more than 64 processes"),
        ({"ending": Ending.TOO_MUCH_OUTPUT}, "MiB of output"),
        ({"ending": Ending.SIGNALLED, "status": 11}, "signal SIGSEGV"),
        ({"status": 2}, "Exit code 2.\n"),
        (
            {"status": 1, "output": b"MemoryError\n"},
            "Exit code 1. It got no more than 512 MiB of memory (limit max_tool",
        ),
        ({"ending": Ending.SIGNALLED, "status": 6, "output": b"std::bad_alloc"}, "It got no more than 512 MiB"),
        ({"output": b"MemoryError"}, "Exit code 0.\n"),
        ({"output": b"\xff\x00ok"}, "ok"),
    ],
)
def test_the_model_is_told_how_a_program_ended(tmp_path: Path, outcome: dict[str, Any], told: str) -> None:
    assert told in ran(workplace(tmp_path, FakeSandbox(**outcome))).content


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused(tmp_path: Path, bad: float) -> None:
    with pytest.raises(ToolError, match="timeout_seconds"):
        ran(workplace(tmp_path, FakeSandbox()), timeout_seconds=bad)


@pytest.mark.parametrize("bad", ["a\0b", "x" * 200_000])
def test_a_command_that_the_system_cannot_take_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ToolError, match="A command has at most"):
        ran(workplace(tmp_path, FakeSandbox()), bad)


def test_without_a_sandbox_nothing_runs() -> None:
    with pytest.raises(SandboxError, match="whisperer doctor"):
        ran(None)


def test_where_no_level_holds_the_call_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing_holds(sandbox: Any) -> Probe:
        return Probe(level=sandbox.name, runs=False, reason="It is not there.")

    monkeypatch.setattr("ai_whisperer.sandbox.probing.probe", nothing_holds)
    with pytest.raises(SandboxError, match=r"namespaces: It is not there\..*install bubblewrap.*'rlimits'"):
        ran(workplace(tmp_path, ChosenSandbox()))


@pytest.mark.parametrize("level", ["landlock", "rlimits"])
def test_what_lets_something_out_is_used_only_if_it_is_named(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    async def only_weak_ones(sandbox: Any) -> Probe:
        return Probe(level=sandbox.name, ways_out=("read the token",))

    monkeypatch.setattr("ai_whisperer.sandbox.probing.probe", only_weak_ones)
    with pytest.raises(SandboxError):
        asyncio.run(ChosenSandbox().choose())
    with pytest.raises(SandboxError):
        asyncio.run(ChosenSandbox("namespaces").choose())
    assert asyncio.run(ChosenSandbox(level).choose()).name == level


def test_a_job_with_granted_hosts_gets_a_level_that_can_open_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    async def all_hold(sandbox: Any) -> Probe:
        return Probe(level=sandbox.name)

    async def chosen() -> tuple[str, str]:
        sandbox = ChosenSandbox()
        return (await sandbox.choose()).name, (await sandbox.choose(talks=True)).name

    monkeypatch.setattr("ai_whisperer.sandbox.probing.probe", all_hold)
    assert asyncio.run(chosen()) == ("namespaces", "sandlock")


def test_what_holds_is_untried_until_it_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing_holds(sandbox: Any) -> Probe:
        return Probe(level=sandbox.name, runs=False, reason="It is not there.")

    sandbox = ChosenSandbox()
    assert sandbox.name == "untried"
    monkeypatch.setattr("ai_whisperer.sandbox.probing.probe", nothing_holds)
    with pytest.raises(SandboxError):
        asyncio.run(sandbox.choose())
    assert sandbox.name == "none"


def test_a_sandbox_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="one of auto, namespaces, bubblewrap, sandlock, landlock, rlimits"):
        AsyncAgentSessionManager(sandbox="chroot")


@pytest.mark.parametrize(
    ("level", "network", "told"),
    [
        ("bubblewrap", ("example.org",), "(It had no network"),
        ("bubblewrap", ("*",), "(It had no network"),
        ("namespaces", ("example.org",), "(It had no network: namespaces, the sandbox here"),
        ("bubblewrap", (), None),
        ("sandlock", ("example.org", "*.example.com"), "(It could not talk to *.example.com: programs need each host"),
        ("sandlock", ("example.org", "*"), None),
    ],
)
def test_the_model_is_told_which_of_its_grants_do_not_hold_for_programs(
    tmp_path: Path, level: str, network: tuple[str, ...], told: str | None
) -> None:
    fake = FakeSandbox()
    fake._outcome = Outcome(ending=Ending.EXITED, run=ToolRun(sandbox=level))
    content = ran(workplace(tmp_path, fake, network=network)).content
    assert (told in content) if told else ("(It had" not in content and "(It could" not in content)


def test_a_command_finds_its_folder_temporary_files_and_no_secrets(
    sandbox: ChosenSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    place = workplace(tmp_path, sandbox)
    result = ran(place, "env; pwd; echo kept > file; echo x > $TMPDIR/x && cat $TMPDIR/x; echo y > shared/y")
    assert not result.is_error, result.content
    assert CANARY not in result.content
    assert (place.own.path / "file").read_text() == "kept\n"
    assert (place.folders["shared"].path / "y").read_text() == "y\n"
    assert list((tmp_path / "data/work/s/tmp").iterdir()) == []


def test_python_runs_with_its_library_and_the_modules_of_the_agent(sandbox: ChosenSandbox, tmp_path: Path) -> None:
    place = workplace(tmp_path, sandbox)
    place.prepare()
    (place.own.path / "mine.py").write_text("ANSWER = 42\n")
    code = (
        "import json, sqlite3, mine\nprint(json.dumps({'ä': mine.ANSWER}, ensure_ascii=False))\nraise ValueError('no')"
    )
    result = asyncio.run(run_python(code, context(place)))
    assert "Exit code 1." in result.content
    assert '{"ä": 42}' in result.content
    assert 'code.py", line 3' in result.content
    assert "raise ValueError('no')" in result.content


def staged(tmp_path: Path, say: Say, scenario: Callable[[AsyncAgentSessionManager], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        manager = AsyncAgentSessionManager(
            tmp_path / "data", model_factory=lambda _: FunctionModel(say, latency_seconds=0), templates=()
        )
        async with manager:
            await scenario(manager)

    need_a_strong_one()
    asyncio.run(main())


def test_a_call_is_journaled_and_told_with_its_sandbox_and_what_it_took(tmp_path: Path) -> None:
    def say(request: Any) -> Any:
        return "done" if round_of(request) else call("run_command", command="echo one; sleep 0.3; echo two")

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", {"tools": ["run_command"]})
        notes: list[Notification] = []
        subscription = manager.subscribe(deltas=True)
        task = await manager.send_task("ada", "go")
        await manager.wait_task(task.id)
        notes = subscription.take(at_most=1000)
        steps = [step for step in await manager.list_steps(task.id) if step.result is not None]
        result = steps[0].result
        assert result is not None
        assert result.untrusted
        assert "one\ntwo" in result.content
        assert result.run is not None
        assert result.run.sandbox in STRONG_LEVELS
        assert result.run.wall_seconds > 0.2
        (told,) = (note.params["run"] for note in notes if note.name == "step.finished" and "run" in note.params)
        assert told["sandbox"] == result.run.sandbox
        output = [note for note in notes if note.name == "step.output"]
        assert "".join(note.params["text"] for note in output) == "one\ntwo\n"
        assert all(note.seq == 0 and note.params["stepId"] == steps[0].id for note in output)

    staged(tmp_path, say, scenario)


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        ("kept = bytearray(10**10)", "max_tool_memory_bytes"),
        ("kept = []\nwhile True: kept.append(b'x' * (8 << 20))", "max_tool_memory_bytes"),
        ("raise ValueError('something else')", None),
    ],
)
def test_a_program_that_gets_no_more_memory_is_announced_as_a_limit(
    tmp_path: Path, code: str, limit: str | None
) -> None:
    def say(request: Any) -> Any:
        return "done" if round_of(request) else call("run_python", code=code)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        limits = {"max_tool_memory_bytes": 96 << 20}
        await manager.create_agent("ada", {"tools": ["run_python"], "limits": limits})
        await manager.run_task("ada", "go")
        told = [note.params for note in await manager.notifications(limit=1000) if note.name == "limit.reached"]
        assert [each["limit"] for each in told] == ([] if limit is None else [limit])
        for each in told:
            assert (each["agentId"], each["action"], each["max"]) == ("ada", "failed", 96 << 20)
            assert each["used"] >= each["max"]

    staged(tmp_path, say, scenario)


def test_when_an_agent_is_stopped_the_processes_of_its_command_are_gone(tmp_path: Path) -> None:
    name = a_name()

    def say(request: Any) -> Any:
        command = f"setsid sleep {name} & echo begun; sleep {name}"
        return "done" if round_of(request) else call("run_command", command=command)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        await manager.create_agent("ada", {"tools": ["run_command"]})
        subscription = manager.subscribe(deltas=True)
        await manager.send_task("ada", "go")
        async with asyncio.timeout(60):
            async for note in subscription:
                if note.name == "step.output":
                    break
        assert await asyncio.to_thread(until, lambda: len(processes_of(name)) >= 2)
        await manager.stop_agent("ada")
        assert processes_of(name) == []

    staged(tmp_path, say, scenario)


def test_an_agent_cannot_see_the_folder_of_another(tmp_path: Path) -> None:
    def say(request: Any) -> Any:
        if round_of(request):
            return "done"
        look = "ls ..; cat ../*/secret; cat ../../../../token"
        return call("run_command", command=f"echo {CANARY} > secret" if request.agent_id == "ada" else look)

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        (tmp_path / "data/token").write_text(CANARY)
        results = []
        for agent in ("ada", "bob"):
            await manager.create_agent(agent, {"tools": ["run_command"]})
            task = await manager.send_task(agent, "go")
            await manager.wait_task(task.id)
            results += [step.result for step in await manager.list_steps(task.id) if step.result is not None]
        written, looked = results
        assert not written.is_error
        assert CANARY not in looked.content

    staged(tmp_path, say, scenario)
