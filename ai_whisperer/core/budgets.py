"""Whether a budget is spent, and whether it makes sense."""

from __future__ import annotations

from msgspec.structs import replace

from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.limits import EffectiveLimits
from ai_whisperer.domain.tasks import Budget, Origin, TaskRecord
from ai_whisperer.errors import InvalidInputError

_LONGEST_TIMEOUT_SECONDS = 100 * 366 * 86_400.0
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
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST_TIMEOUT_SECONDS:
        raise InvalidInputError(
            f"A timeout must be a number of seconds such as 60, more than 0 and at most 100 years, not {seconds!r:.60}."
        )
    return now + seconds


def earliest(*times: float | None) -> float | None:
    """The first of these times; None if none is given."""
    return min((time for time in times if time is not None), default=None)


def overdrawn(budget: Budget, used: Usage) -> str | None:
    """Which part of the budget is used up, in words; None if there is some left."""
    tokens = used.input_tokens + used.output_tokens
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return f"{tokens:,} of {budget.max_tokens:,} tokens are used"
    if budget.max_cost_usd is not None and used.without_price:
        return (
            f"the price of the model is not known for {used.without_price:,} of {tokens:,} tokens, so a budget in "
            "money cannot be kept: use max_tokens"
        )
    cost = used.cost_usd or 0.0
    if budget.max_cost_usd is not None and cost >= budget.max_cost_usd:
        return f"{cost:.4f} of {budget.max_cost_usd:.4f} USD are used"
    return None


def tree_budget(given: Budget | None, limits: EffectiveLimits) -> Budget | None:
    """The budget of a task at the root of a tree: what was given for it and, for the rest, what its agent's limits say.

    None if neither says anything.
    """
    tokens = limits.max_tokens_per_tree or None
    cost_usd = limits.max_cost_usd_per_tree or None
    if tokens is None and cost_usd is None:
        return given
    given = given or Budget()
    return Budget(
        max_tokens=tokens if given.max_tokens is None else given.max_tokens,
        max_cost_usd=cost_usd if given.max_cost_usd is None else given.max_cost_usd,
    )


def on_default_budget(task: TaskRecord, limits: EffectiveLimits) -> TaskRecord:
    """The task with the budget that its agent's limits give to a tree, if it is the root of one and has none."""
    if not (limits.max_tokens_per_tree or limits.max_cost_usd_per_tree) or task.root_id != task.id:
        return task
    return replace(task, origin=replace(task.origin or Origin(), budget=tree_budget(task.budget, limits)))
