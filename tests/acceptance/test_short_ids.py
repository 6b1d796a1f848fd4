"""Ids that are not written to their end, everywhere that the command line takes one."""

from __future__ import annotations

import json

from tests.acceptance.command_stage import Whisperer


def test_a_task_is_named_by_how_its_id_begins(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "ann")
    for task_id in ("alpha-1", "alpha-2", "beta", "beta-2"):
        whisperer.ok("tasks", "send", "ann", f"say {task_id}", "--id", task_id, "--wait")
    assert whisperer.json("tasks", "show", "alpha-2")["task"]["taskId"] == "alpha-2"
    assert whisperer.json("tasks", "show", "beta-")["task"]["taskId"] == "beta-2"
    assert whisperer.json("tasks", "show", "beta")["task"]["taskId"] == "beta", "one that is just this is meant"
    assert [each["taskId"] for each in whisperer.json("tasks", "tree", "beta-")] == ["beta-2"]
    assert whisperer.json("tasks", "wait", "beta-")["taskId"] == "beta-2"
    assert "ann" in whisperer.ok("usage", "--task", "beta-")
    for command in (["show"], ["tree"], ["wait"], ["cancel"], ["cancel", "--tree"], ["retry"], ["dismiss"]):
        ran = whisperer("tasks", *command, "alph")
        assert ran.code == 1
        assert "More than one task id begins with 'alph': alpha-1, alpha-2." in ran.err
    assert "'alph'" in whisperer("usage", "--task", "alph").err
    assert "There is no task 'gamma'" in whisperer("tasks", "show", "gamma").err
    assert "There is no task ''" in whisperer("tasks", "show", "").err


def test_many_candidates_are_named_in_part(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "many")
    for number in range(12):
        whisperer.ok("tasks", "send", "many", "eternally", "--id", f"many-{number:02}")
    told = whisperer("tasks", "cancel", "many").err
    assert "many-09 and more. Write more of it." in told
    assert "many-10" not in told


def test_rooms_and_schedules_are_named_by_how_their_ids_begin(whisperer: Whisperer) -> None:
    for name in ("bob", "eve"):
        whisperer.ok("agents", "create", name)
    whisperer.ok("rooms", "create", "bob", "--id", "planning-room")
    assert "planning-room" in whisperer.ok("rooms", "add", "plan", "eve")
    assert whisperer.json("rooms", "post", "plan", "@bob hello")["roomId"] == "planning-room"
    assert "hello" in whisperer.ok("rooms", "show", "plan")
    assert "planning-room" in whisperer.ok("rooms", "remove", "plan", "eve")
    whisperer.ok("schedule", "create", "bob", "--every", "3600", "--prompt", "x", "--id", "hourly-look")
    for command in ("pause", "resume", "delete"):
        assert "hourly-look" in whisperer.ok("schedule", command, "hour")


def test_mail_in_the_inbox_and_approvals_are_named_by_how_their_ids_begin(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "fay", "--config", json.dumps({"tools": ["read_file"], "approve": ["read_file"]}))
    whisperer.ok("agents", "create", "gus")
    whisperer.ok("tasks", "send", "gus", "write to me", "--wait")
    (mail,) = whisperer.json("mail")
    beginning = mail["mailId"][:-1]
    assert "All is" in whisperer.ok("mail", "read", beginning)
    assert whisperer.ok("mail", "reply", beginning, "Thanks.", "--id", "answer").startswith("Mail answer was sent")
    assert whisperer.json("mail", "archive", beginning)["mailId"] == mail["mailId"]
    whisperer.ok("mail", "send", "fay", "To her", "x", "--id", "letter-to-fay")
    told = whisperer("mail", "read", "letter").err
    assert "no mail 'letter'" in told, "mail to others is not in the inbox"
    with whisperer.watching() as watching:
        whisperer.ok("tasks", "send", "fay", "look into the cellar", "--id", "writing")
        watching.line_with("approval.requested")
    (approval,) = whisperer.json("approvals")
    assert whisperer.json("approvals", "show", "writ")["approvalId"] == approval["approvalId"]
    assert "fay may not call" in whisperer.ok("approvals", "refuse", "writ")


def test_a_session_is_named_by_how_its_id_begins(whisperer: Whisperer) -> None:
    for name in ("blue-1", "blue-2"):
        whisperer.ok("sessions", "create", name)
    whisperer.ok("agents", "create", "sky", "--session", "blue-1")
    assert "More than one session id begins with 'blue'" in whisperer("agents", "--session", "blue").err
    whisperer.ok("sessions", "delete", "blue-2", "--yes")
    assert "sky" in whisperer.ok("agents", "--session", "blue")
    assert "There is no session 'green'" in whisperer("agents", "--session", "green").err


def test_the_list_of_tasks_shows_what_was_asked(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "kim")
    whisperer.ok("tasks", "send", "kim", "count the pens\nand the pencils " + "again " * 100, "--wait")
    head, line = whisperer.ok("tasks", "--agent", "kim").splitlines()
    assert "PROMPT" in head
    assert "count the pens and the pencils" in line
    assert "again " * 50 not in line
