import pytest

from ai_whisperer.core.retry import delay_before_retry
from ai_whisperer.definition import RetryPolicy
from ai_whisperer.errors import ModelError, ModelRateLimitError, ModelRefusedError, ModelServerError

POLICY = RetryPolicy(max_attempts=4, first_delay_seconds=1.0, max_delay_seconds=3.0)


def delay(attempt: int, error: ModelError, chance: float = 0.0) -> float | None:
    return delay_before_retry(POLICY, attempt=attempt, error=error, chance=lambda: chance)


def test_the_wait_doubles_up_to_the_longest() -> None:
    assert [delay(attempt, ModelServerError()) for attempt in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_the_last_attempt_is_not_repeated() -> None:
    assert delay(4, ModelServerError()) is None


def test_what_the_provider_refuses_is_not_repeated() -> None:
    assert delay(1, ModelRefusedError()) is None


def test_chance_spreads_the_wait_by_up_to_a_half() -> None:
    assert delay(1, ModelServerError(), chance=0.5) == pytest.approx(1.25)


def test_retry_after_is_never_cut_short() -> None:
    assert delay(1, ModelRateLimitError(retry_after_seconds=90.0)) == 90.0
    assert delay(3, ModelRateLimitError(retry_after_seconds=0.5)) == 3.0


def test_a_very_late_attempt_does_not_overflow() -> None:
    policy = RetryPolicy(max_attempts=10_000)
    assert delay_before_retry(policy, attempt=5_000, error=ModelServerError(), chance=lambda: 0.0) == 60.0
