"""Counts for Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ai_whisperer.records import AgentState
from ai_whisperer.runtime.manager import AsyncAgentSessionManager

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """What the server counts. `/metrics` shows it beside the state of the open sessions."""

    def __init__(self, sessions: Callable[[], Sequence[AsyncAgentSessionManager]]) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._requests = Counter(
            "whisperer_requests", "Requests by method and outcome", ["method", "outcome"], registry=self._registry
        )
        self._seconds = Histogram(
            "whisperer_request_seconds", "Time to answer a request", buckets=_SECONDS, registry=self._registry
        )
        self._notifications = Counter(
            "whisperer_notifications_sent", "Notifications sent to clients", registry=self._registry
        )
        self._slow = Counter("whisperer_slow_clients", "Clients closed for being slow", registry=self._registry)
        self.connections = Gauge("whisperer_connections", "Open WebSockets", registry=self._registry)
        self.refused = Counter(
            "whisperer_refused", "Requests without the right token, host or origin", registry=self._registry
        )
        self._registry.register(_SessionMetrics(sessions))
        self._children: dict[tuple[str, str], Counter] = {}

    def count_request(self, method: str, *, outcome: str, seconds: float = 0.0) -> None:
        key = (method, outcome)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._requests.labels(*key)
        child.inc()
        self._seconds.observe(seconds)

    def count_notifications(self, count: int) -> None:
        self._notifications.inc(count)

    def count_slow_client(self) -> None:
        self._slow.inc()

    def text(self) -> bytes:
        """All of it in the text format of Prometheus."""
        return generate_latest(self._registry)


class _SessionMetrics:
    """Looks at the open sessions when it is asked."""

    def __init__(self, sessions: Callable[[], Sequence[AsyncAgentSessionManager]]) -> None:
        self._sessions = sessions

    def collect(self) -> Iterator[Metric]:
        sessions = self._sessions()
        states: Counts[AgentState] = Counts()
        waiting = tasks = tokens_in = tokens_out = 0
        cost = 0.0
        for session in sessions:
            for status in session.list_agents():
                states[status.state] += 1
                waiting += status.queue_size
                tasks += status.tasks
                tokens_in += status.usage.input_tokens
                tokens_out += status.usage.output_tokens
                cost += status.usage.cost_usd or 0.0
        yield GaugeMetricFamily("whisperer_sessions_open", "Open sessions", value=len(sessions))
        agents = GaugeMetricFamily("whisperer_agents", "Agents of the open sessions by state", labels=["state"])
        for state in AgentState:
            agents.add_metric([state.value], states[state])
        yield agents
        yield GaugeMetricFamily("whisperer_queued_work", "Tasks and mails that wait", value=waiting)
        yield CounterMetricFamily("whisperer_tasks_begun", "Tasks that were begun", value=tasks)
        tokens = CounterMetricFamily("whisperer_tokens", "Tokens used by direction", labels=["direction"])
        tokens.add_metric(["input"], tokens_in)
        tokens.add_metric(["output"], tokens_out)
        yield tokens
        yield CounterMetricFamily("whisperer_cost_usd", "What the models cost, as far as prices are known", value=cost)
