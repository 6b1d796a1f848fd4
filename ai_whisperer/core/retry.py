"""Whether and when a failed model request is repeated."""

from __future__ import annotations

from collections.abc import Callable

from ai_whisperer.definition import RetryPolicy
from ai_whisperer.errors import ModelError


def delay_before_retry(
    policy: RetryPolicy, *, attempt: int, error: ModelError, chance: Callable[[], float]
) -> float | None:
    """Seconds to wait after the failed attempt number `attempt` (from 1), or None to give up.

    The wait doubles with each attempt and is spread by up to a half, so that agents that failed together do not come
    back together; `chance` gives a number in [0, 1). A provider's Retry-After is a lower bound, never cut short.
    """
    if not error.retryable or attempt >= policy.max_attempts:
        return None
    exponential = policy.first_delay_seconds * 2.0 ** min(attempt - 1, 60)
    wait = min(exponential, policy.max_delay_seconds) * (1.0 + chance() / 2)
    return max(wait, error.retry_after_seconds or 0.0)
