"""What the server counts, as Prometheus reads it."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ai_whisperer.server.metrics import Metrics


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
    metrics.connections.inc()
    metrics.connections.inc()
    metrics.connections.dec()
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
