"""The page of metrics: what of a cluster's state is in it, what is left out, and that it is bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from ottla.health.evaluator import SampleEvaluator
from ottla.health.facts import (
    Broker,
    Cluster,
    Configs,
    Fact,
    Group,
    GroupMember,
    Lag,
    Partition,
    Quorum,
    Replica,
    ShareMetrics,
    ShareOffsets,
    Tasks,
    Topic,
)
from ottla.health.samples import Sample
from ottla.observe.cluster_state import ClusterState
from ottla.observe.exporter import ABOUT, Exporter
from ottla.observe.kinds import INTERVALS_S

ROOT = Path(__file__).parents[3]
NOW_MS = 1_700_000_000_000
ALL_PROBED = dict.fromkeys(INTERVALS_S, NOW_MS - 1_000)

FACTS: tuple[Fact, ...] = (
    Cluster(controller=1, brokers=(Broker(id=1, reachable=True, fenced=False), Broker(id=2, reachable=False))),
    Quorum(
        leader=1,
        leader_epoch=7,
        high_watermark=90,
        replicas=(
            Replica(id=1, log_end=100, last_fetch_ts=NOW_MS, last_caught_up_ts=NOW_MS),
            Replica(id=2, log_end=90, last_fetch_ts=NOW_MS - 9_000, last_caught_up_ts=NOW_MS - 9_500),
            Replica(id=4, role="observer", log_end=100, last_fetch_ts=NOW_MS, last_caught_up_ts=-1),
        ),
    ),
    Configs(resource="topic", name="orders", values={"min.insync.replicas": "2"}),
    Topic(
        topic="orders",
        partitions=(
            Partition(partition=0, leader=1, replicas=(1, 2), isr=(1, 2)),
            Partition(partition=1, leader=1, replicas=(1, 2), isr=(1,)),
            Partition(partition=2, leader=-1, replicas=(2,), isr=()),
        ),
    ),
    Group(group="billing", type="consumer", state="Stable", group_epoch=4, members=(GroupMember(member="a"),)),
    Group(
        group="totals",
        type="streams",
        state="Stable",
        topology_epoch=3,
        members=(
            GroupMember(member="a", tasks=Tasks(active=("0_0", "0_1"), standby=("1_0",))),
            GroupMember(member="b", tasks=Tasks(active=("1_0",), warmup=("0_0",))),
        ),
    ),
    Group(group="risk", type="share", state="Stable"),
    Lag(group="billing", topic="orders", partition=0, committed=40, high_watermark=50, committed_ts=NOW_MS - 30_000),
    Lag(group="billing", topic="orders", partition=1, committed=50, high_watermark=50),
    Lag(group="totals", topic="orders", partition=0, committed=None, high_watermark=50),
    ShareOffsets(group="risk", topic="orders", partition=0, start=12, lag=38, start_ts=NOW_MS - 5_000),
    ShareMetrics(group="risk", node=1, delivered=100, redelivered=20, accepted=60, released=18, lock_expiries=3),
)


def state_of(*facts: Fact) -> ClusterState:
    state = ClusterState(SampleEvaluator())
    for number, fact in enumerate(facts):
        body = msgspec.to_builtins(fact)
        state.take(Sample(kind=fact.kind, ts=NOW_MS - 1_000, cluster="c", observer="o", seq=number, body=body))
    return state


def values(page: str) -> dict[str, float]:
    """The lines of a page, by name and labels."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    assert len(found) == len(lines), "no series is there twice"
    return found


def page(*facts: Fact, probed_ms: Mapping[str, int] = ALL_PROBED, series_max: int = 1_000) -> dict[str, float]:
    return values(Exporter(state_of(*facts), lambda: probed_ms, INTERVALS_S, series_max).page(NOW_MS))


def test_the_cluster_and_its_quorum():
    found = page(*FACTS)
    assert found["ottla_cluster_up"] == 1
    assert found["ottla_cluster_brokers"] == 2
    assert found['ottla_broker_up{node="2"}'] == 0
    assert 'ottla_broker_fenced{node="2"}' not in found, "what is not known is left out"
    assert found["ottla_quorum_leader_epoch"] == 7
    assert found["ottla_quorum_voters_healthy"] == 1
    assert found['ottla_quorum_replica_lag_records{node="2",role="voter"}'] == 10
    assert found['ottla_quorum_replica_lag_seconds{node="2",role="voter"}'] == 9.5
    assert 'ottla_quorum_replica_lag_seconds{node="4",role="observer"}' not in found


def test_partitions_without_enough_replicas():
    found = page(*FACTS)
    figures = {name: found[f'ottla_topic_{name}{{topic="orders"}}'] for name in (
        "partitions", "offline_partitions", "under_replicated_partitions", "under_min_isr_partitions"
    )}  # fmt: skip
    assert figures == {
        "partitions": 3,
        "offline_partitions": 1,
        "under_replicated_partitions": 2,
        "under_min_isr_partitions": 2,
    }


def test_a_partition_with_fewer_replicas_than_the_minimum_takes_writes_if_all_are_in_sync():
    configs = Configs(resource="topic", name="small", values={"min.insync.replicas": "2"})
    found = page(configs, Topic(topic="small", partitions=(Partition(partition=0, leader=1, replicas=(1,), isr=(1,)),)))
    assert found['ottla_topic_under_min_isr_partitions{topic="small"}'] == 0


def test_a_classic_group_has_no_epochs_that_its_coordinator_tells():
    found = page(Group(group="old", type="classic", state="Stable", members=(GroupMember(member="a"),)))
    assert found['ottla_group_members{group="old",type="classic"}'] == 1
    assert not [name for name in found if "epoch" in name]


def test_groups_of_each_kind():
    found = page(*FACTS)
    assert found['ottla_group_state{group="billing",type="consumer",state="Stable"}'] == 1
    assert found['ottla_group_members{group="totals",type="streams"}'] == 2
    for role, count in (("active", 3), ("standby", 1), ("warmup", 1)):
        assert found[f'ottla_streams_tasks{{group="totals",role="{role}"}}'] == count
    assert found['ottla_streams_topology_epoch{group="totals"}'] == 3
    assert found['ottla_share_redeliveries_total{group="risk",node="1"}'] == 20
    assert found['ottla_share_acknowledgements_total{group="risk",node="1",type="release"}'] == 18


@pytest.mark.parametrize(
    ("group", "kind", "partition", "offset", "records", "seconds"),
    [("billing", "consumer", 0, 40, 10, 30), ("billing", "consumer", 1, 50, 0, 0), ("risk", "share", 0, 12, 38, 5)],
)
def test_lag_in_records_and_seconds(group: str, kind: str, partition: int, offset: int, records: int, seconds: float):
    found = page(*FACTS)
    labels = f'{{group="{group}",type="{kind}",topic="orders",partition="{partition}"}}'
    names = ("offset", "lag_records", "lag_seconds")
    assert [found[f"ottla_group_partition_{name}{labels}"] for name in names] == [offset, records, seconds]


def test_lag_of_a_topic_is_there_if_all_of_its_partitions_are_known():
    found = page(*FACTS)
    assert found['ottla_group_topic_lag_records{group="billing",type="consumer",topic="orders"}'] == 10
    assert found['ottla_group_topic_lag_seconds{group="billing",type="consumer",topic="orders"}'] == 30
    assert not any(name.startswith('ottla_group_topic_lag_records{group="totals"') for name in found)


def test_what_could_not_be_probed_for_a_while_is_left_out():
    old = {**ALL_PROBED, "lag": NOW_MS - 60_000, "cluster": NOW_MS - 60_000}
    found = page(*FACTS, probed_ms=old)
    assert found["ottla_cluster_up"] == 0
    assert found['ottla_exporter_probe_age_seconds{kind="lag"}'] == 60
    assert not any("billing" in name and "lag" in name for name in found)
    assert any("risk" in name and "lag" in name for name in found)


def test_nothing_was_seen_yet():
    assert page(probed_ms={}) == {"ottla_cluster_up": 0, "ottla_exporter_series_left_out": 0}


def test_open_findings_are_there_once():
    found = page(*FACTS)
    rules = {name: value for name, value in found.items() if name.startswith("ottla_finding")}
    assert 'ottla_finding{rule="even-voters",severity="notice",kind="quorum",subject="__cluster_metadata"}' in rules
    assert set(rules.values()) == {1}


def test_the_number_of_series_is_bounded():
    found = page(*FACTS, series_max=20)
    assert len(found) == 21
    assert found["ottla_exporter_series_left_out"] == len(page(*FACTS)) - 21
    assert "ottla_cluster_up" in found


def test_names_with_quotes_and_line_breaks_stay_on_their_line():
    hostile = 'a"b\\c\nd'
    text = Exporter(
        state_of(Group(group=hostile, type="consumer", state="Stable")), lambda: ALL_PROBED, INTERVALS_S
    ).page(NOW_MS)
    assert r'group="a\"b\\c\nd"' in text


def test_every_metric_says_what_it_means():
    text = Exporter(state_of(*FACTS), lambda: ALL_PROBED, INTERVALS_S).page(NOW_MS)
    assert set(re.findall(r"^# HELP (\w+) .+\.$", text, re.MULTILINE)) == set(ABOUT)
    assert set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)) == set(ABOUT)


def test_every_metric_is_documented():
    page = (ROOT / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(ottla_\w+)` \| .*\| (.+) \|$", page, re.MULTILINE)
    assert dict(rows) == ABOUT


@pytest.mark.parametrize("name", ["prometheus-rules.yml", "grafana-dashboard.json"])
def test_rules_and_dashboard_use_metrics_that_exist(name: str):
    used = set(re.findall(r"\bottla_\w+", (ROOT / "monitoring" / name).read_text(encoding="utf-8")))
    assert used
    assert used <= ABOUT.keys()
