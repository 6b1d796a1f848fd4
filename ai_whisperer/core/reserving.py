"""What of a budget is set aside for model requests under way, so that many at once do not spend it twice."""

from __future__ import annotations

import math

from ai_whisperer.core.budgets import overdrawn
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.record import Record
from ai_whisperer.domain.tasks import Budget

LEAST_OUTPUT_TOKENS = 64
"""A request that begins may answer in so many tokens at least: less would be no answer."""


class Estimate(Record, frozen=True, kw_only=True):
    """What a request is expected to use at most, by its size. The prices are None if they are not known."""

    input_tokens: int
    output_tokens: int
    input_usd: float | None = None
    output_usd: float | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float | None:
        return None if self.input_usd is None or self.output_usd is None else self.input_usd + self.output_usd

    @property
    def least_output_tokens(self) -> int:
        return min(LEAST_OUTPUT_TOKENS, self.output_tokens)

    @property
    def least_tokens(self) -> int:
        """What the request needs if its answer is as short as can be."""
        return self.input_tokens + self.least_output_tokens

    @property
    def least_usd(self) -> float | None:
        if self.input_usd is None or self.output_usd is None:
            return None
        return self.input_usd + self.output_usd * self.least_output_tokens / self.output_tokens


class Granted(Record, frozen=True, kw_only=True):
    """The request may begin. `tokens` and `usd` are set aside for it.

    `max_output_tokens` is how long its answer may be if that is less than what was expected, else None.
    """

    tokens: int
    usd: float
    max_output_tokens: int | None = None


class MustWait(Record, frozen=True):
    """What is left is set aside for others: ask again when one of them has settled."""


class Exhausted(Record, frozen=True, kw_only=True):
    """Nothing is left, for the reason in words."""

    why: str


class TooLittle(Record, frozen=True, kw_only=True):
    """What is left is not enough for the request, whatever others use, for the reason in words.

    `wanted` is what would be used in all, `most` what may be: tokens, or dollars.
    """

    why: str
    wanted: float
    most: float
    is_money: bool = False


Verdict = Granted | MustWait | Exhausted | TooLittle


class Ledger:
    """What is set aside of one budget, by the task whose request it is for."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, Granted] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    @property
    def reserved(self) -> tuple[int, float]:
        """The tokens and the dollars that are set aside."""
        return sum(each.tokens for each in self._held.values()), sum(each.usd for each in self._held.values())

    def ask(self, budget: Budget, used: Usage, estimate: Estimate) -> Verdict:
        """Whether a request may begin on a budget of which so much is used. Nothing is set aside yet.

        One that does not fit into what is left waits for others under way. If there are none it begins, with as long
        an answer as there is room for, and all that is left is set aside. One for which there is no room at all does
        not begin: so a budget is not overdrawn, as far as the estimates are right.
        """
        why = overdrawn(budget, used)
        if why is not None:
            return Exhausted(why=why)
        lack = _lack(budget, used, estimate)
        if lack is not None:
            return lack
        reserved_tokens, reserved_usd = self.reserved
        left_tokens = _left(budget.max_tokens, used.input_tokens + used.output_tokens + reserved_tokens)
        left_usd = _left(budget.max_cost_usd, (used.cost_usd or 0.0) + reserved_usd)
        usd = 0.0 if budget.max_cost_usd is None else estimate.usd
        if estimate.tokens <= left_tokens and usd is not None and usd <= left_usd:
            return Granted(tokens=estimate.tokens, usd=usd)
        if self._held:
            return MustWait()
        return Granted(
            tokens=int(min(estimate.tokens, left_tokens)),
            usd=0.0 if budget.max_cost_usd is None else left_usd if usd is None else min(usd, left_usd),
            max_output_tokens=_room_for_output(estimate, left_tokens, left_usd),
        )

    def hold(self, task_id: str, granted: Granted) -> None:
        """Set this aside for the request of a task."""
        self._held[task_id] = granted

    def release(self, task_id: str) -> None:
        """The request has settled, or does not run any more."""
        self._held.pop(task_id, None)


def _left(most: float | None, taken: float) -> float:
    return math.inf if most is None else most - taken


def _room_for_output(estimate: Estimate, left_tokens: float, left_usd: float) -> int | None:
    """How many tokens the answer may have; None if as many as were expected."""
    room = left_tokens - estimate.input_tokens
    if estimate.output_usd and estimate.input_usd is not None:
        room = min(room, (left_usd - estimate.input_usd) / estimate.output_usd * estimate.output_tokens)
    return None if room >= estimate.output_tokens else max(int(room), estimate.least_output_tokens)


def _lack(budget: Budget, used: Usage, estimate: Estimate) -> TooLittle | None:
    """That the request does not fit into what nobody has used yet; None if it does, as far as can be told."""
    tokens, most = used.input_tokens + used.output_tokens, budget.max_tokens
    if most is not None and tokens + estimate.least_tokens > most:
        why = (
            f"the next request needs about {estimate.least_tokens:,} tokens, by an estimate, and {most - tokens:,} of "
            f"{most:,} are left"
        )
        return TooLittle(why=why, wanted=tokens + estimate.least_tokens, most=most)
    cost, most_usd, usd = used.cost_usd or 0.0, budget.max_cost_usd, estimate.least_usd
    if most_usd is not None and usd is not None and cost + usd > most_usd:
        why = (
            f"the next request needs about {usd:.4f} USD, by an estimate, and {most_usd - cost:.4f} of {most_usd:.4f} "
            "are left"
        )
        return TooLittle(why=why, wanted=cost + usd, most=most_usd, is_money=True)
    return None
