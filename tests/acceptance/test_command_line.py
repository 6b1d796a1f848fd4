"""The command line, as people and scripts use it, against one real server."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai_whisperer.cli.output import Output
from tests.acceptance.command_stage import PATIENCE_SECONDS, WHISPERER, Whisperer, complete, running, serving

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("served")
    with serving(folder) as server:
        yield folder
        told = [line for line in server.errors.splitlines() if not re.search("runs as root|cannot run programs", line)]
        assert len(told) == 3, "the server told more than how it started"


@pytest.fixture
def agent(whisperer: Whisperer) -> str:
    """An agent of the test's own."""
    name = f"agent-{next(_numbers)}"
    whisperer.ok("agents", "create", name)
    return name


def test_an_agent_is_created_listed_and_shown(whisperer: Whisperer) -> None:
    created = whisperer.ok("agents", "create", "ann", "--config", '{"description": "Writes", "aliases": ["annie"]}')
    assert created == "Created ann and started it.\n"
    (line,) = [line for line in whisperer.ok("agents").splitlines() if line.startswith("ann ")]
    assert line.split()[:3] == ["ann", "idle", "0"]
    assert "ann" in [each["agentId"] for each in whisperer.json("agents", "list")]
    shown = whisperer.ok("agents", "show", "annie")
    assert "description: Writes\n" in shown
    assert re.search(r"\nmodel: +scripted:\S+ \(the server's\)\n", shown)
    assert whisperer.json("agents", "show", "ann")["definition"]["aliases"] == ["annie"]


def test_what_an_agent_is_granted_is_shown(whisperer: Whisperer) -> None:
    grants = {"tools": ["fetch_url"], "folders": {"shared": "read"}, "network": ["example.com", "*.example.org"]}
    whisperer.ok("agents", "create", "granted", "--config", json.dumps(grants))
    shown = [" ".join(line.split()) for line in whisperer.ok("agents", "show", "granted").splitlines()]
    told = ["tools: fetch_url", "folders: shared (read)", "network: example.com, *.example.org"]
    assert [line for line in shown if line.startswith(("tools", "folders", "network"))] == told
    definition = whisperer.json("agents", "show", "granted")["definition"]
    assert {name: definition[name] for name in grants} == grants
    assert "network[0]" in whisperer("agents", "create", "odd", "--config", '{"network": ["http://x"]}').err


def test_an_agent_is_made_of_a_template(whisperer: Whisperer) -> None:
    assert "coder " in whisperer.ok("templates")
    created = whisperer.json("agents", "create", "coder1", "--template", "coder", "--no-start")
    assert (created["agentId"], created["started"]) == ("coder1", False)
    assert "You are a coder" in whisperer.ok("templates", "show", "coder")
    assert whisperer.ok("start", "coder1", "--template", "monitor") == "coder1 is idle.\n"
    assert whisperer.json("agents", "show", "coder1")["definition"]["prompt"].startswith("You are the monitor")
    assert whisperer("start", "codr1").code == 1
    assert whisperer.ok("start", "coder2", "-t", "coder") == "coder2 is idle.\n"


def test_a_model_whose_key_is_missing_is_told_when_the_agent_is_created(whisperer: Whisperer) -> None:
    keyless = whisperer("agents", "create", "keyless", "--config", '{"model": "openrouter:some/model"}')
    assert keyless.code == 0
    assert "needs a key. Set OPENROUTER_API_KEY" in keyless.err


def test_a_task_for_a_name_that_is_misspelt_says_who_may_be_meant(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "alicia", "--config", "{}")
    assert "Did you mean 'alicia'?" in whisperer("tasks", "send", "alicai", "Hello").err


def test_a_name_that_is_nearly_that_of_a_template_is_told(whisperer: Whisperer) -> None:
    near = whisperer("agents", "create", "reviwer")
    assert near.code == 0
    assert "Did you mean 'reviewer'? Then: whisperer stop reviwer, and whisperer start reviwer --template" in near.err
    assert whisperer("agents", "create", "reviwer2", "--config", "{}").err == ""
    assert whisperer("agents", "create", "tester-of-things").err == ""


def test_a_task_is_sent_awaited_and_shown_with_its_steps(whisperer: Whisperer, agent: str) -> None:
    assert whisperer.ok("tasks", "send", agent, "Count to three", "--wait") == "Done: Count to three\n"
    sent = whisperer.json("tasks", "send", agent, "Count on", "--id", "count-1", "--priority", "high")
    assert (sent["taskId"], sent["priority"]) == ("count-1", "high")
    assert whisperer.json("tasks", "wait", "count-1")["result"]["final"] == "Done: Count on"
    listed = whisperer.ok("tasks", "--agent", agent)
    assert listed.splitlines()[0].split() == [
        "TASK",
        "AGENT",
        "KIND",
        "STATE",
        "CREATED",
        "PROGRESS",
        "PROMPT",
        "RESULT",
    ]
    assert "count-1" in listed
    shown = whisperer.ok("tasks", "show", "count-1")
    assert "state:     completed\n" in shown
    assert "Done: Count on" in shown.splitlines()[-1]
    both = whisperer.json("tasks", "show", "count-1")
    assert [step["kind"] for step in both["steps"]] == ["model"]


def test_a_step_is_shown_with_its_failure_its_arguments_and_how_long_it_took(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("tasks", "send", agent, "look into the cellar", "--id", f"{agent}-look", "--wait")
    (line,) = [line for line in whisperer.ok("tasks", "show", f"{agent}-look").splitlines() if "tool read_file" in line]
    assert re.search(r" tool read_file +failed .* \d+\.\d{3} s ", line)
    assert '{"path":"the cellar/' in line.replace('": "', '":"')
    assert "/the end" not in line
    full = whisperer.ok("tasks", "show", f"{agent}-look", "--full")
    assert "/the end" in full
    assert "step 2  tool read_file  failed" in full


def test_a_prompt_can_come_from_the_standard_input(
    whisperer: Whisperer, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a file"))
    assert whisperer.ok("tasks", "send", agent, "-", "--wait") == "Done: from a file\n"


def test_a_task_that_fails_is_an_error_and_waits_among_the_dead(whisperer: Whisperer, agent: str) -> None:
    failed = whisperer("tasks", "send", agent, "Please fail", "--wait", "--id", "failing-1", "--json")
    assert failed.code == 1
    assert failed.json["state"] == "failed"
    assert failed.error["code"] == "task_ended"
    assert "failing-1" in failed.error["message"]
    assert "failing-1" in whisperer.ok("tasks", "dead")
    assert whisperer.ok("tasks", "dismiss", "failing-1") == f"Task failing-1 of {agent} was dismissed.\n"
    assert "failing-1" not in [each["taskId"] for each in whisperer.json("tasks", "dead")["tasks"]]
    assert "dismissed" in whisperer.ok("tasks", "show", "failing-1")
    assert "was dismissed already" in whisperer("tasks", "dismiss", "failing-1").err
    assert whisperer.json("tasks", "retry", "failing-1")["state"] == "queued"


def test_all_failed_tasks_are_retried_with_one_command(whisperer: Whisperer) -> None:
    agent = "fails-often"
    whisperer.ok("agents", "create", agent, "--config", '{"supervision": {"max_failures": 100}}')
    for number in range(3):
        whisperer("tasks", "send", agent, "Please fail", "--wait", "--id", f"failing-many-{number}")
    outcome = whisperer.json("tasks", "retry", "--all-failed", "--agent", agent)
    assert (outcome["retried"], outcome["notRetried"], outcome["reasons"]) == (3, 0, {})
    assert outcome["taskIds"] == [f"failing-many-{number}" for number in range(3)]
    for number in range(3):
        whisperer("tasks", "wait", f"failing-many-{number}")
    told = "3 failed tasks were retried.\n"
    assert whisperer.ok("tasks", "retry", "--all-failed", "--agent", agent) == told
    for arguments in ([], ["failing-many-0", "--all-failed"], ["failing-many-0", "--agent", agent]):
        refused = whisperer("tasks", "retry", *arguments)
        assert refused.code != 0
        assert "--all-failed" in refused.err


def test_a_task_is_cancelled_alone_or_with_its_tree(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("tasks", "send", agent, "Work eternally", "--id", "long-1")
    assert whisperer.ok("tasks", "cancel", "long-1") == f"Task long-1 of {agent} is cancelled.\n"
    assert whisperer("tasks", "cancel", "long-1").code == 1
    whisperer.ok("tasks", "send", agent, "Work eternally", "--id", "long-2")
    assert whisperer.ok("tasks", "cancel", "long-2", "--tree") == "Cancelled: long-2.\n"
    assert [task["taskId"] for task in whisperer.json("tasks", "tree", "long-2")] == ["long-2"]


def test_mail_is_read_and_answered(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("tasks", "send", agent, "write to me", "--wait")
    (mail,) = [each for each in whisperer.json("mail") if each["sender"] == agent]
    assert "Report [bold]now[/bold]" in whisperer.ok("mail")
    read = whisperer.ok("mail", "read", mail["mailId"])
    assert read.endswith("\n\nAll is \\x1b[31mwell\\x1b[0m.\n")
    assert whisperer.json("mail", "read", mail["mailId"])["state"] == "read"
    told = f"Mail thanks-1 was sent to {agent}.\n"
    assert whisperer.ok("mail", "reply", mail["mailId"], "Thanks", "--id", "thanks-1") == told
    assert whisperer.ok("mail", "reply", mail["mailId"], "Thanks", "--id", "thanks-1") == told
    assert f"was sent to {agent}." in whisperer.ok("mail", "reply", mail["mailId"], "Thanks")
    assert f"was sent to {agent}." in whisperer.ok("mail", "send", agent, "Hello", "How are you?")
    assert {each["subject"] for each in whisperer.json("mail", "--agent", agent)} >= {"Hello"}
    assert "is archived" in whisperer.ok("mail", "archive", mail["mailId"])


def test_the_life_of_an_agent_is_led_from_outside(whisperer: Whisperer, agent: str) -> None:
    assert whisperer.ok("pause", agent, "--reason", "lunch") == f"{agent} is paused (lunch).\n"
    refused = whisperer("pause", agent)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"whisperer: Cannot pause agent '{agent}': it is paused. Allowed now: resume, stop.\n"
    assert whisperer.ok("resume", agent) == f"{agent} is idle.\n"
    whisperer.ok("tasks", "send", agent, "Work eternally")
    assert whisperer.json("pause", agent, "--now")["state"] == "paused"
    assert whisperer.ok("stop", agent) == f"{agent} is stopped.\n"
    assert whisperer.json("start", agent)["started"] is True
    whisperer.ok("stop", agent)


def test_an_agent_sleeps_until_it_is_woken(whisperer: Whisperer, agent: str) -> None:
    asleep = whisperer.json("sleep", agent, "--for", "60", "--event", "data_ready", "--event", "alarm")
    assert (asleep["state"], asleep["wakeEvents"]) == ("sleeping", ["data_ready", "alarm"])
    assert "or for data_ready, alarm)" in whisperer.ok(
        "sleep", agent, "--for", "60", "--event", "data_ready", "--event", "alarm"
    )
    assert whisperer.ok("wake", agent, "--reason", "breakfast") == f"{agent} is active.\n"
    whisperer.ok("sleep", agent, "--until", "2040-01-01T00:00:00Z")
    whisperer.ok("sleep", agent, "--event", "dawn")
    told = whisperer.ok("events", "send", "dawn")
    assert told == "dawn was broadcast: 1 woken and 0 more told, each with a task.\n"
    broadcast = whisperer.json("events", "send", "mail_received", "--payload", '{"rows": [1]}')
    assert (broadcast["name"], broadcast["data"]) == ("mail_received", {"rows": [1]})
    assert "mail_received" in whisperer.ok("events")


def test_an_agent_at_work_is_told_to_sleep_afterwards(whisperer: Whisperer, agent: str) -> None:
    with whisperer.watching() as seen:
        whisperer.ok("tasks", "send", agent, "Work eternally", "--id", f"{agent}-work")
        while json.loads(seen.line_with("async.task.started"))["params"]["agentId"] != agent:
            pass
    told = whisperer.ok("sleep", agent, "--for", "60")
    assert told == f"{agent} is active. It sleeps as soon as its work has ended.\n"
    whisperer.ok("stop", agent)


def test_an_agent_that_a_limit_holds_is_resumed_with_a_word_about_it(whisperer: Whisperer) -> None:
    whisperer.ok("agents", "create", "thrifty", "--config", '{"limits": {"max_tokens_per_agent": 1}}')
    with whisperer.watching() as seen:
        assert whisperer("tasks", "send", "thrifty", "two steps").code == 0
        while json.loads(seen.line_with("agent.paused"))["params"]["agentId"] != "thrifty":
            pass
    told = whisperer.ok("resume", "thrifty")
    assert "It has reached max_tokens_per_agent and pauses again" in told
    assert told.endswith("whisperer limits set --agent thrifty max_tokens_per_agent=NUMBER\n")
    whisperer.ok("stop", "thrifty")


def test_a_conversation_is_looked_at_and_made_shorter(whisperer: Whisperer, agent: str) -> None:
    for number in range(4):
        prompt = f"Tell me about day {number}. " + "It was long. " * 300
        whisperer.ok("tasks", "send", agent, prompt, "--thread", "diary", "--wait")
    told = whisperer.ok("context", "show", agent)
    assert f"Thread diary of {agent}: about" in told
    assert "It was never made shorter." in told
    assert "tokens and has" in whisperer.ok("context", "compact", agent, "--thread", "diary")
    report = whisperer.json("context", "show", agent, "--thread", "diary")
    assert report["compaction"]["reason"] == "asked"
    assert report["compaction"]["first"].startswith("Tell me about day 0.")
    assert "How things stand now" in whisperer.ok("context", "show", agent)
    assert (
        "has no thread 'dairy'. Did you mean 'diary'?" in whisperer("context", "show", agent, "--thread", "dairy").err
    )
    assert "CACHED" in whisperer.ok("usage")
    assert agent in [each["agentId"] for each in whisperer.json("context")]


def test_schedules_are_made_paused_resumed_and_removed(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("schedule", "create", agent, "--every", "3600", "--prompt", "Look around", "--id", "round")
    whisperer.ok("schedule", "create", "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin", "--event", "morning")
    listed = whisperer.ok("schedule")
    assert "every 3600 s" in listed
    assert "0 9 * * 1-5 Europe/Berlin" in listed
    assert whisperer.ok("schedule", "pause", "round") == "Schedule round is paused.\n"
    assert [each["paused"] for each in whisperer.json("schedule", "--agent", agent)] == [True]
    assert whisperer.json("schedule", "resume", "round")["paused"] is False
    assert whisperer.ok("schedule", "delete", "round") == "Deleted schedule round.\n"
    wrong = whisperer("schedule", "create", agent, "--cron", "often", "--prompt", "x", "--json")
    assert (wrong.code, wrong.error["code"]) == (1, "invalid_schedule")


def test_a_chat_sends_line_by_line_and_shows_the_answers(
    whisperer: Whisperer, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n\nnow stream\n"))
    answers = f"{agent}: Done: Hello\n{agent}: one two three four five six seven\n"
    assert whisperer.ok("chat", agent) == answers
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello again"))
    lines = [json.loads(line) for line in whisperer.ok("chat", agent, "--json").splitlines()]
    assert [(line["sender"], line["text"]) for line in lines] == [("user", "Hello again"), (agent, "Done: Hello again")]
    assert f"chat~{agent}" in whisperer.ok("rooms")


def test_a_chat_in_another_process_reads_a_pipe_and_ends_with_it(whisperer: Whisperer, agent: str) -> None:
    with running("--data", str(whisperer.data), "chat", agent, folder=whisperer.data) as chat:
        assert chat.process.stdin is not None
        for text in ("First", "Second"):
            chat.process.stdin.write(f"{text}\n")
            chat.process.stdin.flush()
            assert chat.line() == f"{agent}: Done: {text}\n"
        assert chat.ended() == (0, "", "")


def test_a_group_is_opened_and_talked_with(whisperer: Whisperer, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whisperer.ok("agents", "create", "guest")
    monkeypatch.setattr(sys, "stdin", io.StringIO("greet the room\n"))
    said = whisperer.ok("chat", agent, "guest").splitlines()
    assert sorted(said) == sorted([f"{agent}: Hello from the room", "guest: Hello from the room"])
    whisperer.ok("rooms", "create", agent, "guest", "--id", "hall", "--title", "The hall")
    posted = whisperer.json("rooms", "post", "hall", "@guest greet the room")
    assert list(posted["asked"]) == ["guest"]
    whisperer.ok("tasks", "wait", posted["asked"]["guest"])
    assert [each["sender"] for each in whisperer.json("rooms", "show", "hall")] == ["user", "guest"]
    assert "guest: Hello from the room" in whisperer.ok("rooms", "show", "hall", "--after", "1")
    monkeypatch.setattr(sys, "stdin", io.StringIO("@guest greet the room\n"))
    assert whisperer.ok("chat", "--room", "hall") == "guest: Hello from the room\n"
    for wrong in (["chat"], ["chat", "guest", "--room", "hall"]):
        refused = whisperer(*wrong)
        assert (refused.code, "Name either the agents to talk with, or" in refused.err) == (2, True)
    assert [each["number"] for each in whisperer.json("rooms", "show", "hall", "-n", "1")] == [4]
    assert whisperer.ok("rooms", "remove", "hall", "guest") == f"Members of room hall: {agent}.\n"


class Typed(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_line_that_is_refused_does_not_end_a_chat_in_a_terminal(
    whisperer: Whisperer, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whisperer.ok("agents", "create", "other")
    monkeypatch.setattr(Output, "is_terminal", True)
    monkeypatch.setattr(sys, "stdin", Typed(f"@nobody hi\n@{agent} greet the room\n"))
    said = whisperer("chat", agent, "other")
    assert (said.code, said.out) == (0, f"> {agent}: Hello from the room\n> \n")
    assert "nobody" in said.err
    monkeypatch.undo()
    monkeypatch.setattr(sys, "stdin", io.StringIO("@nobody hi\n"))
    assert whisperer("chat", agent, "other").code == 1


def test_several_agents_are_talked_with_in_the_newest_group_of_them(
    whisperer: Whisperer, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rooms() -> list[str]:
        return [each["roomId"] for each in whisperer.json("rooms") if agent in each["members"]]

    def chat(*arguments: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("greet the room\n"))
        ran = whisperer("chat", *arguments)
        assert (ran.code, ran.out.count("Hello from the room")) == (0, 2), ran
        return ran.err

    whisperer.ok("agents", "create", "partner", "--config", '{"aliases": ["pard"]}')
    whisperer.ok("agents", "create", "third")
    whisperer.ok("rooms", "create", agent, "partner", "third")
    assert chat(agent, "partner") == ""
    (_, first) = rooms()
    assert chat("pard", agent) == f"Continuing in room {first}; --new opens another.\n"
    assert chat(agent, "partner", "--new") == ""
    (_, _, second) = rooms()
    assert second in chat(agent, "partner")
    assert "several agents" in whisperer("chat", agent, "--new").err


def test_watch_shows_the_fleet_once(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("tasks", "send", agent, "take the printer", "--id", "printing")
    with running("--data", str(whisperer.data), "watch", "--after", "0", folder=whisperer.data) as watching:
        watching.line_with(f"{agent:<10} used acquire_lock")
    (line,) = [line for line in whisperer.ok("watch", "--once").splitlines() if line.startswith(agent)]
    assert line.split()[1:4] == ["active", "0", "user_prompt"]
    (lock,) = [line for line in whisperer.ok("lock").splitlines() if line.startswith("printer")]
    assert lock.split()[:3] == ["printer", agent, "printing"]
    whisperer.ok("stop", agent)


def test_watch_tells_each_notification_as_a_line_of_json_until_ctrl_c(whisperer: Whisperer, agent: str) -> None:
    with whisperer.watching() as watching:
        first = json.loads(watching.line())
        assert (first["seq"], first["sessionId"]) == (1, "default")
        whisperer.ok("events", "send", "seen_by_the_watcher")
        assert json.loads(watching.line_with("seen_by_the_watcher"))["name"] == "event.broadcast"
        watching.signal(signal.SIGINT)
        assert watching.ended()[::2] == (130, "")


def test_the_log_of_an_agent_is_shown_and_followed(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("tasks", "send", agent, "Count", "--wait", "--id", "logged")
    with running("logs", agent, "-f", "--data", str(whisperer.data), folder=whisperer.data) as following:
        line = following.line_with("async.task.completed")
        assert line.split()[1:3] == ["info", "async.task.completed"]
        whisperer.ok("tasks", "send", agent, "Count on", "--id", "logged-later")
        following.line_with('"taskId": "logged-later"')
    shown = whisperer.ok("logs", agent, "-n", "1").splitlines()
    assert len(shown) == 1
    entries = [json.loads(line) for line in whisperer.ok("logs", agent, "--json").splitlines()]
    assert {entry["agent"] for entry in entries} == {agent}


def test_usage_is_counted_for_each_agent_and_in_all(whisperer: Whisperer, agent: str) -> None:
    whisperer.ok("tasks", "send", agent, "Count", "--wait")
    report = whisperer.json("usage")
    assert report["agents"][agent]["tasks"] == 1
    assert report["total"]["usage"]["inputTokens"] >= report["agents"][agent]["usage"]["inputTokens"] > 0
    lines = whisperer.ok("usage").splitlines()
    assert lines[-1].startswith("TOTAL ")
    titles = re.split(" {2,}", lines[0])
    assert len(titles) == len(set(titles))


def test_the_usage_of_a_task_is_counted_apart(whisperer: Whisperer, agent: str) -> None:
    task = whisperer.json("tasks", "send", agent, "Count", "--wait")
    whisperer.ok("tasks", "send", agent, "Count again", "--wait")
    assert whisperer.json("usage", "--task", task["taskId"])["total"]["usage"]["modelCalls"] == 1
    assert whisperer.json("usage")["agents"][agent]["usage"]["modelCalls"] >= 2
    assert whisperer("usage", "--task", "nonsense", "--json").error["code"] == "unknown_task"


def test_a_session_has_its_own_agents_and_is_deleted_after_a_question(
    whisperer: Whisperer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Use it with --session second." in whisperer.ok("sessions", "create", "second", "--title", "Two")
    refused = whisperer("sessions", "create", "../x")
    assert refused.code == 1
    assert "'../x' is a path, and cannot be the id of a session" in refused.err
    assert whisperer.json("agents", "--session", "second") == []
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    kept = whisperer("sessions", "delete", "second")
    assert (kept.code, kept.out) == (1, "")
    assert "Nothing was done." in kept.err
    assert "second " in whisperer.ok("sessions")
    unasked = whisperer("sessions", "delete", "second", "--json")
    assert (unasked.code, unasked.error["code"]) == (2, "usage")
    assert whisperer.ok("sessions", "delete", "second", "--yes") == "Deleted session second.\n"
    gone = whisperer("agents", "--session", "second")
    assert (gone.code, "There is no session 'second'." in gone.err) == (1, True)


def test_what_a_model_says_cannot_steer_the_terminal(whisperer: Whisperer, agent: str) -> None:
    plain = "[red]red[/red] \\x1b[2J\\x9b5m\\u202e and [link=x]y"
    assert whisperer.ok("tasks", "send", agent, "say nasty things", "--wait", "--id", "nasty") == f"{plain}\n"
    assert plain in whisperer.ok("tasks")
    told = whisperer.ok("tasks", "show", "nasty", "--json")
    assert told.isascii()
    assert json.loads(told)["task"]["result"]["final"] == "[red]red[/red] \x1b[2J\x9b5m\u202e and [link=x]y"


def test_names_of_agents_are_completed(whisperer: Whisperer, agent: str) -> None:
    completed = complete(f"whisperer --data {whisperer.data} pause {agent[:4]}")
    assert agent in completed.split()


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("run par", "parallel-report"),
        ("run tes", "tessa"),
        ("agents create x --template cod", "coder"),
        ("templates show cod", "coder"),
        ("agents --session def", "default"),
    ],
)
def test_names_of_other_things_are_completed(whisperer: Whisperer, line: str, word: str) -> None:
    assert word in complete(f"whisperer --data {whisperer.data} {line}").split()


@pytest.mark.parametrize(
    ("arguments", "code", "stable", "words"),
    [
        (["agents", "show", "nobody"], 1, "unknown_agent", "nobody"),
        (["tasks", "send", "nobody", "x"], 1, "unknown_agent", "nobody"),
        (["tasks", "show", "nix"], 1, "unknown_task", "nix"),
        (["mail", "read", "nix"], 1, "unknown_mail", "Use an id that the mailbox shows."),
        (["approvals", "show", "nix"], 1, "unknown_approval", "Use an id that the list of approvals shows."),
        (["agents", "--session", "nix"], 1, "unknown_session", "whisperer sessions create"),
        (["agents", "--token", "wrong"], 1, "unauthorized", "token"),
        (["agents", "--url", "http://127.0.0.1:1"], 1, "connection_lost", "whisperer serve"),
        (["agents", "--url", "nonsense"], 1, "invalid_settings", "an address such as"),
        (["agents", "create", "x", "--config", "{"], 2, "usage", "--config takes JSON"),
        (["agents", "create", "x", "--config", "[]"], 2, "usage", "a JSON object"),
        (["agents", "create", "x", "--config", '{"promt": ""}'], 1, "invalid_definition", "promt"),
        (["events", "send", "x", "--payload", "folder"], 2, "usage", "--payload takes JSON"),
        (["tasks", "send", "ann", "x", "--priority", "huge"], 2, "usage", "urgent"),
        (["tasks", "sned", "ann", "x"], 2, "usage", "Did you mean 'send'?"),
        (["agnets"], 2, "usage", "Did you mean 'agents'"),
        (["tasks", "show"], 2, "usage", "Missing argument 'TASK'"),
        (["serve", "--prot", "1"], 2, "usage", "--port"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(
    whisperer: Whisperer, arguments: list[str], code: int, stable: str, words: str
) -> None:
    told = whisperer(*arguments)
    assert (told.code, told.out) == (code, "")
    (line,) = told.err.splitlines()
    assert line.startswith("whisperer: ")
    assert words in line
    in_json = whisperer(*arguments, "--json")
    assert (in_json.code, in_json.out, in_json.error["code"]) == (code, "", stable)
    assert words in in_json.error["message"]


def test_the_server_can_be_named_by_its_address(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = json.loads((data / "server.json").read_text(encoding="utf-8"))
    elsewhere = Whisperer(tmp_path, capsys)
    elsewhere.ok("usage", "--url", address["url"], "--token", address["token"])
    elsewhere.ok("usage", "--url", f"{address['url']}/?token={address['token']}")
    refused = elsewhere("usage", "--url", address["url"])
    assert (refused.code, address["token"] in refused.err) == (1, False)


def test_options_before_and_after_the_command_mean_the_same(whisperer: Whisperer) -> None:
    before = whisperer("--json", "--session", "nix", "agents")
    after = whisperer("agents", "--json", "--session", "nix")
    assert (before.code, before.error) == (after.code, after.error)
    assert before.error["code"] == "unknown_session"


def test_options_count_before_list_and_after_it_and_nowhere_else(whisperer: Whisperer, agent: str) -> None:
    for _ in range(3):
        whisperer.ok("tasks", "send", agent, "Count", "--wait")
    assert len(whisperer.json("tasks", "-n", "1", "list")) == 1
    assert len(whisperer.json("tasks", "-n", "1", "--agent", agent, "list", "-n", "2")) == 2
    assert len(whisperer.json("tasks", "--agent", agent, "list")) == 3
    refused = whisperer("tasks", "-n", "1", "dead")
    assert (refused.code, refused.out) == (2, "")
    assert "--limit is not for 'dead'. Give its own options after it." in refused.err


def test_a_watch_ends_when_its_reader_has_gone_though_nothing_more_happens(data: Path, agent: str) -> None:
    reading, writing = os.pipe()
    command = [*WHISPERER, "watch", "--json", "--after", "0", "--data", str(data)]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True) as watching:
        os.close(writing)
        assert os.read(reading, 1)
        os.close(reading)
        try:
            assert watching.communicate(timeout=PATIENCE_SECONDS)[1] == ""
            assert watching.returncode == 1
        finally:
            watching.kill()
