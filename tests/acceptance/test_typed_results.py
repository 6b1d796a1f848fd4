"""Typed results all the way: over the socket and on the command line, with a real provider."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from ai_whisperer.domain.tasks import TaskState
from ai_whisperer.errors import InvalidInputError, TaskEndedError
from ai_whisperer.scripting.sync_client import SyncClient
from ai_whisperer.testing.model_server import Reply
from tests.acceptance.client_stage import StagedServer
from tests.acceptance.provided_stage import Provided, play

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@dataclasses.dataclass
class City:
    name: str


def corrected(body: dict[str, Any], _: int) -> Reply:
    """Answers in words, and in JSON when it was told that this is wrong."""
    told = body["messages"][-1]["content"]
    return Reply(text='```json\n{"name": "Rome"}\n```' if "Answer again" in told else "It is Rome.")


def test_a_client_gets_a_value_of_the_type_after_one_correction(tmp_path: Path) -> None:
    async def scenario(stage: Provided) -> None:
        await stage.client.create_agent("ada")
        assert await stage.client.run_task("ada", "Which city?", output=City, task_id="t") == City("Rome")
        prompt = stage.asked(0)[-1]["content"]
        assert prompt.startswith("Which city?\n\nYour final answer must be JSON")
        assert '"required":["name"]' in prompt
        assert [message["role"] for message in stage.asked(1)[-3:]] == ["user", "assistant", "user"]
        task = await stage.client.get_task("t")
        assert task.result is not None
        assert (task.result.output, task.output_schema is not None) == ({"name": "Rome"}, True)
        steps = await stage.client.list_steps("t")
        assert steps[0].answer is not None
        assert steps[0].answer.objection.startswith("There is no JSON in your answer.")

    play(corrected, tmp_path, scenario)


def test_an_answer_that_never_fits_is_a_clear_error_for_the_client(tmp_path: Path) -> None:
    async def scenario(stage: Provided) -> None:
        await stage.client.create_agent("ada")
        with pytest.raises(TaskEndedError, match="does not fit the output schema, though the model was told"):
            await stage.client.run_task("ada", "Which city?", output=City)
        assert len(stage.provider.received) == 2
        with pytest.raises(InvalidInputError, match="Did you mean 'required'"):
            await stage.client.send_task("ada", "Which city?", output={"requried": ["name"]})
        (failed,) = await stage.client.list_tasks("ada")
        assert failed.state is TaskState.FAILED

    play(lambda *_: Reply(text="Rome, as I said."), tmp_path, scenario)


def test_the_command_line_takes_a_schema_and_prints_the_json(tmp_path: Path) -> None:
    (tmp_path / "city.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    schema = ("--output-schema", str(tmp_path / "city.json"))

    async def scenario(stage: Provided) -> None:
        await stage.client.create_agent("ada")
        ran = await stage.command("run", "ada", "Which city?", *schema)
        assert (ran.code, ran.out) == (0, '{"name":"Rome"}\n')
        told = (await stage.command("tasks", "send", "ada", "Which city?", "--wait", "--json", *schema)).json
        assert told["result"]["output"] == {"name": "Rome"}
        refused = await stage.command("run", "ada", "Which city?", "--output-schema", str(tmp_path / "list.json"))
        assert refused.code == 1
        assert "must be a JSON Schema, which is an object, not a list" in refused.err

    play(corrected, tmp_path / "data", scenario)


def test_a_script_without_asyncio_gets_the_value_too(server: StagedServer) -> None:
    with SyncClient(server.address.url, server.address.token, session_id="typed") as client:
        client.create_agent("ada")
        with pytest.raises(TaskEndedError, match="output schema"):
            client.run_task("ada", "Which city?", output=City)
