"""What ottla brokers tell beside Kafka's protocol."""

import pytest

from ottla.health.facts import ShareMetrics, ShareWindow
from ottla.observe.memory import Memory, ProbeContext
from ottla.observe.probes import share_metrics
from ottla.observe.probes.share_metrics import metrics_facts, window_facts
from tests.unit.client.running import run
from tests.unit.observe.virtual import NoClient

PAGE = """\
# HELP ottla_share_records_delivered_total deliveries
# TYPE ottla_share_records_delivered_total counter
ottla_share_sessions 3
ottla_share_partitions{group="idle"} 2
ottla_share_records_delivered_total{group="risk"} 120
ottla_share_records_redelivered_total{group="risk"} 20
ottla_share_records_acknowledged_total{group="risk",type="accept"} 70
ottla_share_records_acknowledged_total{group="risk",type="release"} 18
ottla_share_records_acknowledged_total{group="risk",type="reject"} 2
ottla_share_lock_expiries_total{group="risk"} 4
ottla_share_lock_seconds_bucket{group="risk",le="+Inf"} 90
ottla_share_lock_seconds_sum{group="risk"} 12.345
ottla_share_lock_seconds_count{group="risk"} 90
ottla_share_records_delivered_total{group="odd \\"name\\"\\\\"} 1
kafka_server_brokertopicmetrics_bytesin_total 5
nonsense
"""


def test_counters_of_share_groups():
    assert metrics_facts(PAGE, 1) == [
        ShareMetrics(
            group="risk", node=1, delivered=120, redelivered=20, accepted=70, released=18, rejected=2, lock_expiries=4,
            lock_ms=12_345, lock_count=90,
        ),
        ShareMetrics(group='odd "name"\\', node=1, delivered=1),
    ]  # fmt: skip


def test_a_group_that_comes_new_to_a_page_had_counted_nothing(monkeypatch: pytest.MonkeyPatch):
    pages = iter(["""ottla_share_records_delivered_total{group="old"} 5\n""", PAGE])

    async def read(client: object, url: str, timeout_s: float) -> str:
        return next(pages)

    monkeypatch.setattr(share_metrics, "read_page", read)
    at = ProbeContext(NoClient(), Memory(), 0, metrics=("http://page",))  # type: ignore[arg-type]

    async def body() -> None:
        first = [each.fact for each in await share_metrics.probe_share_metrics(at)]
        assert first[1:] == [ShareMetrics(group="old", node=0, delivered=5)]
        told = [
            each.fact for each in await share_metrics.probe_share_metrics(at) if isinstance(each.fact, ShareMetrics)
        ]
        assert [(each.group, each.delivered) for each in told if isinstance(each, ShareMetrics)][:2] == [
            ("risk", 0),
            ("risk", 120),
        ]

    run(body)


def test_windows():
    ranges = [
        {"first_offset": 5, "last_offset": 9, "delivery_count": 4},
        {"first_offset": 10, "last_offset": 10, "delivery_count": 1},
    ]
    partitions = [
        {"topic": "orders", "partition": 2, "start_offset": 7, "end_offset": 10, "ranges": ranges},
        {"topic": "orders", "partition": 3, "start_offset": 7, "end_offset": 7, "ranges": []},
        {"topic": None, "partition": 0, "start_offset": 7, "end_offset": 9, "ranges": []},
    ]
    assert list(window_facts({"group": "g", "partitions": partitions})) == [
        ShareWindow(group="g", topic="orders", partition=2, start=7, end=10, first_count=4),
        ShareWindow(group="g", topic="orders", partition=3, start=7, end=7),
    ]
