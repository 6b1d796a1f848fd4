"""Tokens and money are set aside before a model request begins, for its tree, its agent and the session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from ai_whisperer.core.budgets import overdrawn
from ai_whisperer.core.reserving import Estimate, Exhausted, Granted, Ledger, MustWait, TooLittle
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.domain.tasks import Budget, TaskRecord
from ai_whisperer.errors import BudgetError
from ai_whisperer.models.base import Model
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.limits.stated import StatedLimits
from ai_whisperer.runtime.limits.trees import Trees
from ai_whisperer.runtime.session.kernel import Kernel
from ai_whisperer.runtime.session.roles import Agent, Loop, Roster

_SESSION = "session"


class Reserved(NamedTuple):
    """A request may begin; its answer may have so many tokens, or as many as it wants."""

    max_output_tokens: int | None = None


class _Account(NamedTuple):
    """A budget that a request is made on. `key` names its ledger."""

    scope: LimitScope
    key: str
    budget: Budget
    used: Usage

    def spent(self, *, is_money: bool) -> float:
        """How many dollars are used, or tokens."""
        return (self.used.cost_usd or 0.0) if is_money else self.used.input_tokens + self.used.output_tokens


class _Spent(NamedTuple):
    """Nothing is left in an account, or not enough for the request, for the reason in words."""

    account: _Account
    why: str
    lack: TooLittle | None = None


class _Need(NamedTuple):
    """What the request of an agent that is paused for it needs at least in such an account: tokens, or dollars."""

    scope: LimitScope
    amount: float
    is_money: bool

    def fits(self, account: _Account) -> bool:
        if account.scope is not self.scope:
            return True
        most = account.budget.max_cost_usd if self.is_money else account.budget.max_tokens
        return most is None or account.spent(is_money=self.is_money) + self.amount <= most


class _Request(NamedTuple):
    """A request of a loop to a model, and the tokens that it may use."""

    loop: Loop
    model: Model
    input_tokens: int
    output_tokens: int


class _Waiter:
    """A request that waits in line, and the accounts in which there is no room for it or for those before it.

    Its future brings what was set aside for it, or None if it is to ask again.
    """

    __slots__ = ("future", "lacks", "request")

    def __init__(self, request: _Request, future: asyncio.Future[Reserved | None]) -> None:
        self.request = request
        self.future = future
        self.lacks: frozenset[str] = frozenset()


class Spending:
    """The ledgers of one session. Requests that no limit of tokens or money holds for have none and cost nothing.

    Whoever came first goes on first: a request waits behind those that wait for room in an account of its own, even if
    there is room for it. What waits for another account holds it up no more than it has to.

    `count_at_once` is whether somebody has asked for the usage of the session: from then on it is kept up to date.
    """

    def __init__(
        self, kernel: Kernel, roster: Roster, stated: StatedLimits, trees: Trees, reached: ReachedLimits
    ) -> None:
        self._kernel = kernel
        self._roster = roster
        self._stated = stated
        self._trees = trees
        self._reached = reached
        self._ledgers: dict[str, Ledger] = {}
        self._held: dict[str, tuple[str, ...]] = {}
        self._line: dict[_Waiter, None] = {}
        self._lacking: Counter[str] = Counter()
        self._session_usage: Usage | None = None
        self._needs: dict[str, _Need] = {}
        self.count_at_once = False

    @property
    def session_usage(self) -> Usage:
        """What all agents have used so far."""
        if self._session_usage is None:
            agents = self._roster.agents.values()
            former = self._roster.former
            self._session_usage = sum(
                (agent.work.used.usage for agent in agents), Usage() if former is None else former.usage
            )
            self.count_at_once = True
        return self._session_usage

    def count(self, usage: Usage) -> None:
        """An agent has used more."""
        if self._session_usage is not None:
            self._session_usage += usage

    def hold_for(self, agent: Agent, task: TaskRecord) -> bool:
        """Whether tokens or money are limited for the requests of the task."""
        whole, own = self._stated.whole, agent.limits
        return bool(
            (task.origin is not None and task.budget is not None)
            or own.max_tokens_per_agent
            or own.max_cost_usd_per_agent
            or whole.max_tokens
            or whole.max_cost_usd
        )

    async def reserve(
        self,
        loop: Loop,
        model: Model,
        *,
        input_tokens: int,
        output_tokens: int,
        before_waiting: Callable[[], None],
    ) -> Reserved | None:
        """Set aside what a request of this size to this model may use, once it is there.

        None if the agent may not go on, or is paused for it.

        `before_waiting` gives back what the loop must not hold while it waits. Raises `BudgetError` if the task has to
        fail: the budget of its tree is spent or too small for the request, or a price is not known.
        """
        agent = loop.agent
        request = _Request(loop, model, input_tokens, output_tokens)
        prepare = getattr(model, "prepare", None)
        if prepare is not None:
            await prepare()
        while agent.may_step:
            outcome = self._ask(request, behind=self._lacking)
            if isinstance(outcome, _Spent):
                self._exhausted(loop, outcome)
                return None
            if isinstance(outcome, Reserved):
                reserved: Reserved | None = outcome
            else:
                before_waiting()
                reserved = await self._wait_in_line(request, outcome)
            if reserved is not None and agent.may_step:
                return reserved
        return None

    def release(self, task_id: str) -> None:
        """The request of the task has settled, or does not run any more: others may go on."""
        keys = self._held.pop(task_id, None)
        if keys is None:
            return
        for key in keys:
            self._ledgers[key].release(task_id)
            if not self._ledgers[key]:
                del self._ledgers[key]
        self._serve(freed=keys)

    def look_again(self) -> None:
        """Let those that wait ask again: limits have changed."""
        self._serve(freed=None)

    def have_room_for(self, agent: Agent) -> bool:
        """Whether the limits of the agent and of the session have room for the request that it was paused for.

        What that needs is not known after a restart of the process: then it is enough that something is left, and the
        request is asked about again.
        """
        need = self._needs.get(agent.agent_id)
        return all(
            overdrawn(each.budget, each.used) is None and (need is None or need.fits(each))
            for each in self._accounts(agent, None)
        )

    def _accounts(self, agent: Agent, task: TaskRecord | None) -> Iterator[_Account]:
        own, whole = agent.limits, self._stated.whole
        if task is not None and task.budget is not None:
            yield _Account(LimitScope.TREE, f"tree:{task.root_id}", task.budget, self._trees.used(task))
        if own.max_tokens_per_agent or own.max_cost_usd_per_agent:
            budget = _budget(own.max_tokens_per_agent, own.max_cost_usd_per_agent)
            yield _Account(LimitScope.AGENT, f"agent:{agent.agent_id}", budget, agent.work.used.usage)
        if whole.max_tokens or whole.max_cost_usd:
            budget = _budget(whole.max_tokens, whole.max_cost_usd)
            yield _Account(LimitScope.SESSION, _SESSION, budget, self.session_usage)

    def _ask(self, request: _Request, *, behind: Collection[str]) -> Reserved | _Spent | frozenset[str]:
        """Set aside what the request may use, if nobody is before it in an account of its own and there is room.

        Else returns the account that is spent, or the keys of those for which it has to wait.
        """
        loop = request.loop
        accounts = list(self._accounts(loop.agent, loop.task))
        taken = frozenset(each.key for each in accounts if each.key in behind)
        if taken:
            return taken
        estimate = _estimate(request, accounts)
        ledgers = [self._ledgers.get(each.key) or Ledger() for each in accounts]
        granted: list[Granted] = []
        lacks: list[str] = []
        for account, ledger in zip(accounts, ledgers, strict=True):
            match ledger.ask(account.budget, account.used, estimate):
                case Exhausted(why=why):
                    return _Spent(account, why)
                case TooLittle() as lack:
                    return _Spent(account, lack.why, lack)
                case Granted() as grant:
                    granted.append(grant)
                case MustWait():
                    lacks.append(account.key)
        return frozenset(lacks) if lacks else self._hold(loop.task.id, accounts, ledgers, granted)

    def _hold(
        self, task_id: str, accounts: Sequence[_Account], ledgers: Sequence[Ledger], granted: Sequence[Granted]
    ) -> Reserved:
        for account, ledger, each in zip(accounts, ledgers, granted, strict=True):
            self._ledgers[account.key] = ledger
            ledger.hold(task_id, each)
        self._held[task_id] = tuple(account.key for account in accounts)
        caps = [each.max_output_tokens for each in granted if each.max_output_tokens is not None]
        return Reserved(min(caps, default=None))

    async def _wait_in_line(self, request: _Request, lacks: frozenset[str]) -> Reserved | None:
        """What was set aside when it was the turn of the request; None if it is to ask again."""
        waiter = _Waiter(request, self._kernel.event_loop.create_future())
        self._line[waiter] = None
        self._let_lack(waiter, lacks)
        request.loop.is_waiting = True
        try:
            return await waiter.future
        finally:
            request.loop.is_waiting = False
            if waiter in self._line:
                lacked = waiter.lacks
                self._let_lack(waiter, frozenset())
                del self._line[waiter]
                self._serve(freed=lacked)

    def _serve(self, *, freed: Collection[str] | None) -> None:
        """Let those go on, in their order, for whom there is room now that these accounts, or all, have changed."""
        served: list[_Waiter] = []
        before: set[str] = set()
        changed = None if freed is None else set(freed)
        for waiter in self._line:
            if changed is None or not waiter.lacks.isdisjoint(changed):
                lacked = waiter.lacks
                outcome = self._ask_again(waiter.request, behind=before)
                self._let_lack(waiter, outcome if isinstance(outcome, frozenset) else frozenset())
                if changed is not None:
                    changed |= lacked - waiter.lacks  # those behind may not have to wait there any more
                if not isinstance(outcome, frozenset):
                    served.append(waiter)
                    if not waiter.future.done():
                        waiter.future.set_result(outcome)
            before |= waiter.lacks
            if changed is not None and _SESSION in before:
                break  # all that wait are on the account of the session
        for waiter in served:
            del self._line[waiter]

    def _ask_again(self, request: _Request, *, behind: Collection[str]) -> Reserved | frozenset[str] | None:
        """As `_ask`; None if the loop itself has to see that it may not go on, or that an account is spent."""
        if not request.loop.agent.may_step:
            return None
        outcome = self._ask(request, behind=behind)
        return None if isinstance(outcome, _Spent) else outcome

    def _let_lack(self, waiter: _Waiter, lacks: frozenset[str]) -> None:
        for key in waiter.lacks:
            self._lacking[key] -= 1
            if not self._lacking[key]:
                del self._lacking[key]
        self._lacking.update(lacks)
        waiter.lacks = lacks

    def _exhausted(self, loop: Loop, spent: _Spent) -> None:
        """Let the task fail, or pause its agent until a person gives it more: then it goes on where it is."""
        account, why, lack = spent
        limit, used, most = _numbers(account, lack)
        if account.scope is LimitScope.TREE and lack is not None:
            error = BudgetError(
                f"The budget of the task and of all it caused is too small: {why}, so it was not sent. Give a larger "
                "one to a new task."
            )
            error.data = {"limit": limit, "used": used, "max": most}
            raise error
        if account.scope is LimitScope.TREE or _price_is_unknown(account):
            raise BudgetError(
                f"The budget of the task and of all it caused is spent ({why}). Give a larger one to a new task."
                if account.scope is LimitScope.TREE
                else f"The limit of the {account.scope} cannot be kept: {why}."
            )
        decision = self._kernel.decide(f"task:{loop.task.id}")
        agent = loop.agent
        why = f"A limit is reached: {why} ({limit}). Raise {limit} to resume the agent."
        agent.pause(decision, why, limit=limit)
        self._needs.pop(agent.agent_id, None)
        if lack is not None:
            needed = lack.wanted - account.spent(is_money=lack.is_money)
            self._needs[agent.agent_id] = _Need(account.scope, needed, lack.is_money)
        paused = LimitReached(
            scope=account.scope,
            limit=limit,
            action=LimitAction.PAUSED,
            used=used,
            most=most,
            agent_id=loop.task.agent_id,
            task_id=loop.task.id,
        )
        self._reached.tell(decision, paused)
        decision.submit()


def _budget(tokens: int, cost_usd: float) -> Budget:
    return Budget(max_tokens=tokens or None, max_cost_usd=cost_usd or None)


def _estimate(request: _Request, accounts: Sequence[_Account]) -> Estimate:
    """What the request may use; its price is asked for only if money is limited."""
    tokens_in, tokens_out = request.input_tokens, request.output_tokens
    if all(account.budget.max_cost_usd is None for account in accounts):
        return Estimate(input_tokens=tokens_in, output_tokens=tokens_out)
    return Estimate(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        input_usd=_price_usd(request, tokens_in, 0),
        output_usd=_price_usd(request, 0, tokens_out),
    )


def _price_usd(request: _Request, tokens_in: int, tokens_out: int) -> float | None:
    """By the price list of the model that is asked, else by what the agent has paid for a token so far."""
    listed = getattr(request.model, "price_usd", None)
    price = None if listed is None else listed(tokens_in, tokens_out)
    if price is not None:
        return float(price)
    usage = request.loop.agent.work.used.usage
    tokens = usage.input_tokens + usage.output_tokens - usage.without_price
    return None if usage.cost_usd is None or not tokens else usage.cost_usd / tokens * (tokens_in + tokens_out)


def _price_is_unknown(account: _Account) -> bool:
    budget, used = account.budget, account.used
    tokens = used.input_tokens + used.output_tokens
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return False
    return budget.max_cost_usd is not None and used.without_price > 0


def _numbers(account: _Account, lack: TooLittle | None) -> tuple[str, float, float]:
    """The limit that is reached, how much is used or wanted, and how much may be."""
    used = account.used.input_tokens + account.used.output_tokens
    end = {LimitScope.AGENT: "_per_agent", LimitScope.TREE: "_per_tree"}.get(account.scope, "")
    if lack is not None:
        return f"{'max_cost_usd' if lack.is_money else 'max_tokens'}{end}", lack.wanted, lack.most
    if account.budget.max_tokens is not None and used >= account.budget.max_tokens:
        return f"max_tokens{end}", used, account.budget.max_tokens
    return f"max_cost_usd{end}", account.used.cost_usd or 0.0, account.budget.max_cost_usd or 0.0
