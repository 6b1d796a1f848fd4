"""Whether a budget is spent, and whether it makes sense."""

from __future__ import annotations

from ai_whisperer.errors import InvalidInputError
from ai_whisperer.records import Budget, Usage

_LONGEST_SECONDS = 100 * 366 * 86_400.0


def check_budget(budget: Budget) -> None:
    """Raise `InvalidInputError` unless the budget lets something be done."""
    if not isinstance(budget, Budget):
        raise InvalidInputError(f"A budget is a Budget(max_tokens=…, max_cost_usd=…), not {type(budget).__name__}.")
    if budget.max_tokens is not None and not (isinstance(budget.max_tokens, int) and budget.max_tokens > 0):
        raise InvalidInputError(f"budget.max_tokens must be a whole number above 0, not {budget.max_tokens!r}.")
    cost = budget.max_cost_usd
    if cost is not None and not (isinstance(cost, int | float) and 0 < cost < float("inf")):
        raise InvalidInputError(f"budget.max_cost_usd must be an amount above 0, not {cost!r}.")


def deadline_after(seconds: float | None, *, now: float) -> float | None:
    """The time that lies so many seconds ahead; raises `InvalidInputError` if that makes no sense."""
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_SECONDS:
        raise InvalidInputError(f"A timeout must be more than 0 seconds and at most 100 years, not {seconds!r}.")
    return now + seconds


def earliest(*times: float | None) -> float | None:
    """The first of these times; None if none is given."""
    return min((time for time in times if time is not None), default=None)


def overdrawn(budget: Budget, used: Usage) -> str | None:
    """Which part of the budget is used up, in words; None if there is some left."""
    tokens = used.input_tokens + used.output_tokens
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return f"{tokens:,} of {budget.max_tokens:,} tokens are used"
    cost = used.cost_usd or 0.0
    if budget.max_cost_usd is not None and cost >= budget.max_cost_usd:
        return f"{cost:.4f} of {budget.max_cost_usd:.4f} USD are used"
    return None
