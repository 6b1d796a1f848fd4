"""What the command line says of what is gone, of what was joined, and of values that it cannot take."""

from __future__ import annotations

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
