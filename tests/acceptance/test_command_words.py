"""What the command line says of what is gone, of what was joined, and of values that it cannot take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.command_stage import Whisperer


def test_a_task_that_was_erased_says_so_wherever_its_answer_is_looked_for(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "ann")
    whisperer.ok("tasks", "send", "ann", "Count to three", "--id", "gone", "--wait")
    whisperer.ok("tasks", "erase", "ann", "gone", "--yes")
    for arguments in (["wait", "gone"], ["send", "ann", "Count to three", "--id", "gone", "--wait"]):
        told = whisperer("tasks", *arguments)
        assert (told.code, told.out) == (1, "")
        assert "The content of task gone was erased on 2" in told.err
        assert "; its answer is not there any longer. It ended as completed" in told.err
    in_json = whisperer("tasks", "wait", "gone", "--json")
    assert in_json.json["erasedAt"] > 0
    assert in_json.error["code"] == "task_ended"
    shown = whisperer.ok("tasks", "show", "gone").splitlines()
    assert "prompt:    erased" in shown
    assert shown[-1].startswith("The content of task gone was erased on 2")
    (line,) = [line for line in whisperer.ok("tasks", "--agent", "ann").splitlines() if line.startswith("gone ")]
    assert line.split()[-2:] == ["erased", "erased"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tasks", "send", "ann", "x", "--deliver", "nextstep"], "'nextstep' is not one of in-turn, next-step."),
        (["tasks", "send", "ann", "x", "--priority", "hgh"], "'--priority' / '-p': 'hgh' is not one of 'urgent'"),
        (["schedule", "create", "ann", "--prompt", "x"], "Give --cron or --every: one of them is needed."),
        (["schedule", "create", "ann", "--every", "1h"], "Give --prompt or --event: one of them is needed."),
        (
            ["schedule", "create", "ann", "--prompt", "x", "--every", "1h", "--cron", "* * * * *"],
            "Give --cron or --every: not both.",
        ),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_the_option(
    whisperer: Whisperer, arguments: list[str], told: str
) -> None:
    refused = whisperer(*arguments)
    assert refused.code != 0
    assert told in refused.err


def test_both_spellings_of_when_a_message_is_heard_are_taken(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "ben")
    for deliver in ("in-turn", "in_turn"):
        assert whisperer.ok("tasks", "send", "ben", "Hi", "--deliver", deliver, "--wait") == "Done: Hi\n"


def test_a_keyword_of_a_schema_that_is_misspelt_is_told_in_whole_sentences(
    whisperer: Whisperer, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"propertes": {}}')
    refused = whisperer("tasks", "send", "ann", "x", "--output-schema", str(schema))
    assert "Did you mean 'properties'? Nothing was changed." in refused.err


def test_a_task_that_joined_another_is_shown_with_that_task_and_its_step(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "cat", "--config", '{"limits": {"max_tokens_per_agent": 1}}')
    with whisperer.watching() as watching:
        assert whisperer("tasks", "send", "cat", "two steps", "--id", "host").code == 0
        while json.loads(watching.line_with("agent.paused"))["params"]["agentId"] != "cat":
            pass
        hurry = ("hurry", "--id", "guest", "--thread", "host", "--deliver", "next-step")
        assert whisperer("tasks", "send", "cat", *hurry).code == 0
        whisperer.ok("limits", "set", "--agent", "cat", "max_tokens_per_agent=1000000")
        whisperer.ok("tasks", "wait", "host")
    (step,) = {each["joinedStep"] for each in whisperer.json("tasks") if each["taskId"] == "guest"}
    shown = whisperer.ok("tasks", "show", "guest")
    assert f"joined:    task host, before step {step.removeprefix('host.')}\n" in shown
    assert "joined:" not in whisperer.ok("tasks", "show", "host")
