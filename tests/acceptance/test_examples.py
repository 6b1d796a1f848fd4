"""The examples, as a person runs them from a clone."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.core.marks import without_marks
from ai_whisperer.testing.model_server import Call, ModelServer, Reply

ROOT = Path(__file__).parents[2]
CLOSING = {
    "parallel_report": "Slowness and lost drafts hurt them.",
    "monitoring": "I was told: User requested immediate check",
    "decomposition": "return max(set(words), key=words.count)",
    "migration": "In parallel: ",
    "switch": "Patricia replied with: The review is done; two questions are left open.",
    "debbie": "It is active (user_prompt) and has not finished a step since my last round.",
}

ROUNDS = re.compile(r"^ *[0-9]+ +(?:The schedule )?debbie.*\n", re.MULTILINE)
"""What her schedule makes of a second that passes while the example is run again."""


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py"), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(name, *arguments), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )


def ending_of(told: str) -> str:
    """The last line that says something: what comes of an example may end with a block of code."""
    return [line for line in told.splitlines() if line != "```"][-1]


def test_every_example_is_listed_with_its_rules() -> None:
    readme = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for name in CLOSING:
        assert f"[{name}.py]({name}.py)" in readme
        assert (ROOT / "examples" / "rules" / f"{name}.yaml").exists()
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"stage"}
    assert scripts == set(CLOSING)


@pytest.mark.parametrize("name", CLOSING)
def test_an_example_runs_and_says_the_same_when_it_is_run_again(name: str, tmp_path: Path) -> None:
    first = run(name, str(tmp_path))
    assert first.returncode == 0, first.stderr
    assert CLOSING[name] in ending_of(first.stdout)
    again = run(name, str(tmp_path))
    assert again.returncode == 0, again.stderr
    head, closing = first.stdout.split("\n\n", 1)
    assert len(head.splitlines()) > 10
    told = ROUNDS.sub("", again.stdout) if name == "debbie" else again.stdout
    assert told == f"{head.splitlines()[0]}\n\n{closing}"


def test_an_example_that_is_killed_goes_on_when_it_is_run_again(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("decomposition", str(tmp_path)), env=environment(), stdout=subprocess.PIPE, text=True
    ) as killed:
        for line in killed.stdout or ():
            if "Part B" in line:
                killed.kill()
                break
    again = run("decomposition", str(tmp_path))
    assert again.returncode == 0, again.stderr
    assert CLOSING["decomposition"] in ending_of(again.stdout)
    assert "mailed integrator: Part A" not in again.stdout
    assert again.stdout.count("mailed user") == 1


def test_a_model_that_does_not_exist_is_told_in_one_line(tmp_path: Path) -> None:
    shown = run("switch", str(tmp_path), "--model", "nonsense")
    assert shown.returncode == 1
    assert "There is no model 'nonsense'." in shown.stderr + shown.stdout
    assert "Traceback" not in shown.stderr


def speak(body: dict[str, Any], number: int) -> Reply:
    """A provider's model that knows who it is by its instructions and what to do by what it was told last."""
    instructions, last = str(body["messages"][0]["content"]), body["messages"][-1]
    offered = {offer["function"]["name"] for offer in body["tools"]}
    text = without_marks(str(last["content"]))
    if "You are Alice" in instructions:
        if last["role"] == "tool":
            return Reply(text=f"Patricia replied with: {text.rpartition(chr(10))[2]}")
        assert "send_mail_with_switch" in offered
        question = {"to_agent": "Patricia", "subject": "RFC", "body": "How far is the review?"}
        return Reply(tool_calls=(Call("send_mail_with_switch", json.dumps(question)),))
    found = re.search(r"Mail id: (\S+)", text)
    if last["role"] == "user":
        return Reply(tool_calls=(Call("check_mail", "{}"),))
    if found is not None:
        return Reply(tool_calls=(Call("reply_mail", json.dumps({"mail_id": found[1], "body": "Nearly done."})),))
    return Reply(text="Answered.")


def test_an_example_runs_with_a_model_of_a_provider() -> None:
    async def scenario() -> tuple[int | None, str]:
        async with ModelServer(speak) as server:
            address = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any", "NO_PROXY": "*", "no_proxy": "*"}
            process = await asyncio.create_subprocess_exec(
                *command("switch", "--model", "openai-chat:some-model"),
                env={**environment(), **address},
                stdout=subprocess.PIPE,
            )
            async with asyncio.timeout(60):
                shown, _ = await process.communicate()
            return process.returncode, shown.decode()

    code, shown = asyncio.run(scenario())
    assert code == 0, shown
    assert shown.endswith("Patricia replied with: Nearly done.\n")
