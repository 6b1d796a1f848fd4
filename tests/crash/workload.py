"""What a session is given to do while its process is killed, and what must come of it.

A prompt carries its plan, so that the witness answers as a model from the conversation alone: `plan: look_up:a +
charge:b; send_mail:bob` is one answer with two tool calls, then one with a mail, then the final answer.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

USER = "user"
REPEATABLE = frozenset({"look_up", "linger"})
"""The tools whose effects may be repeated."""
ONE_SHOT = frozenset({"charge"})
"""The tools whose effects may not."""

WAITING_TOOLS = frozenset({"send_mail_with_switch", "acquire_lock"})
"""The tools whose calls may wait; other coordination tools are done as soon as they are begun."""

_PLAN = re.compile(r"^plan: (.+)$", re.MULTILINE)
_MAIL_ID = re.compile(r"^Mail id: (\S+)$", re.MULTILINE)


class PlannedCall(NamedTuple):
    tool: str
    argument: str


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the API. `id` is what the caller gives; a repeated call has the same."""

    kind: str
    id: str
    agent: str
    text: str = ""
    thread: str | None = None
    config: Mapping[str, Any] = {}


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Operations in stages: those of a stage are called at the same time, and between stages the session settles."""

    stages: tuple[tuple[Operation, ...], ...]

    @property
    def operations(self) -> list[Operation]:
        return [operation for stage in self.stages for operation in stage]


class Mail(NamedTuple):
    sender: str
    recipient: str
    is_reply: bool
    is_awaited: bool = False


class Expectation(NamedTuple):
    """What must have happened in the end, each exactly so many times."""

    tasks: Counter[tuple[str, str]]
    mails: Counter[Mail]
    effects: dict[str, str]
    """The tool of each label."""
    locks: Counter[str]
    """How often each lock is taken."""


def plan_in(prompt: str) -> list[list[PlannedCall]]:
    """The answers that the prompt asks for, each a list of tool calls."""
    found = _PLAN.search(prompt)
    if found is None:
        return []
    return [[PlannedCall(*call.strip().split(":")) for call in answer.split("+")] for answer in found[1].split(";")]


def arguments_of(call: PlannedCall, prompt: str) -> dict[str, Any]:
    """The arguments that the model writes for a planned call."""
    match call.tool:
        case "send_mail":
            return {"to_agent": call.argument, "subject": "A question", "body": "plan: reply_mail:it"}
        case "reply_mail":
            found = _MAIL_ID.search(prompt)
            return {"mail_id": found[1] if found else "", "body": "Thank you."}
        case "send_mail_with_switch":
            return {"to_agent": call.argument, "subject": "An urgent question", "body": "Is all of it done?"}
        case "delegate_task":
            return {"to_agent": call.argument, "task": "Do a part of it."}
        case "acquire_lock" | "release_lock":
            return {"name": call.argument}
        case "report_progress":
            return {"percent": float(call.argument), "note": "under way"}
        case _:
            return {"label": call.argument}


def expected_of(workload: Workload) -> Expectation:
    """Play the plans through on paper."""
    expected = Expectation(tasks=Counter(), mails=Counter(), effects={}, locks=Counter())
    to_do: deque[tuple[str, str, str]] = deque()
    for operation in workload.operations:
        if operation.kind == "task":
            expected.tasks[operation.agent, "user_prompt"] += 1
            to_do.append((operation.agent, USER, operation.text))
        elif operation.kind == "mail":
            _mail(expected, to_do, Mail(USER, operation.agent, is_reply=False), operation.text)
        elif operation.kind == "sleep":
            expected.tasks[operation.agent, "wake_up"] += 1
    while to_do:
        agent, asker, prompt = to_do.popleft()
        for call in (call for answer in plan_in(prompt) for call in answer):
            _call(expected, to_do, call, agent=agent, asker=asker)
    return expected


def _call(
    expected: Expectation, to_do: deque[tuple[str, str, str]], call: PlannedCall, *, agent: str, asker: str
) -> None:
    match call.tool:
        case "send_mail":
            _mail(expected, to_do, Mail(agent, call.argument, is_reply=False), "plan: reply_mail:it")
        case "reply_mail":
            _mail(expected, to_do, Mail(agent, asker, is_reply=True), "Thank you.")
        case "send_mail_with_switch":
            _mail(expected, to_do, Mail(agent, call.argument, is_reply=False, is_awaited=True), "")
            expected.mails[Mail(call.argument, agent, is_reply=True)] += 1
        case "delegate_task":
            expected.tasks[call.argument, "delegated_task"] += 1
            _mail(expected, to_do, Mail(call.argument, agent, is_reply=False), "")
        case "acquire_lock":
            expected.locks[call.argument] += 1
        case tool if tool in REPEATABLE | ONE_SHOT:
            expected.effects[call.argument] = tool


def _mail(expected: Expectation, to_do: deque[tuple[str, str, str]], mail: Mail, body: str) -> None:
    expected.mails[mail] += 1
    if mail.recipient != USER:
        expected.tasks[mail.recipient, "mailbox_message"] += 1
        to_do.append((mail.recipient, mail.sender, body))


def team(run: str) -> Workload:
    """Four agents that call tools side by side, mail, ask and lock out each other, sleep, are paused and resumed."""
    return Workload(
        stages=(
            (_create("ada", limits={"max_concurrent_tasks": 2}), _create("bob"), _create("cyd"), _create("dot")),
            (
                Operation(kind="pause", id="pause", agent="cyd"),
                Operation(kind="sleep", id="sleep", agent="dot"),
                _task(
                    run,
                    "ada",
                    1,
                    "look_up:l1 + charge:c1 + acquire_lock:door; send_mail:bob; release_lock:door + report_progress:50",
                ),
                _task(
                    run,
                    "ada",
                    2,
                    "charge:c2 + acquire_lock:door; look_up:l3 + send_mail_with_switch:bob",
                    trouble="stumble",
                ),
                _task(run, "cyd", 1, "charge:c3 + delegate_task:dot; send_mail:ada + report_progress:10"),
                _mail_to(run, "bob", "look_up:l4 + charge:c4 + reply_mail:it"),
                _mail_to(run, "dot", "reply_mail:it"),
            ),
            (Operation(kind="resume", id="resume", agent="cyd"),),
        )
    )


def poisoned(run: str) -> Workload:
    """One agent has a task that kills the process, others are in the middle of something each time."""
    return Workload(
        stages=(
            (_create("max"), _create("ada"), _create("bob"), _create("cyd")),
            (
                _task(run, "max", 1, "poison:p1"),
                _task(run, "ada", 1, "linger:i1; send_mail:bob"),
                _task(run, "bob", 1, "charge:i2; linger:i3"),
                _mail_to(run, "cyd", "look_up:i4 + linger:i5; reply_mail:it"),
            ),
        )
    )


def poisoned_often(run: str) -> Workload:
    """One agent has a queue of tasks each of which kills the process, another is in the middle of a long step."""
    return Workload(
        stages=(
            (_create("max"), _create("ada")),
            (
                *(_task(run, "max", number, f"poison:p{number}") for number in (1, 2, 3)),
                _task(run, "ada", 1, "linger:i1"),
            ),
        )
    )


def crowd(run: str) -> Workload:
    """Thirty agents in the middle of something at the same time."""
    agents = [f"c{number}" for number in range(30)]
    return Workload(
        stages=(
            tuple(_create(agent) for agent in agents),
            tuple(_task(run, agent, 1, f"linger:l{agent}; look_up:u{agent} + charge:o{agent}") for agent in agents),
        )
    )


def stubborn(run: str) -> Workload:
    """A tool that may not be repeated kills the process, and the model calls it again whenever it is told so."""
    return Workload(stages=((_create("max"),), (_task(run, "max", 1, "; ".join(["detonate:p1"] * 8)),)))


def long_talk(run: str) -> Workload:
    """One agent whose model can take little is asked again and again in the same conversation."""
    definition = {"tools": ["look_up", "charge"], "context": {"window": 1_600}}
    questions = [
        _task(run, "eve", number, f"look_up:l{number}; charge:c{number}", trouble="as I said " * 160, thread="talk")
        for number in range(1, 5)
    ]
    return Workload(stages=((_create("eve", **definition),), *((question,) for question in questions)))


WORKLOADS = {
    "team": team,
    "poisoned": poisoned,
    "poisoned_often": poisoned_often,
    "stubborn": stubborn,
    "crowd": crowd,
    "long_talk": long_talk,
}


def _create(agent: str, **config: Any) -> Operation:
    return Operation(kind="create", id=f"create-{agent}", agent=agent, config=config)


def _task(run: str, agent: str, number: int, plan: str, *, trouble: str = "", thread: str | None = None) -> Operation:
    text = f"{trouble}\nplan: {plan}"
    return Operation(kind="task", id=f"{run}-{agent}-{number}", agent=agent, text=text, thread=thread)


def _mail_to(run: str, agent: str, plan: str) -> Operation:
    return Operation(kind="mail", id=f"{run}-mail-{agent}", agent=agent, text=f"plan: {plan}")
