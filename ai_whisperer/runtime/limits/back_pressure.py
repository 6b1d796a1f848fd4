"""Back-pressure: what whoever has work for an agent is told when its queue is full."""

from __future__ import annotations

from ai_whisperer.domain.limits import LimitAction, LimitScope
from ai_whisperer.domain.notifications.limits import LimitReached
from ai_whisperer.errors import QueueFullError
from ai_whisperer.runtime.limits.reached import ReachedLimits
from ai_whisperer.runtime.session.clock import SessionClock
from ai_whisperer.runtime.session.roles import Agent

_SHORTEST_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0


def queue_full(agent: Agent, reached: ReachedLimits, clock: SessionClock) -> QueueFullError:
    """Announce that the agent's queue is full; returns the error that says when to try again."""
    waiting, most = len(agent.work.queue), agent.limits.max_queue_length
    seconds = _seconds_until_room(agent, clock)
    reached.tell_alone(
        LimitReached(
            scope=LimitScope.AGENT,
            limit="max_queue_length",
            action=LimitAction.REFUSED,
            used=waiting,
            most=most,
            agent_id=agent.agent_id,
            task_id=None,
            retry_after_seconds=seconds,
        )
    )
    error = QueueFullError(
        f"The queue of '{agent.agent_id}' is full: {waiting:,} items wait and {most:,} may (max_queue_length); nothing "
        f"was accepted. Try again later, in about {seconds:g} seconds, or do without."
    )
    error.data = {"retryAfterSeconds": seconds}
    return error


def _seconds_until_room(agent: Agent, clock: SessionClock) -> float:
    """A guess: a sleeper wakes when it wakes, and a task that runs takes as long again as it has taken so far."""
    now, sleep = clock.now(), agent.record.sleep
    if sleep is not None and sleep.until is not None:
        seconds = sleep.until - (clock.wall() if sleep.by_wall_clock else now)
    elif agent.work.loops:
        seconds = min(now - (loop.task.started_at or now) for loop in agent.work.loops.values())
    else:
        seconds = _LONGEST_RETRY_SECONDS
    return round(min(max(seconds, _SHORTEST_SECONDS), _LONGEST_RETRY_SECONDS), 1)
