"""Whether a budget is spent, and whether it makes sense."""

from __future__ import annotations

from ai_whisperer.conversation import Usage
from ai_whisperer.errors import InvalidInputError
from ai_whisperer.records import Budget

_LONGEST_SECONDS = 100 * 366 * 86_400.0
_MOST_TOKENS = 10**15
_MOST_USD = 10**12


def check_budget(budget: Budget) -> None:
    """Raise `InvalidInputError` unless the budget lets something be done, and can be kept as it is."""
    if not isinstance(budget, Budget):
        raise InvalidInputError(f"A budget is a Budget(max_tokens=…, max_cost_usd=…), not {type(budget).__name__}.")
    for field, kinds, most in (("max_tokens", int, _MOST_TOKENS), ("max_cost_usd", int | float, _MOST_USD)):
        value = getattr(budget, field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= most):
            raise InvalidInputError(f"budget.{field} must be a number above 0 and at most {most:,}.")


def deadline_after(seconds: float | None, *, now: float) -> float | None:
    """The time that lies so many seconds ahead; raises `InvalidInputError` if that makes no sense."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_SECONDS:
        raise InvalidInputError("A timeout must be more than 0 seconds and at most 100 years.")
    return now + seconds


def earliest(*times: float | None) -> float | None:
    """The first of these times; None if none is given."""
    return min((time for time in times if time is not None), default=None)


def overdrawn(budget: Budget, used: Usage) -> str | None:
    """Which part of the budget is used up, in words; None if there is some left."""
    tokens = used.input_tokens + used.output_tokens
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return f"{tokens:,} of {budget.max_tokens:,} tokens are used"
    if budget.max_cost_usd is not None and tokens and used.cost_usd is None:
        return "the price of the model is not known, so a budget in money cannot be kept: use max_tokens"
    cost = used.cost_usd or 0.0
    if budget.max_cost_usd is not None and cost >= budget.max_cost_usd:
        return f"{cost:.4f} of {budget.max_cost_usd:.4f} USD are used"
    return None
