"""What tests look at: mail, calls, answers, tasks, the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.mail import USER, MailRecord
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskRecord
from ai_whisperer.errors import WhispererError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.testing.process import SimulatedProcess
from ai_whisperer.testing.said import Said
from ai_whisperer.testing.watched_tools import Run, WatchedTools, arguments_of
from ai_whisperer.testing.words import Words

__tracebackhide__ = True  # pytest shows the line of the test instead

_T = TypeVar("_T")
_MOST = 1_000_000


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the journal has it. One that was cut off by a kill is `unknown`: it may have had its effect."""

    agent: str
    tool: str
    arguments: dict[str, Any]
    result: str
    failed: bool
    state: StepState
    task_id: str
    step_id: str


class ReadableProcess(SimulatedProcess):
    """A process of which a test can read all that happened, in this life and in those before."""

    _words: Words
    _watched: WatchedTools

    def mail(self, owner: str = USER, *, sender: str | None = None) -> list[MailRecord]:
        """What is in a mailbox, oldest first."""
        found = self.run(self.session.mailbox(owner, limit=_MOST))
        return [mail for mail in reversed(found) if sender in (None, mail.sender)]

    def calls(self, tool: str | None = None, *, agent: str | None = None) -> list[Call]:
        """The tool calls in the journal, in the order in which they began."""
        return [
            each for each in self.run(_calls(self.session)) if tool in (None, each.tool) and agent in (None, each.agent)
        ]

    def runs(self, tool: str | None = None) -> list[Run]:
        """How often functions of the test's own really ran, over all lives of the process."""
        return [each for each in self._watched.runs if tool in (None, each.tool)]

    def requests(self, agent: str | None = None) -> list[ModelRequest]:
        """What models were asked, over all lives of the process."""
        return [each for each in self._words.requests if agent in (None, each.agent_id)]

    def answers(self, agent: str) -> list[str]:
        """What an agent has answered to its tasks, oldest first."""
        return [task.result.final for task in self.tasks(agent) if task.result is not None]

    def tasks(self, agent: str | None = None) -> list[TaskRecord]:
        """The tasks of an agent, or all, in the order in which they came."""
        return sorted(self.run(self.session.list_tasks(agent, limit=_MOST)), key=lambda task: task.arrival)

    def log(self, name: str | None = None) -> list[Notification]:
        """What the numbered log of the session tells, of this name or all."""
        found = self.run(self.session.notifications(limit=_MOST))
        return [note for note in found if name in (None, note.name)]

    def last_notes(self) -> list[Notification]:
        """The log as it is now, also of a team that is killed; empty if it cannot be read. No fault is raised."""
        if not self._is_down and not self.is_alive:
            return []
        try:
            if self._is_down:
                self.restart()
            return super().run(self.session.notifications(limit=_MOST))
        except (AssertionError, WhispererError):
            return []

    def last_calls(self) -> list[Call]:
        """The tool calls in the journal, also of a team that is killed; none if it cannot be read."""
        try:
            return super().run(_calls(self.session)) if self.is_alive else []
        except (AssertionError, WhispererError):
            return []

    @property
    def left_words(self) -> list[Said]:
        """Of what `says` has said, the answers that nobody has asked for yet."""
        return self._words.left

    def messages(self, room: str) -> list[MessageRecord]:
        """What was said in a room."""
        return self.run(self.session.room_messages(room, limit=_MOST))

    def status(self, agent: str) -> AgentStatus:
        """What an agent does."""
        return self.run(_read(lambda: self.session.get_agent_status(agent)))

    def approvals(self, agent: str | None = None) -> list[ApprovalRecord]:
        """The calls that wait for a person, oldest first."""
        found = self.run(self.session.list_approvals(limit=_MOST))
        return sorted((each for each in found if agent in (None, each.agent_id)), key=lambda each: each.requested_at)

    def questions(self, agent: str | None = None) -> list[QuestionRecord]:
        """The questions that wait for a person, oldest first."""
        found = self.run(self.session.list_questions(limit=_MOST))
        return sorted((each for each in found if agent in (None, each.agent_id)), key=lambda each: each.asked_at)


async def _read(read: Callable[[], _T]) -> _T:
    return read()


async def _calls(session: AsyncAgentSessionManager) -> list[Call]:
    found = [
        (step.started_at, task.arrival, step.number, _call_of(task, step))
        for task in await session.list_tasks(limit=_MOST)
        for step in await session.list_steps(task)
        if step.kind is StepKind.TOOL and step.call is not None
    ]
    return [each[-1] for each in sorted(found, key=lambda each: each[:3])]


def _call_of(task: TaskRecord, step: StepRecord) -> Call:
    assert step.call is not None  # noqa: S101 - it was looked at
    return Call(
        agent=task.agent_id,
        tool=step.call.name,
        arguments=arguments_of(step.call.arguments),
        result="" if step.result is None else step.result.content,
        failed=step.result is not None and step.result.is_error,
        state=step.state,
        task_id=task.id,
        step_id=step.id,
    )
