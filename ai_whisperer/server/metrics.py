"""Counts for Prometheus.

Every request is counted, so counting must cost next to nothing: what Prometheus makes of the counts is worked out when
it asks for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.tasks import Retried, TaskState, WorkCounts
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Count:
    """How many there are, or were."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self) -> None:
        self.value += 1

    def dec(self) -> None:
        self.value -= 1


class Metrics:
    """What the server counts. `/metrics` shows it beside the state of the open sessions."""

    def __init__(self, sessions: Callable[[], Sequence[AsyncAgentSessionManager]]) -> None:
        self._sessions = sessions
        self._requests: dict[tuple[str, str], int] = {}
        self._within = [0] * (len(_SECONDS) + 1)
        self._seconds = 0.0
        self._notifications = 0
        self._slow = 0
        self.connections = Count()
        self._refused = 0
        self._wrong_tokens = 0

    def count_request(self, method: str, *, outcome: str, seconds: float = 0.0) -> None:
        key = (method, outcome)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._within[bisect_left(_SECONDS, seconds)] += 1
        self._seconds += seconds

    def count_refusal(self, *, is_wrong_token: bool) -> None:
        self._refused += 1
        self._wrong_tokens += is_wrong_token

    def count_notifications(self, count: int) -> None:
        self._notifications += count

    def count_slow_client(self) -> None:
        self._slow += 1

    def text(self) -> bytes:
        """All of it in the text format of Prometheus."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """What Prometheus calls when it wants to know."""
        yield from self._of_requests()
        yield from self._of_clients()
        yield from _of_sessions(self._sessions())

    def _of_requests(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "whisperer_requests", "Requests by method and outcome", labels=["method", "outcome"]
        )
        for key, count in self._requests.items():
            requests.add_metric(key, count)
        yield requests
        bounds = [*map(str, _SECONDS), "+Inf"]
        counts = list(zip(bounds, accumulate(self._within), strict=True))
        yield HistogramMetricFamily(
            "whisperer_request_seconds", "Time to answer a request", buckets=counts, sum_value=self._seconds
        )

    def _of_clients(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield CounterMetricFamily(
            "whisperer_notifications_sent", "Notifications sent to clients", value=self._notifications
        )
        yield CounterMetricFamily("whisperer_slow_clients", "Clients closed for being slow", value=self._slow)
        yield GaugeMetricFamily("whisperer_connections", "Open WebSockets", value=self.connections.value)
        yield CounterMetricFamily(
            "whisperer_refused", "Requests without the right token, host or origin", value=self._refused
        )
        yield CounterMetricFamily("whisperer_wrong_tokens", "Requests with a wrong token", value=self._wrong_tokens)


def _of_sessions(sessions: Sequence[AsyncAgentSessionManager]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    states: Counts[AgentState] = Counts()
    waiting = held_up = 0
    totals = [session.used for session in sessions]
    used = sum((each.usage for each in totals), Usage())
    for session in sessions:
        for status in session.list_agents():
            states[status.state] += 1
            waiting += status.queue_size
            held_up += status.retry_at is not None
    yield GaugeMetricFamily("whisperer_sessions_open", "Open sessions", value=len(sessions))
    agents = GaugeMetricFamily("whisperer_agents", "Agents of the open sessions by state", labels=["state"])
    for state in AgentState:
        agents.add_metric([state.value], states[state])
    yield agents
    yield GaugeMetricFamily(
        "whisperer_agents_waiting_for_provider", "Agents that wait to ask their model again", value=held_up
    )
    yield from _of_work([session.work_counts for session in sessions])
    reached = CounterMetricFamily("whisperer_limits_reached", "How often limits were reached", labels=["limit"])
    for limit, count in sorted(_limits_reached(sessions).items()):
        reached.add_metric([limit], count)
    yield reached
    yield GaugeMetricFamily("whisperer_queued_work", "Tasks and mails that wait", value=waiting)
    yield CounterMetricFamily(
        "whisperer_tasks_begun", "Tasks that were begun", value=sum(each.tasks for each in totals)
    )
    tokens = CounterMetricFamily("whisperer_tokens", "Tokens used by direction", labels=["direction"])
    tokens.add_metric(["input"], used.input_tokens)
    tokens.add_metric(["output"], used.output_tokens)
    yield tokens
    for name, told, value in (
        ("cost_usd", "What the models cost, as far as prices are known", used.cost_usd or 0.0),
        ("model_calls", "Requests to models", used.model_calls),
        ("tool_calls", "Calls of tools", used.tool_calls),
        ("step_seconds", "How long model requests and tools took", used.wall_seconds),
        ("tool_cpu_seconds", "CPU time of the processes of tools", used.cpu_seconds),
        ("mails_sent", "Mails that agents sent", used.mails_sent),
        ("mails_received", "Mails that agents and people were sent", sum(each.mails_received for each in totals)),
    ):
        yield CounterMetricFamily(f"whisperer_{name}", told, value=value)
    contexts = sum(each.context_bytes for each in totals)
    yield GaugeMetricFamily("whisperer_context_bytes", "What conversations take in memory now", value=contexts)
    yield GaugeMetricFamily(
        "whisperer_tool_memory_bytes", "Memory of the largest process of a tool so far", value=used.memory_bytes
    )


def _of_work(counts: Sequence[WorkCounts]) -> Iterator[Metric]:
    """What has become of tasks since the sessions were opened, and what waits for a person now."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    ended = CounterMetricFamily("whisperer_tasks_ended", "Tasks that ended, by outcome", labels=["outcome"])
    for state in TaskState:
        if state.ended:
            ended.add_metric([state.value], sum(each.ended[state] for each in counts))
    yield ended
    retried = CounterMetricFamily(
        "whisperer_retries", "Model requests, loops and tasks that were begun again", labels=["kind"]
    )
    for kind in Retried:
        retried.add_metric([kind.value], sum(each.retried[kind] for each in counts))
    yield retried
    dead = GaugeMetricFamily("whisperer_dead_letters", "What could not be done and waits for a person", labels=["kind"])
    dead.add_metric(["task"], sum(each.dead_tasks for each in counts))
    dead.add_metric(["mail"], sum(each.dead_mails for each in counts))
    yield dead
    pending = sum(each.pending_approvals for each in counts)
    yield GaugeMetricFamily("whisperer_pending_approvals", "Tool calls that wait for a person", value=pending)


def _limits_reached(sessions: Sequence[AsyncAgentSessionManager]) -> Counts[str]:
    return sum((session.limits_reached for session in sessions), Counts())
