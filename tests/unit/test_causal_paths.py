"""Causal paths: what something is called by what caused it."""

from __future__ import annotations

import json

from ai_whisperer.core.causal_paths import Paths, causal_id, is_drawn

TASK, MAIL, OTHER = "0" * 23 + "1", "0" * 23 + "2", "0" * 23 + "3"


def fed(task: str = TASK, mail: str = MAIL, other: str = OTHER) -> Paths:
    paths = Paths()
    paths.input = 3
    paths.feed("async.task.queued", "user:user", {"taskId": task, "agentId": "writer", "threadId": task})
    paths.feed("async.task.started", f"task:{task}", {"taskId": task, "agentId": "writer"})
    paths.feed("mail.sent", f"task:{task}", {"mailId": mail, "recipient": "editor", "sender": "writer"})
    paths.feed("mail.state_changed", f"mail:{mail}", {"mailId": mail, "agentId": "editor", "taskId": other})
    return paths


def test_a_path_names_the_input_the_agents_and_what_lies_between() -> None:
    paths = fed()
    assert paths.of(TASK) == "3>writer"
    assert paths.of(MAIL) == "3>writer>mail:editor"
    assert paths.of(OTHER) == "3>writer>mail:editor>editor"
    assert paths.key(f"{OTHER}.2") == "3>writer>mail:editor>editor/2"
    assert paths.key(f"{TASK}.4.summary") == "3>writer/4.summary"
    assert paths.place(f"{TASK}.1") == "writer, task 1"


def test_the_second_of_one_kind_with_one_cause_has_a_number() -> None:
    paths = fed()
    again = "f" * 24
    paths.feed("mail.sent", f"task:{TASK}", {"mailId": again, "recipient": "editor", "sender": "writer"})
    assert paths.of(again) == "3>writer>mail:editor.2"


def test_ids_that_were_drawn_become_the_same_in_all_runs_and_back() -> None:
    first, second = fed(), fed("a" * 24, "b" * 24, "c" * 24)
    text = "Mail {0} of task {1}.2~task, not {2}."
    written = text.format(MAIL, TASK, "d" * 24)
    assert first.causal(written) == second.causal(text.format("b" * 24, "a" * 24, "d" * 24))
    assert causal_id("3>writer") in first.causal(written)
    assert first.actual(first.causal(written)) == written
    assert first.causal_data({"taskId": TASK, "n": [1, TASK]}) == second.causal_data(
        {"taskId": "a" * 24, "n": [1, "a" * 24]}
    )


def test_ids_after_a_line_break_become_causal_too() -> None:
    first, second = fed(), fed("a" * 24, "b" * 24, "c" * 24)
    assert first.causal_data({"text": f"\n{TASK}"}) == second.causal_data({"text": "\n" + "a" * 24})
    assert first.causal_data({"text": f"\n{TASK}"}) == {"text": "\n" + causal_id("3>writer")}
    written = json.dumps({"body": f"Task:\n{TASK}"})
    assert first.causal(written) == json.dumps({"body": f"Task:\n{causal_id('3>writer')}"})
    assert first.actual_data(first.causal_data([written, {TASK: 1}])) == [written, {TASK: 1}]


def test_ids_that_a_caller_chose_stay_as_they_are() -> None:
    paths = fed(task="bill.of.may")
    assert paths.causal("bill.of.may") == "bill.of.may"
    assert paths.key("bill.of.may.2") == "3>writer/2"


def test_what_is_an_id_that_was_drawn() -> None:
    assert is_drawn(TASK)
    assert is_drawn("f" * 32)
    assert not is_drawn("bill")
    assert not is_drawn("0" * 64)
    assert not is_drawn(None)
