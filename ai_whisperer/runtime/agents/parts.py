"""What agents and their loops reach of the session that they are in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ai_whisperer.core.lifecycle import Action
from ai_whisperer.core.queueing import Work
from ai_whisperer.domain.agents import SleepPlan
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.mail import MailRecord
from ai_whisperer.domain.tasks import StepRecord, TaskRecord
from ai_whisperer.runtime.agents.steering import Steering
from ai_whisperer.runtime.agents.supervision import Supervisor
from ai_whisperer.runtime.agents.supplies import Supplies
from ai_whisperer.runtime.agents.task_end import TaskEnd
from ai_whisperer.runtime.limits.changing import LimitChanges
from ai_whisperer.runtime.limits.deadlines import Deadlines
from ai_whisperer.runtime.limits.failing import TaskFailures
from ai_whisperer.runtime.limits.provider_gates import ProviderGates
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.slots import LoopSlots
from ai_whisperer.runtime.limits.spending import Spending
from ai_whisperer.runtime.limits.started import StartedAgents
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.messaging.continuations import Continuations
from ai_whisperer.runtime.messaging.delegation import Delegation
from ai_whisperer.runtime.messaging.events import Events
from ai_whisperer.runtime.messaging.mail import Mail
from ai_whisperer.runtime.messaging.rooms import Rooms
from ai_whisperer.runtime.messaging.schedules import Schedules
from ai_whisperer.runtime.messaging.switch import Switch
from ai_whisperer.runtime.session.counters import Counters
from ai_whisperer.runtime.session.decision import Decision
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Roster, WorkOf
from ai_whisperer.runtime.waiting.approvals import Approvals
from ai_whisperer.runtime.waiting.cycles import Cycles
from ai_whisperer.runtime.waiting.locks import Locks
from ai_whisperer.runtime.waiting.permission import Permission
from ai_whisperer.runtime.waiting.questions import Questions
from ai_whisperer.runtime.waiting.turns import Turns
from ai_whisperer.runtime.waiting.waits import Waits
from ai_whisperer.templates.parsing import Template
from ai_whisperer.tools.function import Tool


class Creation(Protocol):
    """How agents create others."""

    def missing(self, name: object) -> tuple[Template, str] | None: ...
    def create_missing(
        self,
        decision: Decision,
        missing: tuple[Template, str],
        check: Callable[[EffectiveLimits], object],
        *,
        by: Owner | None = None,
    ) -> None: ...
    def create_for(
        self,
        decision: Decision,
        by: Owner,
        agent_id: str,
        *,
        template: str | None,
        prompt: str | None,
        description: str,
    ) -> Agent: ...


class Team(Roster, Protocol):
    """The roster, as agents keep it."""

    on_probation: bool

    @property
    def agents(self) -> Mapping[str, Owner]: ...
    @property
    def returning(self) -> Mapping[str, TaskRecord]: ...
    def loop_began(self, loop: Any) -> None: ...
    def loop_ended(self, task_id: str) -> None: ...


class Parts(Struct, kw_only=True, frozen=True, eq=False):
    """The parts of one session, as `life.assembly` has put them together."""

    kernel: Kernel
    roster: Team
    supplies: Supplies
    counters: Counters
    stated: StatedLimits
    started: StartedAgents
    reached: ReachedLimits
    trees: Trees
    slots: LoopSlots
    gates: ProviderGates
    spending: Spending
    deadlines: Deadlines
    limit_changes: LimitChanges
    task_failures: TaskFailures
    waits: Waits
    cycles: Cycles
    turns: Turns
    approvals: Approvals
    questions: Questions
    permission: Permission
    locks: Locks
    mail: Mail
    switch: Switch
    continuations: Continuations
    delegation: Delegation
    events: Events
    schedules: Schedules
    rooms: Rooms
    supervisor: Supervisor
    task_end: TaskEnd
    creation: Creation


class WorkOfOwner(WorkOf, Protocol):
    """The work of an agent, as its own loops know it."""

    @property
    def waiting(self) -> Iterable[Work]: ...
    @property
    def active_at(self) -> float: ...
    @property
    def steering(self) -> Steering | None: ...

    def join(self, decision: Decision, step: StepRecord) -> None: ...
    def task_ended(self, decision: Decision, task: TaskRecord) -> None: ...


class Owner(Agent, Protocol):
    """An agent as its own loops and its work know it."""

    @property
    def parts(self) -> Parts: ...
    @property
    def work(self) -> WorkOfOwner: ...
    @property
    def own_tools(self) -> tuple[Tool, ...]: ...

    def barred_models(self) -> Collection[str]: ...
    def bar_model(self, name: str, until: float) -> None: ...
    def sleep(self, decision: Decision, plan: SleepPlan, reason: str) -> None: ...
    def take_mail_back(self, decision: Decision, mails: Sequence[MailRecord]) -> None: ...
    def transition(self, decision: Decision, action: Action) -> None: ...
