"""Synchronous mail: an agent asks another and waits; the other answers in a loop of its own.

The question is a mail that is `awaited`. It is begun at once, beside the other loops of the one who is asked, even if
that one sleeps. The first reply to it, or the final answer of the task that handles it, is stored as a mail and becomes
the result of the call that waits. Whoever waited too long, or was stopped, gets the answer as ordinary mail.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ai_whisperer.core.mailbox import as_text
from ai_whisperer.core.marks import said
from ai_whisperer.core.queueing import Work
from ai_whisperer.core.tasks import inherited
from ai_whisperer.core.text import fitted
from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.conversation import ToolResult
from ai_whisperer.domain.mail import MailRecord, MailState
from ai_whisperer.domain.notifications.switch import SwitchBegan, SwitchEnded
from ai_whisperer.domain.snapshot import LinkKind
from ai_whisperer.domain.tasks import Priority, StepRecord, TaskRecord
from ai_whisperer.domain.waits import WaitKind, WaitRecord
from ai_whisperer.errors import InvalidInputError, StateError, WaitDepthError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.messaging.continuations import Continuations
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.session.counters import Counters
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Roster
from ai_whisperer.runtime.waiting.cycles import Cycles
from ai_whisperer.runtime.waiting.waits import Waits


class Switch:
    """Connects those who wait with those who answer."""

    def __init__(
        self,
        kernel: Kernel,
        roster: Roster,
        reached: ReachedLimits,
        waits: Waits,
        cycles: Cycles,
        mail: Mail,
        continuations: Continuations,
        counters: Counters,
    ) -> None:
        self._kernel = kernel
        self._roster = roster
        self._reached = reached
        self._waits = waits
        self._cycles = cycles
        self._mail = mail
        self._continuations = continuations
        self._counters = counters
        waits.on_expiry(WaitKind.REPLY, self._give_up)

    def ask(
        self,
        decision: Decision,
        task: TaskRecord,
        step: StepRecord,
        *,
        to: str,
        subject: str,
        body: str,
        priority: Priority,
        timeout_seconds: float | None,
    ) -> WaitRecord:
        """Mail the question and let the step wait for the answer. Raises, having changed nothing, if it cannot be."""
        recipient = self._roster.book.resolve_recipient(to)
        self._check_recipient(task, recipient)
        self.check_depth(decision, task)
        deadline_at = self._waits.deadline(task, timeout_seconds, now=decision.at)
        mail = self._mail.send(
            decision,
            sender=task.agent_id,
            to=recipient,
            subject=subject,
            body=body,
            priority=priority,
            thread_id=task.thread_id,
            mail_id=f"{step.id}~mail",
            origin=inherited(task),
            awaited=True,
        )
        wait = WaitRecord(
            session_id=self._kernel.session_id,
            id=step.id,
            kind=WaitKind.REPLY,
            agent_id=task.agent_id,
            task_id=task.id,
            target=mail.id,
            target_agent=recipient,
            arrival=self._kernel.next_arrival(),
            deadline_at=deadline_at,
            created_at=decision.at,
        )
        self._waits.begin(decision, wait)
        self._counters.link(decision, LinkKind.SWITCH, task.agent_id, recipient)
        decision.tell(
            SwitchBegan(
                agent_id=wait.agent_id,
                task_id=wait.task_id,
                step_id=wait.id,
                to_agent=wait.target_agent,
                mail_id=wait.target,
                depth=self._waits.graph.depth(task.id) + 1,
                deadline_at=self._kernel.clock.shown(wait.deadline_at),
            )
        )
        return wait

    def task_began(self, task: TaskRecord) -> None:
        """A task answers a question: keep in mind who waits for it."""
        mail_id = _question_of(task)
        if mail_id is not None:
            self._waits.graph.answers(task.id, mail_id)

    def task_continued(self, _: Decision, task: TaskRecord, following: TaskRecord) -> None:
        """The answer is to come from the task that goes on with this one."""
        if not task.answers_a_switch:
            return
        self._waits.graph.answers_no_more(task.id)
        self.task_began(following)

    def task_ended(self, decision: Decision, task: TaskRecord) -> None:
        """Pass on what a task that answers has brought: its result as the reply, or that there is none."""
        if not task.answers_a_switch:
            return
        mail_id = _question_of(task)
        self._waits.graph.answers_no_more(task.id)
        mail = None if mail_id is None else self._mail.in_memory(mail_id)
        if mail is None:
            return
        is_wanted = mail.state is not MailState.REPLIED and mail.sender in self._roster.agents  # it may be deleted
        if task.result is not None and is_wanted:
            limit = self._mail.max_bytes(mail.sender)
            self._mail.reply(
                decision,
                mail,
                body=fitted(self._continuations.answer_of(task), limit) or "(no text)",
                priority=mail.priority,
                mail_id=f"{task.id}~mail",
                origin=inherited(task),
                is_result=True,
            )
        wait = self._waits.for_reply_to(mail.id)
        if wait is not None:
            why = "it ended without an answer" if task.error is None else said(task.agent_id, task.error.message)
            self._end_without_answer(decision, wait, "failed", f"{wait.target_agent} could not answer: {why}")

    def replied(self, decision: Decision, wait: WaitRecord, reply: MailRecord) -> None:
        """The reply is there: it is the result of the call that waited."""
        body = self._reached.bounded_result(wait.agent_id, wait.task_id, reply.body)
        content = as_text(reply if body is reply.body else replace(reply, body=body))
        decision.tell(_ended(wait, "answered", reply_id=reply.id))
        self._waits.end(decision, wait, ToolResult(content=content, mails=(reply.id,), mails_sent=1))

    def put_off(self, decision: Decision, item: Work) -> None:
        """The agent was stopped. A question that is left gets no answer now, but by mail after a start."""
        mail_id = item.id if isinstance(item, MailRecord) else _question_of(item)
        wait = None if mail_id is None else self._waits.for_reply_to(mail_id)
        if wait is not None:
            self._end_without_answer(decision, wait, "stopped", f"{wait.target_agent} was stopped.")

    def abandon(self, decision: Decision, wait: WaitRecord) -> None:
        """The task that waits has ended: an answer will come as ordinary mail."""
        decision.tell(_ended(wait, "abandoned"))
        self._waits.forget(decision, wait)

    def _check_recipient(self, task: TaskRecord, recipient: str) -> None:
        if recipient == task.agent_id:
            raise InvalidInputError(f"'{recipient}' cannot wait for itself; nothing was sent. Do it yourself instead.")
        agent = self._roster.agents.get(recipient)
        if agent is not None and not (agent.record.started and agent.state is not AgentState.STOPPED):
            raise StateError(
                f"'{recipient}' is not started and so cannot answer; nothing was sent. Ask somebody else, or use "
                "send_mail: it is read after the start."
            )
        self._cycles.check_switch(task, recipient)

    def check_depth(self, decision: Decision, task: TaskRecord) -> None:
        """Raise, and announce it, if so many agents wait for each other that the task may not ask another."""
        max_depth = self._roster.agents[task.agent_id].limits.max_switch_depth
        depth = self._waits.graph.depth(task.id)
        if depth >= max_depth:
            self._reached.refused(decision, task, "max_switch_depth", used=depth)
            raise WaitDepthError(
                f"{max_depth} agents wait for each other in a row already; nothing was sent. Answer with what you "
                "have, or use send_mail, which does not wait."
            )

    def _give_up(self, decision: Decision, wait: WaitRecord) -> None:
        agent = self._roster.agents.get(wait.target_agent)
        state = ""
        if agent is not None:
            hindrance = " and waits for its tools" if agent.missing_tools else ""
            state = f" (it is {agent.state} now{hindrance})"
        seconds = round(decision.at - wait.created_at)
        told = f"Timeout: {wait.target_agent} did not answer within {seconds} seconds{state}."
        self._end_without_answer(decision, wait, "timed_out", told)

    def _end_without_answer(self, decision: Decision, wait: WaitRecord, outcome: str, told: str) -> None:
        decision.tell(_ended(wait, outcome))
        content = f"{told} You no longer wait. Should an answer come, you get it as mail."
        self._waits.end(decision, wait, ToolResult(content=content, is_error=True, mails_sent=1))


def _question_of(task: TaskRecord) -> str | None:
    """The mail that the task answers."""
    return None if task.origin is None else task.origin.answers


def _ended(wait: WaitRecord, outcome: str, *, reply_id: str | UnsetType = UNSET) -> SwitchEnded:
    return SwitchEnded(
        agent_id=wait.agent_id,
        task_id=wait.task_id,
        step_id=wait.id,
        to_agent=wait.target_agent,
        mail_id=wait.target,
        outcome=outcome,
        reply_id=reply_id,
    )
