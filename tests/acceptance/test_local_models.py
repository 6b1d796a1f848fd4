"""Servers with local models: what they write is understood, and they are shown it as they can read it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.testing.model_server import Call, ModelServer, Reply
from tests.acceptance.command_stage import Whisperer, serving

WRITTEN = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


@tool
async def add(a: int, b: int) -> str:
    """Add."""
    return f"{a + b}"


def talk(monkeypatch: pytest.MonkeyPatch, *replies: Reply) -> tuple[str, list[dict[str, Any]]]:
    """The answer to a question when the server replies so, and the requests that it got."""
    asked: list[dict[str, Any]] = []

    def respond(body: dict[str, Any], number: int) -> Reply:
        asked.append(body)
        return replies[len(asked) - 1]

    async def run() -> str:
        async with ModelServer(respond) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            async with AsyncAgentSessionManager(model="openai-chat:local", tools=[add]) as manager:
                await manager.create_agent("ann", {"tools": ["add"]})
                return str(await manager.run_task("ann", "What is 2 and 3?"))

    return asyncio.run(run()), asked


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text=f"<think>\nLet me add.\n</think>\n\n{WRITTEN}"),
        Reply(text=f"Let me add.\n\n{WRITTEN}"),
        Reply(tool_calls=(Call("functions.add", '{"a": "2", "b": "3"}'),)),
        Reply(tool_calls=(Call("add", '"{\\"a\\": 2, \\"b\\": 3}"'),)),
    ],
)
def test_a_misspelt_call_is_made_and_shown_as_it_should_have_been(
    monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    answer, asked = talk(monkeypatch, reply, Reply(text="<think>So it is.</think>It is 5."))
    assert answer == "It is 5."
    *_, wanted, result = asked[1]["messages"]
    [made] = wanted["tool_calls"]
    assert (made["function"]["name"], result["role"], result["tool_call_id"]) == ("add", "tool", made["id"])
    assert made["function"]["arguments"].replace(" ", "") == '{"a":2,"b":3}'
    assert result["content"].startswith("5\n\nNote: ")


IN_PARTS = """
rules:
  - prompt_match: story
    text: "Once upon a time.\\n[CONTINUE]"
  - prompt_match: Continue
    text: "The end."
"""


def test_a_command_that_waits_shows_each_part_of_an_answer_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "served"
    with serving(data, answers=IN_PARTS):
        whisperer = Whisperer(data, capsys)
        whisperer.ok("agents", "create", "ann")
        whole = "Once upon a time.\nThe end."
        assert whisperer.ok("tasks", "send", "ann", "Tell a story.", "--wait") == f"{whole}\n"
        sent = whisperer.json("tasks", "send", "ann", "Tell another story.")
        assert whisperer.ok("tasks", "wait", sent["taskId"]) == f"{whole}\n"
        assert whisperer.json("tasks", "wait", sent["taskId"])["result"]["final"] == whole
        assert whisperer("run", "ann", "Tell a third story.").out == f"{whole}\n"
