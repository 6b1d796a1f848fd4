"""What an invariant is given: all that a session tells of one universe, and what was seen from outside of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from ai_whisperer.choices import nearest
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import TOOL, StepRecord, StepState, TaskRecord, TaskState


class UniverseCall(Struct, frozen=True, kw_only=True):
    """A tool call as the log of the session has it.

    `state` is `done`, `failed`, `unknown` (it was cut off, and may have had its effect) or `started`. `result` is what
    the model was shown, None if the call has not ended. Arguments that are not a JSON object are `{}`.
    """

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    state: StepState
    result: str | None
    is_error: bool
    task_id: str
    step_id: str
    started_at: float
    finished_at: float | None


class UniverseRun(Struct, frozen=True, kw_only=True):
    """The function of a tool as it really ran, seen from outside: also if the process died before it could say so.

    `ended_at` is None if the process died, or the call was cancelled, while the function ran.
    """

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    task_id: str
    step_id: str
    began_at: float
    ended_at: float | None = None
    may_repeat: bool = False


class Request(Struct, frozen=True, kw_only=True):
    """A request that reached a model."""

    agent: str
    step_id: str
    at: float


class ToolFailure(Struct, frozen=True, kw_only=True):
    """What a tool raised, in words. One that is `meant` is an error made for models to read, such as `ToolError`."""

    told: str
    meant: bool


class Seen(Struct, kw_only=True):
    """What was seen from outside of the session, over all deaths of its process."""

    runs: list[UniverseRun] = []
    requests: list[Request] = []
    accepted_tasks: list[str] = []
    accepted_mails: list[str] = []
    unmet: list[str] = []
    broken: list[str] = []
    tool_failures: list[ToolFailure] = []


class Waiting(Struct, frozen=True, kw_only=True):
    """Why an agent does nothing at the end: what its loops wait for, or what keeps it from working."""

    agent: str
    reasons: tuple[str, ...]


class Absent(Struct, frozen=True, kw_only=True):
    """An agent or a tool that an invariant asks for, and that a universe does not have."""

    kind: Literal["agent", "tool"]
    name: str


class Log:
    """The log of one universe, from its first entry to the rest after the last one.

    Times are seconds since the universe began. `entries` are the numbered notifications, `tasks` and `mails` all there
    are, in the order in which they arrived.
    """

    def __init__(
        self,
        *,
        entries: Sequence[Notification],
        tasks: Sequence[TaskRecord],
        steps: Mapping[str, Sequence[StepRecord]],
        mails: Sequence[MailRecord],
        began_at: float = 0.0,
        seen: Seen | None = None,
        waiting: Sequence[Waiting] = (),
        tools: Collection[str] = (),
    ) -> None:
        self.entries = entries
        self._tasks = sorted(tasks, key=lambda task: task.arrival)
        self._mails = sorted(mails, key=lambda mail: mail.arrival)
        self._steps = steps
        self._began_at = began_at
        self.seen = seen if seen is not None else Seen()
        self.waiting = {each.agent: each.reasons for each in waiting}
        self._tools = tools
        self.absent: set[Absent] = set()
        """What was asked for and is not there: as a rule what is said of it holds whatever happens."""

    def named(self, *names: str) -> list[Notification]:
        """The entries with one of these names, such as `async.task.completed`."""
        return [each for each in self.entries if each.name in names]

    def time_of(self, entry: Notification) -> float:
        return entry.at - self._began_at

    def calls(self, tool: str | None = None, /, *, agent: str | None = None, **arguments: Any) -> list[UniverseCall]:
        """The tool calls that the session knows of; those with these arguments, among others, if some are given."""
        self._look_for(tool=tool, agent=agent)
        return [
            each
            for each in self._calls
            if tool in (None, each.tool) and agent in (None, each.agent) and _has(each.arguments, arguments)
        ]

    def runs(self, tool: str | None = None, /, *, agent: str | None = None, **arguments: Any) -> list[UniverseRun]:
        """The times that the function of a tool really ran, seen from outside. Tools of the runtime have none."""
        self._look_for(tool=tool, agent=agent)
        return [
            each
            for each in self.seen.runs
            if tool in (None, each.tool) and agent in (None, each.agent) and _has(each.arguments, arguments)
        ]

    def mails(
        self, *, sender: str | None = None, recipient: str | None = None, subject: str | None = None
    ) -> list[MailRecord]:
        """The mails between agents, and those to and from people, who are `user`."""
        return [
            each
            for each in self._mails
            if sender in (None, each.sender)
            and recipient in (None, each.recipient)
            and (subject is None or subject in each.subject)
        ]

    def tasks(self, agent: str | None = None, /, *, state: TaskState | str | None = None) -> list[TaskRecord]:
        """The tasks; with a state, those that ended, or are, in it. Raises `ValueError` if there is no such state."""
        if state is not None and state not in tuple(TaskState):
            near = nearest(str(state), list(TaskState))
            meant = "" if near is None else f" Did you mean '{near}'?"
            raise ValueError(f"'{state}' is no state of a task.{meant} There are: {', '.join(TaskState)}.")
        self._look_for(agent=agent)
        return [each for each in self._tasks if agent in (None, each.agent_id) and state in (None, each.state)]

    def steps(self, task: TaskRecord | str, /) -> Sequence[StepRecord]:
        return self._steps.get(task if isinstance(task, str) else task.id, ())

    def answers(self, agent: str, /) -> list[str]:
        """The final answers of the agent, in the order in which its tasks arrived."""
        return [each.result.final for each in self.tasks(agent) if each.result is not None]

    def states(self, agent: str, /) -> list[str]:
        """The states that the agent was in, one after the other: `idle`, `active`, `sleeping` …"""
        self._look_for(agent=agent)
        changes = [each for each in self.named("agent.state_changed") if each.params["agentId"] == agent]
        return [str(changes[0].params["from"]), *(str(each.params["to"]) for each in changes)] if changes else ["idle"]

    def _look_for(self, *, tool: str | None = None, agent: str | None = None) -> None:
        if agent is not None and agent not in self.waiting:
            self.absent.add(Absent(kind="agent", name=agent))
        if tool is not None and tool not in self._tools and not any(each.tool == tool for each in self._calls):
            self.absent.add(Absent(kind="tool", name=tool))

    @cached_property
    def _calls(self) -> list[UniverseCall]:
        found = [
            _call_of(task, step, began_at=self._began_at)
            for task in self._tasks
            for step in self.steps(task)
            if step.kind is TOOL and step.call is not None
        ]
        return sorted(found, key=lambda call: call.started_at)


def parsed(arguments: str) -> Mapping[str, Any]:
    """The arguments of a call, as a model wrote them."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _call_of(task: TaskRecord, step: StepRecord, *, began_at: float) -> UniverseCall:
    call, result = step.call, step.result
    return UniverseCall(
        agent=task.agent_id,
        tool="" if call is None else call.name,
        arguments={} if call is None else parsed(call.arguments),
        state=step.state,
        result=None if result is None else result.content,
        is_error=result is not None and result.is_error,
        task_id=task.id,
        step_id=step.id,
        started_at=step.started_at - began_at,
        finished_at=None if step.finished_at is None else step.finished_at - began_at,
    )


def _has(arguments: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in arguments and arguments[name] == value for name, value in wanted.items())


def listed(names: Iterable[str], *, most: int = 5) -> str:
    """Some of the names, for a message."""
    some = list(names)
    more = f" and {len(some) - most} more" if len(some) > most else ""
    return ", ".join(some[:most]) + more
