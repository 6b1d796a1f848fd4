"""Calls of built-in tools that a test has scripted and that are refused at once, such as a mail to nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.domain.note import Note
from ai_whisperer.domain.notification import Notification
from ai_whisperer.domain.tasks import StepKind, StepRecord
from ai_whisperer.testing.hearing import params_of
from ai_whisperer.testing.watched_tools import ToolFailedError


class FailedCalls:
    """Takes the log of a session, and tells which scripted calls were refused as soon as they were made.

    What a person refuses, or what fails after a wait, is no mistake of the script: a test may well want that.
    """

    def __init__(self, *, said: Callable[[str], str | None], may_fail: Callable[[str], bool]) -> None:
        """`said` tells where the test has said what a model request, by its step, was answered; None if it has not."""
        self._said = said
        self._may_fail = may_fail
        self._fed = 0
        self._failed: list[tuple[str, str]] = []

    def feed(self, notes: Iterable[Note | Notification]) -> None:
        """Take what was told of the session; what was taken before is left out."""
        for note in notes:
            if note.seq <= self._fed:
                continue
            self._fed = note.seq
            if note.name == "step.finished":
                params = params_of(note)
                if params.get("isError") and params.get("tool") and not self._may_fail(str(params["tool"])):
                    self._failed.append((str(params["taskId"]), str(params["stepId"])))

    @property
    def may_have_some(self) -> bool:
        return bool(self._failed)

    async def errors(self, session: AsyncAgentSessionManager, *, own: Iterable[str]) -> list[Exception]:
        """What is to be told to the test, once. The `own` tools of the test tell themselves what they raise."""
        failed, self._failed = self._failed, []
        known = set(own)
        found: list[Exception] = []
        for task_id, step_id in failed:
            task = await session.get_task(task_id)
            asked: str | None = None
            for step in await session.list_steps(task):
                if step.kind is StepKind.MODEL:
                    asked = step.id
                elif step.id == step_id and _was_refused_at_once(step, known):
                    place = None if asked is None else self._said(asked)
                    if place is not None:
                        found.append(_error(task.agent_id, step, place))
        return found


def _was_refused_at_once(step: StepRecord, own: set[str]) -> bool:
    return step.call is not None and step.call.name not in own and step.started_at == step.finished_at


def _error(agent: str, step: StepRecord, place: str) -> ToolFailedError:
    tool = "" if step.call is None else step.call.name
    why = "" if step.result is None else step.result.content
    return ToolFailedError(
        f"{agent}'s call of {tool} failed ({place}): {why} Its model was told. If the test wants that, say so before: "
        f"team.lets_fail({tool!r})."
    )
