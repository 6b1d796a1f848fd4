"""What follows when a model request fails: whether it is repeated, and when. `runtime/agents/model_step` does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ai_whisperer.domain.definition import RetryPolicy
from ai_whisperer.errors import ModelError, ModelUnavailableError

_SPREAD = 0.5
_LEAST_SECONDS = 0.1
"""Nobody asks a provider that is down more often, whatever the policy says of other failures."""
_LONGEST_TOLD_SECONDS = 1e15
"""A provider may ask for more than a number can hold; it is told as this."""


class Wait(NamedTuple):
    """How long to wait before the next attempt; what the provider asked for if that is longer, and the limit then."""

    seconds: float
    refused_seconds: float | None = None
    limit: str = "max_retry_after_seconds"


def wait_before_retry(
    policy: RetryPolicy,
    *,
    attempt: int,
    error: ModelError,
    max_retry_after_seconds: float,
    chance: Callable[[], float],
    refusals_in_a_row: int = 0,
) -> Wait | None:
    """How long to wait after the failed attempt number `attempt` (from 1), or None to give up.

    The wait doubles with each attempt, or with each of the refusals that others of the account had before, and is
    spread by up to a half, so that agents that failed together do not come back together; `chance` gives a number in
    [0, 1). What a provider asks for with Retry-After is a lower bound, up to `max_retry_after_seconds`: no provider can
    park a task for days.
    """
    if not error.retryable or attempt >= policy.max_attempts:
        return None
    exponential = policy.first_delay_seconds * 2.0 ** min(max(attempt, refusals_in_a_row) - 1, 60)
    wait = min(exponential, policy.max_delay_seconds) * (1.0 + chance() * _SPREAD)
    return _at_least_as_asked(wait, error, max_retry_after_seconds)


def wait_in_outage(
    policy: RetryPolicy,
    *,
    outage_seconds: float,
    error: ModelError,
    max_outage_seconds: float,
    max_retry_after_seconds: float,
    chance: Callable[[], float],
    shut_seconds: float = 0.0,
) -> Wait | None:
    """How long to wait for a provider that has held a request up for `outage_seconds` by now, or None to give up.

    Each wait is about as long as that, or as it has let nobody in (`shut_seconds`), up to `max_delay_seconds`, and is
    spread by a half to both sides: after a few of them the agents that failed together ask at times of their own, and
    do not come all at once when the provider is back. The last try is when `max_outage_seconds` are over, or what the
    error says if that is less.
    """
    left = longest_outage(error, max_outage_seconds=max_outage_seconds) - outage_seconds
    if left <= 0:
        return None
    about = _about(policy, max(outage_seconds, shut_seconds))
    wait = min(about * (1.0 + (2.0 * chance() - 1.0) * _SPREAD), left)
    asked = _at_least_as_asked(wait, error, min(max_retry_after_seconds, left))
    is_cut = asked.refused_seconds is not None and left < max_retry_after_seconds
    return asked._replace(limit="max_outage_seconds") if is_cut else asked


def longest_outage(error: ModelError, *, max_outage_seconds: float) -> float:
    """So long an outage is waited out that looks like this."""
    longest = error.longest_outage_seconds if isinstance(error, ModelUnavailableError) else None
    return min(max_outage_seconds, longest or max_outage_seconds)


def is_asked_for(error: ModelError) -> bool:
    """Whether the provider itself says how long it wants to be left alone."""
    return _asked_seconds(error.retry_after_seconds) > 0


def wait_of_others(
    policy: RetryPolicy, error: ModelError, *, shut_seconds: float, max_retry_after_seconds: float
) -> float:
    """How long others of the account wait after a failure for which the request itself is not repeated."""
    return _at_least_as_asked(_about(policy, shut_seconds), error, max_retry_after_seconds).seconds


def _about(policy: RetryPolicy, held_up_seconds: float) -> float:
    return max(min(max(held_up_seconds, policy.first_delay_seconds), policy.max_delay_seconds), _LEAST_SECONDS)


def _at_least_as_asked(wait: float, error: ModelError, max_retry_after_seconds: float) -> Wait:
    asked = _asked_seconds(error.retry_after_seconds)
    seconds = max(wait, min(asked, max_retry_after_seconds))
    return Wait(seconds, asked if asked > seconds else None)


def longest_wait(policy: RetryPolicy, *, max_retry_after_seconds: float) -> float:
    """No wait is longer, whatever the clock was when it began."""
    return max(max(policy.max_delay_seconds, _LEAST_SECONDS) * (1.0 + _SPREAD), max_retry_after_seconds)


def _asked_seconds(asked: object) -> float:
    """The wait that was asked for as a number that can be told; 0 for what is none: not a number, negative."""
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked > 0:
        return 0.0
    return float(min(asked, _LONGEST_TOLD_SECONDS))
