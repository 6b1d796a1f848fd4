"""Bugs that the harness must find: each is put into the runtime of one worker and breaks one promise.

None of them shows in a run that nobody kills.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from ai_whisperer.core.blame import Verdict
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.mail import USER, MailRecord, MailState
from ai_whisperer.domain.tasks import StepKind, StepRecord, StepState, TaskRecord
from ai_whisperer.domain.timers import TimerRecord
from ai_whisperer.runtime.agents.acting import AgentDesk
from ai_whisperer.runtime.agents.agent import LiveAgent
from ai_whisperer.runtime.agents.loop import AILoop
from ai_whisperer.runtime.agents.work import AgentWork
from ai_whisperer.runtime.api.accepting import Intake
from ai_whisperer.runtime.life import recovery
from ai_whisperer.runtime.life.open_session import OpenSession
from ai_whisperer.runtime.messaging.delegation import Delegation
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.store.base import Unit
from ai_whisperer.tools.function import Tool

from .kill_points import KillSwitch, WatchedCommitter, swap

_SLOW_DISK_SECONDS = 0.003
_HALF_DONE = "planted.half"
"""The point at which the first half of what belongs together is on its way to the disk."""


class PlantedBug(NamedTuple):
    """How a bug is planted, the points at which a kill may show it, and what the harness then has to say.

    A point without a number stands for each time it is reached.
    """

    plant: Callable[[KillSwitch], None]
    points: tuple[str, ...]
    finding: str


def acknowledge_before_commit(_: KillSwitch) -> None:
    async def commit(self: Decision) -> None:
        """Do not wait."""
        self.submit()

    swap(Decision, "commit", lambda _: commit)


def accept_again(_: KillSwitch) -> None:
    """A repeated call is not known by its id."""

    def accept(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        def accepted(self: Intake, *arguments: Any, **options: Any) -> Awaitable[Any]:
            if options["known"] is not None:
                options |= {"task_id": None, "known": None}
            return original(self, *arguments, **options)

        return accepted

    async def mail_again(self: Intake, known: MailRecord, to: str, *, subject: str, body: str) -> MailRecord:
        decision = self.decide()
        mail = self.mail(
            decision, to, subject=subject, body=body, priority=known.priority, thread_id=None, mail_id=None
        )
        await decision.commit()
        return mail

    swap(Intake, "task", accept)
    swap(Intake, "mail_again", lambda _: mail_again)


def begin_before_durable(_: KillSwitch) -> None:
    """A step does not wait for its beginning to be on disk; the disk is slow."""

    def advance(original: Callable[[AILoop, Decision], None]) -> Callable[[AILoop, Decision], None]:
        def advanced(self: AILoop, decision: Decision) -> None:
            original(self, decision)
            self._durable = None

        return advanced

    def slowly(original: Callable[..., None]) -> Callable[..., asyncio.TimerHandle]:
        def commit(*given: Any, **options: Any) -> asyncio.TimerHandle:
            return asyncio.get_running_loop().call_later(_SLOW_DISK_SECONDS, partial(original, *given, **options))

        return commit

    swap(AILoop, "_advance", advance)
    swap(WatchedCommitter, "commit", slowly)


def forget_intents(_: KillSwitch) -> None:
    """The journal has no beginnings."""

    def put(original: Callable[[Unit, StepRecord], None]) -> Callable[[Unit, StepRecord], None]:
        return lambda self, step: None if step.state is StepState.STARTED else original(self, step)

    swap(Unit, "put_step", put)
    swap(Unit, "begin_step", put)


def journal_results_late(_: KillSwitch) -> None:
    """The results of tools go to the journal with the answer that follows."""
    held: defaultdict[str, list[StepRecord]] = defaultdict(list)

    def put(original: Callable[[Unit, StepRecord], None]) -> Callable[[Unit, StepRecord], None]:
        def put_later(self: Unit, step: StepRecord) -> None:
            if step.kind is StepKind.TOOL and step.state is StepState.DONE:
                held[step.task_id].append(step)
                original(self, replace(step, state=StepState.STARTED, result=None))
                return
            if step.state is StepState.DONE:
                for result in held.pop(step.task_id, ()):
                    original(self, result)
            original(self, step)

        return put_later

    swap(Unit, "put_step", put)


def repeat_everything(_: KillSwitch) -> None:
    """Every tool counts as idempotent."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def made(self: Tool, *arguments: Any, **options: Any) -> None:
            original(self, *arguments, **options | {"idempotent": True})

        return made

    swap(Tool, "__init__", make)


def ask_again(_: KillSwitch) -> None:
    """After a restart the last answer is not remembered."""

    def restore(original: Callable[..., None]) -> Callable[..., None]:
        def restored(session: OpenSession, *arguments: Any) -> None:
            original(session, *arguments)
            for loop in session.roster.running.values():
                steps = loop.running.journal.steps
                answered = [step.number for step in steps if step.answer is not None]
                if answered and loop.task.mail_id is None:
                    del steps[answered[-1] - 1 :]

        return restored

    swap(recovery, "restore", restore)


def wake_the_paused(_: KillSwitch) -> None:
    """After a restart nobody is paused."""

    def restore(original: Callable[..., None]) -> Callable[..., None]:
        def restored(session: OpenSession, *arguments: Any) -> None:
            original(session, *arguments)
            for agent in session.roster.agents.values():
                if agent.state is AgentState.PAUSED:
                    agent.record = replace(agent.record, state=AgentState.IDLE)

        return restored

    swap(recovery, "restore", restore)


def deliver_apart(switch: KillSwitch) -> None:
    """A mail is marked as delivered before, and not together with, the start of its task."""

    def begin(
        original: Callable[[AgentWork, TaskRecord | MailRecord], None],
    ) -> Callable[[AgentWork, TaskRecord | MailRecord], None]:
        def begun(self: AgentWork, item: TaskRecord | MailRecord) -> None:
            if isinstance(item, TaskRecord) or item.sender != USER or item.recipient == "dot":
                original(self, item)  # a late mail would be the last thing to be done, and nobody waits for it now
                return
            decision = self._parts.kernel.decide(f"mail:{item.id}")
            decision.unit.update_mail(replace(item, state=MailState.DELIVERED))
            switch.reached(_HALF_DONE)
            decision.submit().add_done_callback(lambda _: original(self, item))

        return begun

    swap(AgentWork, "_begin", begin)


def mail_apart(switch: KillSwitch) -> None:
    """A mail is sent after, and not together with, the step that sends it."""

    def send(original: Callable[..., MailRecord]) -> Callable[..., MailRecord]:
        def sent(self: AgentDesk, **mail: Any) -> MailRecord:
            session, cause = self._agent.parts, self._decision.cause
            switch.reached(_HALF_DONE)

            def send_now(_: object) -> None:
                self._decision = session.kernel.decide(cause)
                original(self, **mail)
                self._decision.submit()

            self._decision.then(lambda: session.kernel.store.submit(Unit()).add_done_callback(send_now))
            return MailRecord(
                session_id=session.kernel.session_id,
                id=self._mail_id,
                thread_id="",
                sender=self._agent.agent_id,
                sequence=0,
                recipient=mail["to"],
                subject="",
                body="",
                arrival=0,
                cause=cause,
            )

        return sent

    swap(AgentDesk, "send_mail", send)


def wake_apart(switch: KillSwitch) -> None:
    """A timer is gone before, and not together with, what it brings about."""

    def fire(original: Callable[[LiveAgent, TimerRecord], None]) -> Callable[[LiveAgent, TimerRecord], None]:
        def fired(self: LiveAgent, timer: TimerRecord) -> None:
            decision = self.parts.kernel.decide(f"timer:{timer.id}")
            decision.unit.delete_timer(timer.session_id, timer.id)

            def fire_now(_: object) -> None:
                switch.reached(_HALF_DONE)
                original(self, timer)

            decision.submit().add_done_callback(fire_now)

        return fired

    swap(LiveAgent, "_timer_fired", fire)


def tell_apart(switch: KillSwitch) -> None:
    """A mail is told of after, and not together with, becoming durable."""

    def submit(original: Callable[[Decision], asyncio.Future[None]]) -> Callable[[Decision], asyncio.Future[None]]:
        def submitted(self: Decision) -> asyncio.Future[None]:
            if not any(note.name == "mail.sent" for note in self.unit.notes):
                return original(self)
            switch.reached(_HALF_DONE)
            told = Unit()
            told.notes, self.unit.notes = self.unit.notes, []
            durable = original(self)
            durable.add_done_callback(lambda _: self._home.store.submit(told))
            return durable

        return submitted

    swap(Decision, "submit", submit)


def forget_waits(_: KillSwitch) -> None:
    """A call that waits has no row: after a death nobody knows that it does."""
    swap(Unit, "put_wait", lambda _: lambda *_: None)


def report_apart(switch: KillSwitch) -> None:
    """The result of a delegated task is mailed after, and not together with, its end."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def report(self: Delegation, decision: Decision, *arguments: Any) -> None:
            switch.reached(_HALF_DONE)

            def report_now(_: object) -> None:
                later = self._kernel.decide(decision.cause)
                original(self, later, *arguments)
                later.submit()

            decision.then(lambda: self._kernel.store.submit(Unit()).add_done_callback(report_now))

        return report

    swap(Delegation, "report", make)


_APART = tuple(f"{_HALF_DONE}:{number}>commit.after:{later}" for later in range(1, 9) for number in (1, 2, 3))
_IN_BETWEEN = tuple(f"{_HALF_DONE}:{number}" for number in (1, 2, 3))
_AROUND_COMMITS = ("commit.before", "commit.after")
_IN_TOOLS = ("tool.sent", "tool.acted")


def count_every_start(_: KillSwitch) -> None:
    """A task becomes a dead letter that was started at three deaths, whatever the reason of each."""

    def judge(attempts: int, *, under_way: bool, held_back: bool) -> Verdict:
        del under_way, held_back
        return {2: Verdict.TRY}.get(attempts, Verdict.SET_ASIDE if attempts > 2 else Verdict.GO_ON)

    swap(recovery, "judge", lambda _: judge)


BUGS_OF_MANY_DEATHS = {"count-every-start": PlantedBug(count_every_start, (), "is dead with None, not completed")}
"""What no single death shows."""

PLANTED_BUGS = {
    "acknowledge-before-commit": PlantedBug(acknowledge_before_commit, _AROUND_COMMITS, "acknowledged and is lost"),
    "accept-again": PlantedBug(accept_again, ("commit.after",), "times"),
    "begin-before-durable": PlantedBug(begin_before_durable, _AROUND_COMMITS, "begun"),
    "forget-intents": PlantedBug(forget_intents, _IN_TOOLS, "begun and is not in the journal"),
    "journal-results-late": PlantedBug(journal_results_late, ("commit.told",), "was begun while .* was open"),
    "repeat-everything": PlantedBug(repeat_everything, _IN_TOOLS, "happened 2 times"),
    "ask-again": PlantedBug(ask_again, _IN_TOOLS, "was done and was begun again"),
    "wake-the-paused": PlantedBug(wake_the_paused, ("tool.acting",), "while it was paused"),
    "deliver-apart": PlantedBug(deliver_apart, _APART, "is delivered and has 0 tasks"),
    "mail-apart": PlantedBug(mail_apart, _APART, "missing"),
    "wake-apart": PlantedBug(wake_apart, _IN_BETWEEN, "the sleepers are"),
    "forget-waits": PlantedBug(forget_waits, ("commit.after",), "wait, there are rows for"),
    "report-apart": PlantedBug(report_apart, _APART, "is completed and was reported 0 times"),
    "tell-apart": PlantedBug(tell_apart, _APART, "was told 0 times"),
}
