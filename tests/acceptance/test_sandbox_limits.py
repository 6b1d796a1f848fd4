"""Jobs that take too much, and jobs whose children go their own way: all of it is ended, and it is known how."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.errors import SandboxError
from ai_whisperer.sandbox.base import Ending, Outcome
from ai_whisperer.sandbox.held import threads_in_use
from ai_whisperer.sandbox.launcher import Launcher
from tests.acceptance.sandbox_stage import LEVELS, Stage, a_name, need, processes_of, staged, until

DETACHED = {
    "setsid": "setsid sleep {name} &",
    "nohup": "nohup sleep {name} >/dev/null 2>&1 &",
    "double fork": "(setsid sh -c 'sleep {name} & sleep {name} &' &);",
}
READY = "touch ready; "


@pytest.fixture(scope="module", params=LEVELS)
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(request.param, tmp_path_factory.mktemp("limits")) as stage:
        yield stage


def test_exit_code_and_output_of_both_streams_are_told(stage: Stage) -> None:
    outcome = stage.sh("echo one; echo two >&2; exit 3")
    assert (outcome.ending, outcome.status, outcome.output) == (Ending.EXITED, 3, b"one\ntwo\n")
    assert outcome.run.sandbox == stage.level


def test_what_a_program_took_is_told_also_of_one_that_ended_at_once(stage: Stage) -> None:
    outcome = stage.sh("true")
    assert 0 < outcome.run.memory_bytes < 256 << 20


def test_a_job_reads_the_input_that_it_is_given(stage: Stage) -> None:
    assert stage.sh("cat", stdin=b"\x00\xffinput").output == b"\x00\xffinput"


def test_binary_output_is_kept_as_it_is(stage: Stage) -> None:
    outcome = stage.python("import os\nfor each in range(256): os.write(1, bytes([each]))")
    assert outcome.output == bytes(range(256))


def test_a_job_that_takes_too_long_is_ended(stage: Stage) -> None:
    for seconds in (0.3, 3.0, 30.0):  # a busy machine may not even have begun it when its time is up
        outcome = stage.sh("echo begun; sleep 60", wall_seconds=seconds)
        assert outcome.ending is Ending.TIMED_OUT
        if outcome.output:
            break
    assert outcome.output == b"begun\n"


def test_a_job_cannot_go_before_others_even_as_root(stage: Stage) -> None:
    urgent = """
import os
for attempt in (lambda: os.nice(-1), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))):
    try:
        attempt()
        print("done")
    except PermissionError:
        print("refused")
"""
    assert stage.python(urgent).output == b"refused\nrefused\n"


def test_a_job_that_runs_on_comes_after_the_server_and_so_do_its_sessions(stage: Stage) -> None:
    patient = """
import os, time
def share():
    try:
        return open("/proc/self/autogroup").read().split()[-1]
    except OSError:
        return "10"
child = os.fork()
if child == 0:
    os.setsid()
while os.getpriority(os.PRIO_PROCESS, 0) < 10 or share() != "10":
    time.sleep(0.01)
os.write(1, b"after ")
if child:
    os.wait()
"""
    assert stage.python(patient, wall_seconds=30).output == b"after after "


def test_an_endless_loop_ends_at_its_cpu_seconds(stage: Stage) -> None:
    outcome = stage.python("while True: pass", cpu_seconds=0.3, wall_seconds=60)
    assert outcome.ending is Ending.OUT_OF_CPU
    assert outcome.run.cpu_seconds > 0.2


def test_children_share_the_cpu_seconds_of_their_job(stage: Stage) -> None:
    loop = "while :; do :; done"
    outcome = stage.sh(f"({loop}) & ({loop}) & wait", cpu_seconds=0.3, wall_seconds=60)
    assert outcome.ending is Ending.OUT_OF_CPU


def test_a_process_that_wants_too_much_memory_gets_none(stage: Stage) -> None:
    outcome = stage.python("kept = []\nwhile True: kept.append(b'x' * (8 << 20))", memory_bytes=96 << 20)
    assert outcome.status != 0
    assert b"MemoryError" in outcome.output or outcome.ending is Ending.OUT_OF_MEMORY
    assert outcome.run.memory_bytes < 120 << 20


def test_children_share_the_memory_of_their_job(stage: Stage) -> None:
    code = "import os, time\nfor _ in range(4): os.fork()\nkept = b'x' * (32 << 20)\ntime.sleep(60)"
    outcome = stage.python(code, memory_bytes=128 << 20, wall_seconds=60)
    assert outcome.ending is Ending.OUT_OF_MEMORY


def test_a_fork_bomb_is_contained(stage: Stage) -> None:
    name = a_name()
    bomb = "import os, time\nfor _ in range(300):\n    if os.fork() == 0: time.sleep(60)\ntime.sleep(60)"
    outcome = stage.python(bomb, name, processes=16, wall_seconds=60)
    assert outcome.ending is Ending.TOO_MANY_PROCESSES or b"BlockingIOError" in outcome.output
    assert processes_of(name) == []


BOMB = """
import os, pathlib, sys, time
end = time.monotonic() + 10
while time.monotonic() < end:
    if int(pathlib.Path("/proc/loadavg").read_text().split()[3].partition("/")[2]) > int(sys.argv[1]):
        pathlib.Path("went off").touch()  # it gets no further: this machine is needed
        break
    try:
        if os.fork() == 0 and sys.argv[2] == "sessions":
            os.setsid()
    except OSError:
        time.sleep(0.01)
time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["one session", "sessions"])
def test_a_fork_bomb_that_doubles_for_ever_is_contained(stage: Stage, kind: str) -> None:
    """Sessions of their own: the kernel may share out processors among these first, so that many starve all others."""
    name = a_name()
    outcome = stage.python(BOMB, str(threads_in_use() + 2_500), kind, name, processes=16, wall_seconds=1.5)
    assert outcome.ending in (Ending.TOO_MANY_PROCESSES, Ending.TIMED_OUT)
    assert not (stage.own / "went off").exists()
    assert processes_of(name) == []


def test_a_file_cannot_become_too_large(stage: Stage) -> None:
    stage.sh("head -c 10000000 /dev/zero > large", file_bytes=1 << 20)
    assert (stage.own / "large").stat().st_size <= 1 << 20


def test_much_output_is_cut_in_the_middle_and_its_amount_is_told(stage: Stage) -> None:
    outcome = stage.python("print('head'); print('x' * 500_000); print('tail')", output_bytes=10_000)
    assert outcome.output.startswith(b"head\n")
    assert outcome.output.endswith(b"tail\n")
    assert f"{outcome.cut_bytes} bytes are left out".encode() in outcome.output
    assert 500_000 - 10_000 < outcome.cut_bytes < 500_010
    assert len(outcome.output) < 10_100


def test_output_without_end_ends_the_job(stage: Stage) -> None:
    outcome = stage.sh("yes", flood_bytes=4 << 20, output_bytes=1000, wall_seconds=60)
    assert outcome.ending is Ending.TOO_MUCH_OUTPUT
    assert len(outcome.output) < 1100


def test_output_is_shown_while_the_job_runs(stage: Stage) -> None:
    async def scenario() -> bool:
        shown = asyncio.Event()

        def see(output: bytes) -> None:
            if b"first" in output:
                shown.set()

        running = asyncio.ensure_future(stage.sandbox.run(stage.job("/bin/sh", "-c", "echo first; sleep 60"), see))
        async with asyncio.timeout(60):
            await shown.wait()
        was_running = not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return was_running

    assert asyncio.run(scenario())


@pytest.mark.parametrize("how", DETACHED)
def test_children_that_outlive_their_parent_are_ended_with_the_job(stage: Stage, how: str) -> None:
    name = a_name()
    job = stage.job("/bin/sh", "-c", f"{DETACHED[how].format(name=name)} sleep 0.1; echo done")

    async def scenario() -> tuple[Outcome, list[int]]:
        outcome = await stage.sandbox.run(job)
        return outcome, processes_of(name)  # at once: that they are gone a little later is not enough

    outcome, left = asyncio.run(scenario())
    assert (outcome.ending, outcome.output) == (Ending.EXITED, b"done\n")
    assert left == []


def test_children_that_left_their_session_are_gone_when_the_time_is_up(stage: Stage) -> None:
    name = a_name()
    outcome = stage.sh(f"{DETACHED['double fork'].format(name=name)} sleep {name}", wall_seconds=0.3)
    assert outcome.ending is Ending.TIMED_OUT
    assert processes_of(name) == []


def test_when_a_cancelled_run_ends_all_its_processes_are_gone(stage: Stage) -> None:
    name = a_name()
    ready = stage.own / "ready"
    ready.unlink(missing_ok=True)

    async def scenario() -> list[int]:
        job = stage.job("/bin/sh", "-c", f"{DETACHED['setsid'].format(name=name)} {READY} sleep {name}")
        running = asyncio.ensure_future(stage.sandbox.run(job))
        assert await asyncio.to_thread(until, ready.exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return processes_of(name)

    assert asyncio.run(scenario()) == []


def test_a_program_that_does_not_exist_is_told(stage: Stage) -> None:
    try:
        outcome = asyncio.run(stage.sandbox.run(stage.job("/no/such/program")))
    except SandboxError as error:
        told = error.message
    else:
        assert outcome.status != 0
        told = outcome.output.decode()
    assert "/no/such/program" in told


def test_when_the_process_that_forks_keepers_dies_the_next_job_starts_another(stage: Stage) -> None:
    launcher = stage.sandbox._launcher
    assert stage.sh("true").succeeded
    process = launcher._process
    assert process is not None
    process.kill()
    process.wait()
    assert stage.sh("echo again").output == b"again\n"


SERVER = """
import asyncio, sys
from ai_whisperer.sandbox.base import Job
from ai_whisperer.sandbox.launcher import KeptSandbox, Launcher

level, own, command = sys.argv[1:]
job = Job(argv=("/bin/sh", "-c", command), cwd=own, env={"PATH": "/usr/bin:/bin"}, writable=(own,))
asyncio.run(KeptSandbox(level, Launcher()).run(job))
"""


def test_when_the_server_is_killed_its_jobs_die_too(stage: Stage) -> None:
    name = a_name()
    ready = stage.own / "ready"
    ready.unlink(missing_ok=True)
    command = f"{DETACHED['setsid'].format(name=name)} {READY} sleep {name}"
    program = [sys.executable, "-c", SERVER, stage.level, str(stage.own), command]
    with subprocess.Popen(program, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}) as server:
        try:
            assert until(ready.exists)
            assert until(lambda: len(processes_of(name)) >= 2)
        finally:
            server.kill()
    assert until(lambda: processes_of(name) == [])


class DyingKeeper(Launcher):
    """A planted fault: the keeper dies when the job writes something."""

    program = Launcher.program.replace(
        "from ai_whisperer.sandbox.zygote import main; ",
        "import os\n"
        "from ai_whisperer.sandbox import keeper, zygote\n"
        "keeper._Watch._read = lambda watch: os._exit(1)\n"
        "main = zygote.main; ",
    )


def test_what_a_keeper_leaves_when_it_dies_is_ended(tmp_path: Path, stage: Stage) -> None:
    name = a_name()
    with staged(stage.level, tmp_path, DyingKeeper()) as dying:
        with pytest.raises(SandboxError, match="without a report"):
            dying.sh(f"setsid sleep {name} >/dev/null 2>&1 & sleep 0.1; echo; sleep {name}")
        assert until(lambda: processes_of(name) == [])


def test_the_threads_of_a_job_are_counted(stage: Stage) -> None:
    code = (
        "import threading, time\nthreading.stack_size(65536)\n"
        "for _ in range(300): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\ntime.sleep(60)"
    )
    outcome = stage.python(code, processes=8, wall_seconds=60)
    assert outcome.ending is Ending.TOO_MANY_PROCESSES or b"can't start new thread" in outcome.output


_AN_INIT = """
import os, subprocess, sys
from ai_whisperer.sandbox import family, namespaces
if not namespaces.enter_processes():
    sys.exit("no namespaces")
if os.fork() == 0:
    subprocess.run(["/bin/sh", "-c", f"setsid sleep {sys.argv[1]} & sleep {sys.argv[1]} &"], check=True)
    ended = os.getpid() == 1 and family.end_namespace()
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        os._exit(0 if ended else 2)
    os._exit(3)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_an_init_ends_all_of_its_namespace_before_it_ends_itself() -> None:
    command = [sys.executable, "-c", _AN_INIT, a_name()]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "no namespaces" in ended.stderr:
        pytest.skip("this machine gives no namespaces")
    assert (ended.returncode, ended.stderr) == (0, "")


class OnlyTheParent(Launcher):
    """A planted fault: when a job ends, only its first process is killed."""

    program = Launcher.program.replace(
        "from ai_whisperer.sandbox.zygote import main; ",
        "from ai_whisperer.sandbox import family, zygote\n"
        "family.end_all = lambda: None\n"
        "zygote._clear_up = lambda keepers: None\n"
        "main = zygote.main; ",
    )


@pytest.mark.planted("left processes", name="kill only the parent")
def test_the_check_for_left_processes_notices_when_only_the_parent_is_killed(tmp_path: Path) -> None:
    need("rlimits")
    name = a_name()
    with staged("rlimits", tmp_path, OnlyTheParent()) as stage:
        stage.sh(f"setsid sleep {name} >/dev/null 2>&1 & sleep 0.1")
        left = processes_of(name)
        for each in left:
            os.kill(each, signal.SIGKILL)
    assert left
