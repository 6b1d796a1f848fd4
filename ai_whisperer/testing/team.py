"""A team for tests: agents whose models say what the test says, in virtual time, on a disk that survives crashes.

```python
with Team(tools=[pay]) as team:
    team.says("clerk", call("pay", invoice="7"), "Paid.")
    assert team.ask("clerk", "Pay invoice 7.") == "Paid."
    team.kill_and_restart()
    assert len(team.runs("pay")) == 1
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ai_whisperer import AsyncAgentSessionManager
from ai_whisperer.core.moments import duration
from ai_whisperer.core.typed_answers import typed_line
from ai_whisperer.domain.agents import AgentStatus
from ai_whisperer.domain.approvals import ApprovalRecord
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.questions import QuestionRecord
from ai_whisperer.domain.rooms import MessageRecord
from ai_whisperer.domain.tasks import TaskRecord, TaskState
from ai_whisperer.errors import StateError, WhispererError
from ai_whisperer.models.base import Model
from ai_whisperer.replay.playing import PATIENCE_SECONDS as PLAYING_PATIENCE_SECONDS
from ai_whisperer.replay.script import Script
from ai_whisperer.simulation.loop import EPOCH
from ai_whisperer.store.base import Store
from ai_whisperer.testing.failed_calls import FailedCalls
from ai_whisperer.testing.hearing import hear
from ai_whisperer.testing.process import PATIENCE
from ai_whisperer.testing.reading import ReadableProcess
from ai_whisperer.testing.said import UnusedWordsError, Word, check_used, of_the_test
from ai_whisperer.testing.script_place import play_in, script_of, tools_of
from ai_whisperer.testing.stuck import StuckError, settled
from ai_whisperer.testing.team_settings import Length, seconds_of
from ai_whisperer.testing.watched_tools import WatchedTools
from ai_whisperer.testing.words import Say, Speaker, Words
from ai_whisperer.tools.function import AnyFunction, Tool

if TYPE_CHECKING:
    from ai_whisperer.testing.playback import Playback

__tracebackhide__ = True  # pytest shows the line of the test instead

_T = TypeVar("_T")
_Asked = TypeVar("_Asked", ApprovalRecord, QuestionRecord)
_MOST = 1_000_000
_SHOWN_CHARACTERS = 100


class TaskFailedError(AssertionError):
    """An agent could not do what the test asked it to."""


class Team(ReadableProcess):
    """A session of agents for tests. What it is told to do it does in virtual time, until nothing is left to do.

    `words` speaks for the models where `says` has said nothing: a function of the request, a file with rules, or a
    model. `tools` are functions that all agents can be granted. A `seed` brings the same run again, another one
    another order of what happens at the same time. `latency` is how long models take, `start` is when time begins,
    `patience` how much virtual time a wait may take. Scripts and recordings are looked for in `folder`. A `recording`
    answers for models and tools where `says` has said nothing; a `Playback` with a mode may also make one, and then
    asks `model` for real. More settings are those of `AsyncAgentSessionManager`.
    """

    def __init__(
        self,
        *,
        words: Speaker | None = None,
        tools: Iterable[AnyFunction] = (),
        seed: int = 0,
        latency: Length = 1.0,
        start: float | str | datetime = EPOCH,
        patience: Length = PATIENCE,
        folder: str | Path = ".",
        recording: Playback | str | Path | None = None,
        model: str | None = None,
        **settings: Any,
    ) -> None:
        self._model_name = {} if model is None else {"model": model}
        self._folder = Path(folder)
        if isinstance(recording, str | Path):
            from ai_whisperer.testing.playback import Playback

            recording = Playback(self._folder / recording)
        self._playback = recording
        self._watched = WatchedTools(self._playback)
        self._words = Words(
            None if words is None else self._beside(words),
            latency_seconds=seconds_of(latency),
            may_fail=self._watched.may_fail,
            playback=self._playback,
        )
        self._was_told_of_faults = False
        self._failed_calls = FailedCalls(said=self._words.place_of, may_fail=self._watched.may_fail)
        self._tools = self._watched.watch(tools)
        self._own_tools: dict[str, list[Tool]] = {}
        super().__init__(
            model=self._words.model(""),
            provided=self._provided_now,
            seed=seed,
            start=start,
            patience=patience,
            **settings,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(keep=error is None)

    def close(self, *, keep: bool = True) -> None:
        """End what runs and remove the disk.

        Unless told otherwise what was asked for real is recorded before, and it raises `UnusedWordsError` if the test
        says what a model answers and nobody has asked for it.
        """
        self._keeps = keep
        try:
            if keep:
                self.check_all_was_asked_for()
        except UnusedWordsError:
            self._keeps = False
            raise
        finally:
            super().close()

    def check_all_was_asked_for(self) -> None:
        """Raise `UnusedWordsError` if an answer that `says` has said, and that is not optional, was not asked for.

        Not if the test was told of something that went wrong: it wants that, and nobody knows what follows from it.
        """
        if self._was_told_of_faults:
            return
        agents = {each.agent_id for each in self.requests()}
        if self._session is not None:
            agents.update(each.agent_id for each in self._session.list_agents())
        check_used(self._words.left, agents)

    def provide(self, *functions: AnyFunction) -> None:
        """Provide tools for all agents, before anything else is done."""
        if self.is_alive:
            raise StateError(
                "The team is at work already. Provide tools before that, or to an agent: "
                "team.agent('clerk', tools=[pay])."
            )
        self._tools += self._watched.watch(functions)

    def agent(
        self,
        name: str,
        *,
        template: str | None = None,
        tools: Iterable[AnyFunction | str] | None = None,
        **config: Any,
    ) -> AgentStatus:
        """Create an agent. With `tools`, names or functions, it has just these; `config` is as in a template."""
        own: list[Tool] = []
        if tools is not None:
            given = list(tools)
            own = self._watched.watch(each for each in given if not isinstance(each, str))
            config["tools"] = [each for each in given if isinstance(each, str)] + [each.name for each in own]
        self.run(self.session.create_agent(name, config or None, template=template, tools=own))
        if own:
            self._own_tools[name] = own
        return self.status(name)

    def says(self, agent: str, *words: Word | Say, optional: bool = False) -> None:
        """What the model of an agent answers next: texts, `call(…)`s, errors, one after another; or a function.

        The test fails at its end if it is not asked for all of them, unless they are `optional`.
        """
        self._words.say(agent, *words, optional=optional)

    def speaks(self, speaker: Speaker) -> None:
        """Who answers for models for which `says` has nothing: a function, a file with rules, a model."""
        self._words.speak(self._beside(speaker))

    def lets_fail(self, *tools: str) -> None:
        """Calls of these tools may fail; without names, of all. Else the test fails when one does."""
        self._watched.let_fail(tools)

    def send(self, agent: str, text: str, **terms: Any) -> TaskRecord:
        """Give an agent a task, and let everybody work until nothing is left to do, or a person is waited for."""
        return self.ended(self.begin(agent, text, **terms))

    def ask(self, agent: str, text: str, **terms: Any) -> Any:
        """Like `send`; returns the answer, with `output=` the value. Raises `TaskFailedError` if there is none."""
        task = self.send(agent, text, **terms)
        if task.state is TaskState.COMPLETED and task.result is not None:
            return task.result.final if task.output_schema is None else task.result.output
        if not task.state.ended:
            raise StuckError(f"{agent} has not answered. {self._who_waits()}")
        why = "" if task.error is None else f": {task.error.code}: {task.error.message}"
        raise TaskFailedError(f"{agent} did not do {text[:_SHOWN_CHARACTERS]!r}, the task ended as {task.state}{why}")

    def begin(self, agent: str, text: str, **terms: Any) -> TaskRecord:
        """Give an agent a task, and let no more time pass than it takes until that is on disk."""
        return self.run(self.session.send_task(agent, text, **terms))

    def ended(self, task: TaskRecord) -> TaskRecord:
        """Let everybody work until nothing is left to do, or a person is waited for; returns the task as it is then."""
        self.settle()
        return self.run(_as_it_is(self.session, task.id))

    def send_mail(self, to: str, subject: str, body: str = "", **more: Any) -> MailRecord:
        """Mail an agent as the user, and let everybody work."""
        mail = self.run(self.session.send_mail(to, subject, body or subject, **more))
        self.settle()
        return mail

    def post(self, room: str, text: str) -> MessageRecord:
        """Say something in a room as the user, and let everybody work."""
        message = self.run(self.session.post_message(room, text))
        self.settle()
        return message

    def broadcast(self, event: str, data: Any = None) -> None:
        """Broadcast an event as the user, and let everybody work."""
        self.run(self.session.broadcast_event(event, data))
        self.settle()

    def approve(self, agent: str) -> None:
        """Allow the call that an agent waits with, and let everybody work."""
        self.run(self.session.approve(self._asked_by(agent, self.approvals(agent), "call that waits for a person").id))
        self.settle()

    def refuse(self, agent: str, *, reason: str = "refused by the test") -> None:
        """Refuse the call that an agent waits with, and let everybody work."""
        call = self._asked_by(agent, self.approvals(agent), "call that waits for a person")
        self.run(self.session.refuse(call.id, reason=reason))
        self.settle()

    def reply(self, agent: str, answer: Any) -> None:
        """Answer the question that an agent asks: a text, or a dict with a value for each field."""
        asked = self._asked_by(agent, self.questions(agent), "question")
        typed = typed_line(asked.schema, answer) if isinstance(answer, str) else answer
        self.run(self.session.answer_question(asked.id, typed))
        self.settle()

    def play(self, script: str | Path | Script, *, patience: Length = PLAYING_PATIENCE_SECONDS) -> None:
        """Play a conversation script, a file or a text of several lines, in virtual time, with its crashes.

        Raises an `AssertionError` that names the first line that was not as expected, `ScriptError` before anything is
        done if it cannot be played.
        """
        try:
            read = script_of(script, self._folder)
        except WhispererError as error:
            raise error.with_traceback(None) from None
        patience_seconds = seconds_of(patience)
        if tools := tools_of(read, self._disk.folder):
            self.provide(*tools)
        if read.rules is not None:
            self.speaks(read.rules)
        try:
            play_in(self, read, patience_seconds=patience_seconds)
        finally:
            self._check()

    def settle(self) -> None:
        """Let time pass until nothing is left to do, or all that is left waits for a person."""
        self.run(settled(self.session))

    def until(self, condition: Callable[[], object], *, within: Length | None = None) -> None:
        """Let happen what is due, bit by bit, until the condition holds: `team.until(lambda: team.runs("pay"))`."""
        patience = self.patience_seconds if within is None else seconds_of(within)
        ends_at = self.now.timestamp() + patience
        while not condition():
            left = ends_at - self.now.timestamp()
            due = self.due_in()
            if left <= 0 or due is None:
                what = f"It does not come within {duration(patience)} of virtual time."
                raise StuckError(
                    f"{what if due is not None else 'Nothing is left that could happen.'} {self._who_waits()}"
                )
            self.later(min(due, left))

    def later(self, length: Length) -> None:
        """Let so much time pass: `team.later("2h")`. All that is due meanwhile happens."""
        super().later(length)
        self._check()

    def run(self, work: Coroutine[Any, Any, _T], *, patience: Length | None = None) -> _T:
        """Run a coroutine that uses `team.session` to its end in virtual time.

        Raises `StuckError`, which says who waits for what, if it does not end within the patience.
        """
        try:
            return super().run(work, patience=patience)
        except WhispererError as error:
            raise error.with_traceback(of_the_test(error.__traceback__)) from None
        finally:
            self._check()

    def _asked_by(self, agent: str, found: list[_Asked], what: str) -> _Asked:
        if not found:
            raise StuckError(f"{agent} has no {what}. {self._who_waits()}")
        return found[0]

    def _check(self) -> None:
        """Tell what went wrong out of sight, once. What went wrong first is the cause of the rest."""
        recorded = [] if self._playback is None else self._playback.faults
        refused: list[Exception] = []
        if self._failed_calls.may_have_some and self._session is not None:
            own = [tool.name for tool in self._all_tools()]
            refused = super().run(self._failed_calls.errors(self._session, own=own))
        sources = (recorded, self._watched.faults, refused, self._words.faults)
        faults = [fault for source in sources for fault in source]
        for source in sources:
            source.clear()
        if faults:
            self._was_told_of_faults = True
            raise faults[0]

    def _beside(self, speaker: Speaker) -> Speaker:
        """Who speaks; rules are looked for in the folder."""
        return self._folder / speaker if isinstance(speaker, str | os.PathLike) else speaker

    def _provided_now(self) -> dict[str, Any]:
        known = {tool.name for tool in self._all_tools()}
        recorded = [] if self._playback is None else self._playback.stand_ins(known)
        return {"tools": [*self._tools, *recorded], "agent_tools": self._own_tools, **self._model_name}

    def _all_tools(self) -> list[Tool]:
        return [*self._tools, *(tool for own in self._own_tools.values() for tool in own)]

    def _model_named(self, name: str) -> Model:
        return self._words.model(name)

    async def _hear(self, store: Store) -> None:
        await hear(store, session_id=self.session_id, take=self._failed_calls.feed)
        if self._playback is not None:
            await hear(store, session_id=self.session_id, take=self._playback.feed)

    def _keep(self) -> None:
        if self._playback is not None:
            try:
                if self._keeps:
                    self._playback.keep(self._disk.folder, self._all_tools(), session_id=self.session_id)
            finally:
                self._playback.close()


async def _as_it_is(session: AsyncAgentSessionManager, task_id: str) -> TaskRecord:
    """The task; the last part of one that is continued or has joined another."""
    task = await session.get_task(task_id)
    return await session.wait_task(task) if task.state.ended else task
