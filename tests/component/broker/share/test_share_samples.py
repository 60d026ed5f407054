"""Numbers about share groups on the page of metrics."""

from __future__ import annotations

from ottla.broker.share.counts import OTHERS, GroupCounts
from tests.component.broker.raw_client import RawClient, RunningNode
from tests.component.broker.share.share_members import Member, initialize, new_group, produce

ACCEPT, RELEASE, REJECT = 1, 2, 3


def page(running: RunningNode) -> dict[str, float]:
    """By the text of the sample in front of its number."""
    lines = [line for line in running.node.metrics.page().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_what_has_become_of_records(running: RunningNode, client: RawClient):
    topic, group = client.topic(), new_group()
    produce(client, topic, 10)
    initialize(client, group, topic)
    member = Member(client, group, "a", topic)
    member.take()
    running.advance(70)
    member.acknowledge((0, 5, [ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, REJECT]))
    member.take()
    found = page(running)
    of_group = f'{{group="{group}"}}'

    def acknowledged(kind: str) -> float:
        return found[f'ottla_share_records_acknowledged_total{{group="{group}",type="{kind}"}}']

    assert found[f"ottla_share_records_delivered_total{of_group}"] == 11
    assert found[f"ottla_share_records_redelivered_total{of_group}"] == 1
    assert [acknowledged(kind) for kind in ("accept", "release", "reject", "gap", "renew")] == [3, 1, 2, 0, 0]
    assert found[f"ottla_share_records_in_flight{of_group}"] == 7
    assert found[f"ottla_share_partitions{of_group}"] == 1
    assert found["ottla_share_sessions"] == 1
    assert found[f'ottla_share_lock_seconds_bucket{{group="{group}",le="0.05"}}'] == 0
    assert found[f'ottla_share_lock_seconds_bucket{{group="{group}",le="0.1"}}'] == 6
    assert found[f'ottla_share_lock_seconds_bucket{{group="{group}",le="+Inf"}}'] == 6
    assert found[f"ottla_share_lock_seconds_sum{of_group}"] == 0.42
    running.advance(30_000)
    assert page(running)[f"ottla_share_lock_expiries_total{of_group}"] == 5


def test_a_histogram_has_one_type(running: RunningNode, client: RawClient):
    types = [
        line for line in running.node.metrics.page().splitlines() if line.startswith("# TYPE ottla_share_lock_sec")
    ]
    assert types == ["# TYPE ottla_share_lock_seconds histogram"]


def test_groups_that_are_too_many_are_counted_together():
    counts = GroupCounts(2)
    named = [counts.of("a"), counts.of("b")]
    assert counts.of("a") is named[0]
    assert counts.of("c") is counts.of("d") is counts.by_group[OTHERS]
    assert (counts.name_of("b"), counts.name_of("d")) == ("b", OTHERS)
    assert len(counts.by_group) == 3
