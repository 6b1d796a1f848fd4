"""What the server counts, as Prometheus reads it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ai_whisperer import AsyncAgentSessionManager, tool
from ai_whisperer.domain.conversation import Answer
from ai_whisperer.errors import ModelError, ModelRefusedError, ModelServerError, ModelUnavailableError
from ai_whisperer.models.base import ModelRequest
from ai_whisperer.server.metrics import Metrics
from tests.simulation.stage import call, play, prompt_of, round_of, until


def values_of(metrics: Metrics) -> dict[str, float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in families
        for sample in family.samples
    }


def test_requests_are_counted_by_method_and_outcome() -> None:
    metrics = Metrics(list)
    for outcome in ("ok", "ok", "unknown_agent"):
        metrics.count_request("async.sendTask", outcome=outcome, seconds=0.002)
    values = values_of(metrics)
    assert values["whisperer_requests_total['async.sendTask', 'ok']"] == 2
    assert values["whisperer_requests_total['async.sendTask', 'unknown_agent']"] == 1


def test_a_request_counts_in_every_bucket_that_it_fits_into() -> None:
    metrics = Metrics(list)
    for seconds in (0.001, 0.002, 100.0):
        metrics.count_request("server.info", outcome="ok", seconds=seconds)
    values = values_of(metrics)
    buckets = {bound: values[f"whisperer_request_seconds_bucket['{bound}']"] for bound in ("0.001", "10.0", "+Inf")}
    assert buckets == {"0.001": 1, "10.0": 2, "+Inf": 3}
    assert values["whisperer_request_seconds_count[]"] == 3
    assert values["whisperer_request_seconds_sum[]"] == 100.003


def test_clients_are_counted_as_they_come_and_go() -> None:
    metrics = Metrics(list)
    metrics.connections += 2
    metrics.connections -= 1
    metrics.count_refusal(is_wrong_token=True)
    metrics.count_refusal(is_wrong_token=False)
    metrics.count_slow_client()
    metrics.count_notifications(32)
    values = values_of(metrics)
    assert values["whisperer_connections[]"] == 1
    assert values["whisperer_refused_total[]"] == 2
    assert values["whisperer_wrong_tokens_total[]"] == 1
    assert values["whisperer_slow_clients_total[]"] == 1
    assert values["whisperer_notifications_sent_total[]"] == 32


@tool(needs_approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"


def test_the_work_of_sessions_is_counted_by_what_becomes_of_it() -> None:
    failures: dict[str, list[ModelError]] = {
        "bad luck": [ModelServerError(), ModelServerError()],
        "fail": [ModelRefusedError(), ModelRefusedError()],
    }

    def say(request: ModelRequest) -> Answer | str:
        prompt = prompt_of(request)
        if failures.get(prompt):
            raise failures[prompt].pop()
        if prompt == "down":
            raise ModelUnavailableError
        if prompt == "ask" and not round_of(request):
            return call("ask_user", question="?")
        return call("pay") if prompt == "pay" and not round_of(request) else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        metrics = Metrics(lambda: [manager])
        assert values_of(metrics)["whisperer_tasks_ended_total['completed']"] == 0
        await manager.create_agent("a", {"limits": {"max_concurrent_tasks": 10}})
        for prompt in ("go", "go", "bad luck"):
            await manager.run_task("a", prompt)
        failed = await manager.wait_task(await manager.send_task("a", "fail"))
        await manager.wait_task(await manager.retry_task(failed))
        await manager.send_task("a", "pay")
        await manager.create_agent("c", {"tools": ["ask_user"]})
        await manager.send_task("c", "ask")
        await manager.create_agent("b")
        cancelled = await manager.send_task("b", "down")
        await until(lambda: bool(manager.work_counts.pending_approvals and manager.work_counts.pending_questions))
        await until(lambda: manager.get_agent_status("b").retry_at is not None)
        values = values_of(metrics)
        assert values["whisperer_agents_waiting_for_provider[]"] == 1
        assert values["whisperer_pending_approvals[]"] == 1
        assert values["whisperer_pending_questions[]"] == 1
        retries = values["whisperer_retries_total['request']"]
        assert retries >= 3
        assert values["whisperer_retries_total['task']"] == 1
        assert values["whisperer_retries_total['loop']"] == 0
        await manager.cancel_task(cancelled)
        values = values_of(metrics)
        ended = {
            name: values[f"whisperer_tasks_ended_total['{name}']"] for name in ("completed", "failed", "cancelled")
        }
        assert ended == {"completed": 3, "failed": 2, "cancelled": 1}
        assert values["whisperer_dead_letters['task']"] == 1
        assert values["whisperer_dead_letters['mail']"] == 0
        assert values["whisperer_agents_waiting_for_provider[]"] == 0

    play(scenario, say, tools=[pay])


def test_calls_that_had_to_be_repaired_are_counted() -> None:
    @tool
    async def wait(seconds: int) -> str:
        """Wait."""
        return f"{seconds}"

    def say(request: ModelRequest) -> Answer | str:
        return '{"name": "wait", "arguments": {"seconds": "1"}}' if not round_of(request) else "done"

    async def scenario(manager: AsyncAgentSessionManager) -> None:
        metrics = Metrics(lambda: [manager])
        await manager.create_agent("a")
        for _ in range(2):
            await manager.run_task("a", "go")
        counts = {kind: values_of(metrics)[f"whisperer_repaired_calls_total['{kind}']"] for kind in ("text", "name")}
        assert counts == {"text": 2, "name": 0}

    play(scenario, say, tools=[wait])
