import math

import pytest

from ai_whisperer.core.model_failures import Wait, longest_wait, wait_before_retry, wait_in_outage
from ai_whisperer.domain.definition import RetryPolicy
from ai_whisperer.errors import (
    ModelError,
    ModelRateLimitError,
    ModelRefusedError,
    ModelServerError,
    ModelUnavailableError,
)

POLICY = RetryPolicy(max_attempts=4, first_delay_seconds=1.0, max_delay_seconds=3.0)


def delay(attempt: int, error: ModelError, chance: float = 0.0) -> float | None:
    wait = wait_before_retry(
        POLICY, attempt=attempt, error=error, max_retry_after_seconds=3_600.0, chance=lambda: chance
    )
    return None if wait is None else wait.seconds


def test_the_wait_doubles_up_to_the_longest() -> None:
    assert [delay(attempt, ModelServerError()) for attempt in (1, 2, 3)] == [1.0, 2.0, 3.0]


def test_the_last_attempt_is_not_repeated() -> None:
    assert delay(4, ModelServerError()) is None


def test_what_the_provider_refuses_is_not_repeated() -> None:
    assert delay(1, ModelRefusedError()) is None


def test_chance_spreads_the_wait_by_up_to_a_half() -> None:
    assert delay(1, ModelServerError(), chance=0.5) == pytest.approx(1.25)


def test_retry_after_is_a_lower_bound() -> None:
    assert delay(1, ModelRateLimitError(retry_after_seconds=90.0)) == 90.0
    assert delay(3, ModelRateLimitError(retry_after_seconds=0.5)) == 3.0


@pytest.mark.parametrize("asked", [3_600.1, 1e9, 1e300, math.inf, 10**400])
def test_a_provider_that_asks_for_too_long_a_wait_is_asked_again_after_the_longest(asked: float) -> None:
    wait = wait_before_retry(
        POLICY,
        attempt=1,
        error=ModelRateLimitError(retry_after_seconds=asked),
        max_retry_after_seconds=3_600.0,
        chance=lambda: 0.0,
    )
    assert wait is not None
    assert (wait.seconds, wait.refused_seconds) == (3_600.0, min(asked, 1e15))


@pytest.mark.parametrize("asked", [math.nan, -1.0, -math.inf, -(10**400), 0, True, "600", None])
def test_a_wait_that_is_none_is_not_kept(asked: float) -> None:
    assert delay(1, ModelRateLimitError(retry_after_seconds=asked)) == 1.0


def test_no_wait_is_longer_than_the_longest() -> None:
    for most in (0.5, 3_600.0):
        longest = longest_wait(POLICY, max_retry_after_seconds=most)
        error = ModelRateLimitError(retry_after_seconds=math.inf)
        for attempt in (1, 2, 3):
            wait = wait_before_retry(
                POLICY, attempt=attempt, error=error, max_retry_after_seconds=most, chance=lambda: 0.999
            )
            assert wait is not None
            assert wait.seconds <= longest


def test_a_very_late_attempt_does_not_overflow() -> None:
    policy = RetryPolicy(max_attempts=10_000)
    wait = wait_before_retry(
        policy, attempt=5_000, error=ModelServerError(), max_retry_after_seconds=1.0, chance=lambda: 0.0
    )
    assert wait is not None
    assert wait.seconds == 60.0


def in_outage(
    outage_seconds: float,
    *,
    policy: RetryPolicy = POLICY,
    asked: float | None = None,
    chance: float = 0.5,
    most: float = 1_800.0,
) -> Wait | None:
    return wait_in_outage(
        policy,
        outage_seconds=outage_seconds,
        error=ModelUnavailableError(retry_after_seconds=asked),
        max_outage_seconds=most,
        max_retry_after_seconds=3_600.0,
        chance=lambda: chance,
    )


def test_a_wait_in_an_outage_is_as_long_as_the_outage_so_far_up_to_the_longest() -> None:
    assert [in_outage(seconds) for seconds in (0.0, 0.5, 2.0, 500.0)] == [Wait(1.0), Wait(1.0), Wait(2.0), Wait(3.0)]


def test_chance_spreads_the_wait_in_an_outage_by_a_half_to_both_sides() -> None:
    assert (in_outage(2.0, chance=0.0), in_outage(2.0, chance=1.0)) == (Wait(1.0), Wait(3.0))


def test_the_last_try_in_an_outage_is_when_the_limit_is_reached() -> None:
    assert in_outage(1_799.0) == Wait(1.0)
    assert in_outage(1_800.0) is None
    assert in_outage(5_000.0) is None


def test_retry_after_holds_in_an_outage() -> None:
    assert in_outage(1.0, asked=600.0) == Wait(600.0)
    assert in_outage(1.0, asked=9_000.0, most=7_200.0) == Wait(3_600.0, 9_000.0)


def test_retry_after_does_not_make_an_outage_longer_than_its_limit() -> None:
    assert in_outage(100.0, asked=3_600.0) == Wait(1_700.0, 3_600.0, "max_outage_seconds")


def test_a_policy_without_delays_does_not_ask_a_provider_that_is_down_all_the_time() -> None:
    at_once = RetryPolicy(first_delay_seconds=0.0, max_delay_seconds=0.0)
    wait = in_outage(10.0, policy=at_once, chance=0.0)
    assert wait is not None
    assert wait.seconds >= 0.05
    assert longest_wait(at_once, max_retry_after_seconds=0.001) >= 0.15
