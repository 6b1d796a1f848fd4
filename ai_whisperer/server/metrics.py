"""Counts for Prometheus.

Every request is counted, so counting must cost next to nothing: what Prometheus makes of the counts is worked out when
it asks for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ai_whisperer.domain.agents import AgentState
from ai_whisperer.domain.conversation import Usage
from ai_whisperer.domain.providers import GateState, ProviderAccount
from ai_whisperer.domain.tasks import Repaired, Retried, TaskState, WorkCounts
from ai_whisperer.runtime.api.manager import AsyncAgentSessionManager

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

NodeFigures = Mapping[str, tuple[str, float, bool]]
"""Figures by their names: what each is, how much, and whether it only rises."""

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """What the server counts. `/metrics` shows it beside the state of the open sessions.

    `connections` is how many WebSockets are open.
    """

    def __init__(
        self, sessions: Callable[[], Sequence[AsyncAgentSessionManager]], node: Callable[[], NodeFigures] = dict
    ) -> None:
        """`node` has the figures of this server as one of several that share a database."""
        self._sessions = sessions
        self._node = node
        self._requests: dict[tuple[str, str], int] = {}
        self._within = [0] * (len(_SECONDS) + 1)
        self._seconds = 0.0
        self._notifications = 0
        self._slow = 0
        self.connections = 0
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
        yield _counter("notifications_sent", "Notifications sent to clients", self._notifications)
        yield _counter("slow_clients", "Clients closed for being slow", self._slow)
        yield _gauge("connections", "Open WebSockets", self.connections)
        yield _counter("refused", "Requests without the right token, host or origin", self._refused)
        yield _counter("wrong_tokens", "Requests with a wrong token", self._wrong_tokens)
        for name, (told, figure, only_rises) in self._node().items():
            yield (_counter if only_rises else _gauge)(name, told, figure)
        yield from _of_sessions(self._sessions())


def _of_sessions(sessions: Sequence[AsyncAgentSessionManager]) -> Iterator[Metric]:
    agents = [status for session in sessions for status in session.list_agents()]
    states = Counts(status.state for status in agents)
    totals = [session.used for session in sessions]
    used = sum((each.usage for each in totals), Usage())
    reached: Counts[str] = sum((session.limits_reached for session in sessions), Counts())
    yield _gauge("sessions_open", "Open sessions", len(sessions))
    by_state = {state.value: states[state] for state in AgentState}
    yield _gauge("agents", "Agents of the open sessions by state", by_state, "state")
    held_up = sum(status.retry_at is not None for status in agents)
    yield _gauge("agents_waiting_for_provider", "Agents that wait to ask their model again", held_up)
    yield from _of_providers(sessions)
    yield from _of_work([session.work_counts for session in sessions])
    yield _counter("limits_reached", "How often limits were reached", dict(sorted(reached.items())), "limit")
    yield _gauge("queued_work", "Tasks and mails that wait", sum(status.queue_size for status in agents))
    yield _counter("tasks_begun", "Tasks that were begun", sum(each.tasks for each in totals))
    tokens = {"input": used.input_tokens, "output": used.output_tokens}
    yield _counter("tokens", "Tokens used by direction", tokens, "direction")
    yield _counter("cost_usd", "What the models cost, as far as prices are known", used.cost_usd or 0.0)
    yield _counter("model_calls", "Requests to models", used.model_calls)
    yield _counter("tool_calls", "Calls of tools", used.tool_calls)
    yield _counter("step_seconds", "How long model requests and tools took", used.wall_seconds)
    yield _counter("tool_cpu_seconds", "CPU time of the processes of tools", used.cpu_seconds)
    yield _counter("mails_sent", "Mails that agents sent", used.mails_sent)
    received = sum(each.mails_received for each in totals)
    yield _counter("mails_received", "Mails that agents and people were sent", received)
    contexts = sum(each.context_bytes for each in totals)
    yield _gauge("context_bytes", "What conversations take in memory now", contexts)
    yield _gauge("tool_memory_bytes", "Memory of the largest process of a tool so far", used.memory_bytes)


def _of_providers(sessions: Sequence[AsyncAgentSessionManager]) -> Iterator[Metric]:
    """The accounts of providers, which all sessions share."""
    accounts = {each.account: each for session in sessions for each in session.list_provider_accounts()}
    shut = (GateState.HELD, GateState.DOWN)
    figures: dict[str, tuple[str, Callable[[ProviderAccount], float]]] = {
        "provider_requests_allowed": ("Requests that an account may have under way", lambda each: each.allowed),
        "provider_requests_under_way": ("Requests that an account has under way", lambda each: each.under_way),
        "provider_requests_waiting": ("Requests that wait for their turn at an account", lambda each: each.waiting),
        "provider_shut": ("Whether an account lets nobody in: 1 if so", lambda each: each.state in shut),
        "provider_down": ("Whether the provider of an account is down: 1 if so", lambda each: each.state is shut[1]),
    }
    for name, (told, figure) in figures.items():
        yield _gauge(name, told, {account: figure(each) for account, each in accounts.items()}, "account")
    requests = {account: each.requests for account, each in accounts.items()}
    yield _counter("provider_requests", "Requests to an account that were begun", requests, "account")
    refusals = {account: each.refusals for account, each in accounts.items()}
    yield _counter("provider_refusals", "Requests that a provider refused as too many", refusals, "account")
    outages = {account: each.outages for account, each in accounts.items()}
    yield _counter("provider_outages", "Requests that found the provider down", outages, "account")


def _of_work(counts: Sequence[WorkCounts]) -> Iterator[Metric]:
    """What has become of tasks since the sessions were opened, and what waits for a person now."""
    ended = {state.value: sum(each.ended[state] for each in counts) for state in TaskState if state.ended}
    yield _counter("tasks_ended", "Tasks that ended, by outcome", ended, "outcome")
    retried = {kind.value: sum(each.retried[kind] for each in counts) for kind in Retried}
    yield _counter("retries", "Model requests, loops and tasks that were begun again", retried, "kind")
    repaired = {kind.value: sum(each.repaired[kind] for each in counts) for kind in Repaired}
    yield _counter("repaired_calls", "Tool calls that a model did not write as it should", repaired, "kind")
    dead = {"task": sum(each.dead_tasks for each in counts), "mail": sum(each.dead_mails for each in counts)}
    yield _gauge("dead_letters", "What could not be done and waits for a person", dead, "kind")
    pending = sum(each.pending_approvals for each in counts)
    yield _gauge("pending_approvals", "Tool calls that wait for a person", pending)
    asked = sum(each.pending_questions for each in counts)
    yield _gauge("pending_questions", "Questions of agents that wait for a person", asked)


def _counter(name: str, told: str, figures: float | Mapping[str, float], label: str | None = None) -> Metric:
    """What only rises: one number, or one for each value of the label."""
    from prometheus_client.core import CounterMetricFamily

    return _filled(CounterMetricFamily(f"whisperer_{name}", told, labels=label and [label]), figures)


def _gauge(name: str, told: str, figures: float | Mapping[str, float], label: str | None = None) -> Metric:
    """What is so now, likewise."""
    from prometheus_client.core import GaugeMetricFamily

    return _filled(GaugeMetricFamily(f"whisperer_{name}", told, labels=label and [label]), figures)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, figures: float | Mapping[str, float]) -> Metric:
    if not isinstance(figures, Mapping):
        family.add_metric([], figures)
    else:
        for each, figure in figures.items():
            family.add_metric([each], figure)
    return family
