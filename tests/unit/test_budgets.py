"""Budgets: which make sense, which are spent, and that what is accepted can be read again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_whisperer.core.budgets import check_budget, overdrawn
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.tasks import Budget, Origin
from ai_whisperer.errors import InvalidInputError

_ODD = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), st.text(max_size=3))


@given(tokens=_ODD, cost=_ODD)
def test_a_budget_that_is_accepted_can_be_read_again(tokens: Any, cost: Any) -> None:
    budget = Budget(max_tokens=tokens, max_cost_usd=cost)
    try:
        check_budget(budget)
    except InvalidInputError:
        return
    origin = Origin(root_id="t", budget=budget)
    assert msgspec.json.decode(msgspec.json.encode(origin), type=Origin) == origin


@pytest.mark.parametrize(
    "budget", [Budget(max_tokens=True), Budget(max_cost_usd=True), Budget(max_cost_usd=10**400), Budget(max_tokens=0)]
)
def test_a_budget_that_makes_no_sense_is_refused(budget: Budget) -> None:
    with pytest.raises(InvalidInputError, match=r"budget\.max"):
        check_budget(budget)


@pytest.mark.parametrize(
    ("budget", "used", "why"),
    [
        (Budget(max_tokens=10), Usage(input_tokens=6, output_tokens=3), None),
        (Budget(max_tokens=10), Usage(input_tokens=6, output_tokens=4), "10 of 10 tokens"),
        (Budget(max_cost_usd=1.0), Usage(input_tokens=5, cost_usd=0.5), None),
        (Budget(max_cost_usd=1.0), Usage(input_tokens=5, cost_usd=1.5), "1.5000 of 1.0000 USD"),
        (Budget(max_cost_usd=1.0), Usage(), None),
        (Budget(max_cost_usd=1.0), Usage(input_tokens=5), "the price of the model is not known"),
        (Budget(max_cost_usd=1.0), Usage(cost_usd=0.5) + Usage(input_tokens=5), "not known for 5 of 5 tokens"),
        (Budget(max_cost_usd=1.0), Usage(input_tokens=9, cost_usd=0.5) + Usage(), None),
        (Budget(max_tokens=10), Usage(cost_usd=0.5) + Usage(input_tokens=5), None),
    ],
)
def test_a_budget_is_spent_when_it_is_used_up_or_cannot_be_kept(budget: Budget, used: Usage, why: str | None) -> None:
    found = overdrawn(budget, used)
    assert found is None if why is None else found is not None and why in found
