"""Nodes and features, from facts."""

from __future__ import annotations

import pytest

from ottla.client.configs import ConfigEntry, ConfigSource, ConfigType, Synonym
from ottla.console.html.configs import config_tables, configs_of
from ottla.console.page import NotFoundError
from ottla.console.pages.features import PAGE as FEATURES
from ottla.console.pages.features import feature_rows
from ottla.console.pages.nodes import NODE_PAGE, PAGE, Listener, node_rows, parse_listeners, state_words
from ottla.health.facts import Broker, Cluster, LogDir, Partition, Quorum, Replica, Topic
from tests.unit.console.seen import context_of, loaded, shown, watcher_of

SUPPORTED = {"share.version": (0, 1)}
CLUSTER = Cluster(
    controller=1,
    brokers=(
        Broker(id=1, host="one", port=9092, rack="<b>", fenced=False, reachable=True, supported=SUPPORTED),
        Broker(id=2, host="two", port=9092, fenced=True, reachable=False, error="refused"),
    ),
    finalized={"metadata.version": 29, "share.version": 0},
)
TOPIC = Topic(
    topic="orders",
    partitions=(
        Partition(partition=0, leader=1, replicas=(1, 2), isr=(1,)),
        Partition(partition=1, leader=1, replicas=(1, 4), isr=(1,)),
    ),
)
QUORUM = Quorum(leader=3, leader_epoch=2, replicas=(Replica(id=3), Replica(id=1, role="observer")))
DISK = LogDir(node=1, path="/data", total=1000, usable=20, size=700)
FAILED = LogDir(node=1, path="/lost", error="KAFKA_STORAGE_ERROR")
FACTS = (CLUSTER, TOPIC, QUORUM, DISK, FAILED)


def test_brokers_controllers_and_nodes_that_only_replicas_name():
    rows = {each.id: each for each in node_rows(watcher_of(*FACTS).state)}
    assert {each: (row.roles, row.is_listed, row.led, row.replicas) for each, row in rows.items()} == {
        1: (["broker"], True, 2, 2),
        2: (["broker"], True, 0, 1),
        3: (["controller"], False, 0, 0),
        4: (["broker"], False, 0, 1),
    }
    assert [each for each, row in rows.items() if row.leads_quorum] == [3]
    assert [state_words(row) for row in rows.values()] == [
        "serves",
        "▲ fenced: refused",
        None,
        "not listed by the cluster",
    ]
    assert sorted(rows[1].findings) == ["disk-filling", "log-dir-offline"]


def test_the_list_and_its_filter():
    html = shown(PAGE, context_of(watcher_of(*FACTS)))
    assert "&lt;b&gt;" in html
    assert "20 B" in html
    only = loaded(PAGE, context_of(watcher_of(*FACTS), {"role": "controller"})).data.rows
    assert [each.id for each in only] == [3]
    first = loaded(PAGE, context_of(watcher_of(*FACTS), {"limit": "2"}))
    rest = loaded(PAGE, context_of(watcher_of(*FACTS), {"after": first.next or ""}))
    assert [each.id for each in (*first.data.rows, *rest.data.rows)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("1", "no connection to the cluster"),
        ("2", "node 2 is unreachable: refused"),
        ("3", "only available for brokers that the cluster lists"),
    ],
)
def test_configs_that_cannot_be_had(node: str, why: str):
    context = context_of(watcher_of(*FACTS), node=node)
    assert ("configs", why) in [(each.what, each.why) for each in loaded(NODE_PAGE, context).degraded]
    assert f"The configs cannot be shown: {why}." in shown(NODE_PAGE, context)


def test_a_node_with_its_disks_and_findings():
    html = shown(NODE_PAGE, context_of(watcher_of(*FACTS), node="1"))
    assert "▲ failed: KAFKA_STORAGE_ERROR" in html
    assert "2 %" in html
    assert "Node 1: log directory /lost is offline" in html


def test_an_unknown_node():
    with pytest.raises(NotFoundError) as refused:
        loaded(NODE_PAGE, context_of(watcher_of(*FACTS), node="one"))
    assert refused.value.known == ("1", "2", "3", "4")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("PLAINTEXT://:9092", [Listener("PLAINTEXT", "", 9092)]),
        ("A://h:1, B://[::1]:2", [Listener("A", "h", 1), Listener("B", "::1", 2)]),
        ("nonsense", []),
    ],
)
def test_listeners(text: str, found: list[Listener]):
    assert parse_listeners(text) == found


def test_features_that_could_rise_say_what_stays_off():
    only = Cluster(controller=1, brokers=CLUSTER.brokers[:1], finalized=CLUSTER.finalized)
    row = next(each for each in feature_rows(only) if each.name == "share.version")
    assert (row.finalized, row.default, row.better, row.off) == (0, 1, 1, "share groups are disabled")
    html = shown(FEATURES, context_of(watcher_of(only)))
    assert "ottla quorum features upgrade share.version=1" in html
    assert "No features reported yet." in shown(FEATURES, context_of(watcher_of()))


def entry(name: str, value: str | None, source: ConfigSource, **others: object) -> ConfigEntry:
    plain = ConfigEntry(name, value, source, False, False, ConfigType.STRING, None, ())
    return plain._replace(**others)  # type: ignore[arg-type]


def test_configs_show_what_is_set_first_and_no_secret():
    low = Synonym("log.retention.hours", "168", ConfigSource.DEFAULT)
    secret = Synonym("ssl.key", "hush-synonym", ConfigSource.STATIC_BROKER)
    entries = [
        entry("a.default", "1", ConfigSource.DEFAULT, documentation="What <i>it</i> does."),
        entry("retention.ms", "60000", ConfigSource.TOPIC, synonyms=(low,)),
        entry("ssl.key", "hush", ConfigSource.STATIC_BROKER, is_sensitive=True, synonyms=(secret,)),
    ]
    html = config_tables(configs_of(entries), "node 1")
    assert (
        html.index("retention.ms")
        < html.index("ssl.key")
        < html.index("1 config with its default value")
        < html.index("a.default")
    )
    assert "168 (default, log.retention.hours)" in html
    assert "What &lt;i&gt;it&lt;/i&gt; does." in html
    assert "hush" not in html
    assert "(hidden)" in html
