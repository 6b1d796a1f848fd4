"""What the steps of a task have used."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.tasks import STARTED, TOOL, StepRecord

WAITING_TOOLS = frozenset({"acquire_lock", "send_mail_with_switch"})
"""The tools whose calls last as long as they wait for somebody else: that is no work."""

MOST_TOKENS = 10**9
MOST_USD = 10**6
"""No answer has or costs more: a figure beyond is a mistake of the provider."""


def is_believable(usage: Usage) -> bool:
    """Whether the figures that a provider reports can be true, as they nearly always can."""
    sent, got, cached, cost = usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd
    if not (type(sent) is type(got) is type(cached) is int):
        return False
    if cost is not None and not _is_cost(cost):
        return False
    return 0 <= cached <= sent <= MOST_TOKENS and 0 <= got <= MOST_TOKENS


def believable(usage: Usage, estimate: Callable[[], Usage]) -> Usage:
    """The usage as a provider reports it, with the estimate where its figures cannot be true: a budget is to be kept.

    That are numbers of tokens that are negative, no whole numbers or beyond `MOST_TOKENS`. A cost that is negative, no
    number or beyond `MOST_USD` is not known. More tokens than were sent cannot come from a cache.
    """
    if not (_is_count(usage.input_tokens) and _is_count(usage.output_tokens)):
        guess = estimate()
        usage = replace(
            usage,
            input_tokens=usage.input_tokens if _is_count(usage.input_tokens) else guess.input_tokens,
            output_tokens=usage.output_tokens if _is_count(usage.output_tokens) else guess.output_tokens,
        )
    if not _is_count(usage.cached_tokens) or usage.cached_tokens > usage.input_tokens:
        usage = replace(usage, cached_tokens=0)
    if usage.cost_usd is not None and not _is_cost(usage.cost_usd):
        usage = replace(usage, cost_usd=None)
    return usage


def _is_count(given: object) -> bool:
    return type(given) is int and 0 <= given <= MOST_TOKENS


def _is_cost(given: object) -> bool:
    return (type(given) is float or type(given) is int) and 0 <= given <= MOST_USD


def usage_since(before: StepRecord | None, step: StepRecord) -> Usage:
    """What the step has used more than when it was as it is in `before`, without an answer or a result."""
    used = usage_of((step,))
    if before is None or not before.requests:
        return used
    return replace(
        used,
        model_calls=used.model_calls - before.requests,
        wall_seconds=used.wall_seconds - before.request_seconds,
    )


def usage_of(steps: Iterable[StepRecord]) -> Usage:
    """What these steps have used together so far: tool calls once they have ended, others for requests that have."""
    sent = got = cached = unpriced = model_calls = tool_calls = memory = mails = 0
    wall = cpu = 0.0
    cost: float | None = None
    for step in steps:
        if step.kind is not TOOL:
            model_calls += step.requests
            wall += step.request_seconds
            if step.answer is not None:
                used = step.answer.usage
                sent += used.input_tokens
                got += used.output_tokens
                cached += used.cached_tokens
                unpriced += used.without_price
                if used.cost_usd is not None:
                    cost = used.cost_usd + (cost or 0.0)
        elif step.state is not STARTED:
            tool_calls += 1
            if step.call is None or step.call.name not in WAITING_TOOLS:
                wall += 0.0 if step.finished_at is None else seconds_between(step.started_at, step.finished_at)
            result = step.result
            if result is not None:
                mails += result.mails_sent
                if result.run is not None:
                    cpu += result.run.cpu_seconds
                    memory = max(memory, result.run.memory_bytes)
    return Usage(
        input_tokens=sent,
        output_tokens=got,
        cached_tokens=cached,
        cost_usd=cost,
        model_calls=model_calls,
        tool_calls=tool_calls,
        wall_seconds=wall,
        cpu_seconds=cpu,
        memory_bytes=memory,
        mails_sent=mails,
        unpriced_tokens=unpriced,
    )


def usage_without(total: Usage, part: Usage) -> Usage:
    """A total without a part of it. The memory stays: it is that of the largest, which is not taken back."""
    cost = total.cost_usd
    return Usage(
        input_tokens=total.input_tokens - part.input_tokens,
        output_tokens=total.output_tokens - part.output_tokens,
        cached_tokens=total.cached_tokens - part.cached_tokens,
        cost_usd=None if cost is None else cost - (part.cost_usd or 0.0),
        model_calls=total.model_calls - part.model_calls,
        tool_calls=total.tool_calls - part.tool_calls,
        wall_seconds=total.wall_seconds - part.wall_seconds,
        cpu_seconds=total.cpu_seconds - part.cpu_seconds,
        memory_bytes=total.memory_bytes,
        mails_sent=total.mails_sent - part.mails_sent,
        unpriced_tokens=total.without_price - part.without_price,
    )


def seconds_between(begun_at: float, ended_at: float) -> float:
    """How long something took, to the microsecond; clocks may be set back.

    By whole microseconds, since `round` makes a decimal text of the number and reads that.
    """
    seconds = ended_at - begun_at
    return int(seconds * 1e6 + 0.5) / 1e6 if seconds > 0.0 else 0.0
