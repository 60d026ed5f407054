"""The list of topics, without a connection: its order, and what it says where it knows nothing."""

from __future__ import annotations

import pytest

from ottla.client import TopicPartition
from ottla.console.pages import topics
from ottla.health.facts import Lag, Partition, Topic
from tests.unit.console.seen import NOW_MS, context_of, loaded, shown, watcher_of


def topic(name: str, partitions: int, *, isr: tuple[int, ...] = (1,)) -> Topic:
    rows = (Partition(partition=at, leader=1, replicas=(1,), isr=isr) for at in range(partitions))
    return Topic(topic=name, partitions=tuple(rows))


FACTS = (
    topic("b", 1),
    topic("a", 2),
    topic("c", 1, isr=()),
    Lag(group="g", topic="b", partition=0, committed=1, high_watermark=5),
)


@pytest.mark.parametrize(
    ("sort", "names"), [("name", "abc"), ("partitions", "abc"), ("unhealthy", "cab"), ("rate", "bca")]
)
def test_the_most_come_first(sort: str, names: str):
    watcher = watcher_of(*FACTS)
    for at_ms, end in ((NOW_MS - 9_000, 10), (NOW_MS - 4_000, 1_010)):
        watcher.ends.take(at_ms, {TopicPartition("b", 0): end, TopicPartition("c", 0): 7}, {"b": 1, "c": 1})
    content = loaded(topics.PAGE, context_of(watcher, {"sort": sort}))
    assert "".join(each.name for each in content.data.rows) == names


def test_rates_have_the_time_in_which_they_were_measured():
    watcher = watcher_of(*FACTS)
    for at_ms, end in ((NOW_MS - 60_000, 10), (NOW_MS - 30_000, 3_010)):
        watcher.ends.take(at_ms, {TopicPartition("b", 0): end}, {"b": 1})
    text = shown(topics.PAGE, context_of(watcher))
    assert "100/s <small>over 30 s, 30 s ago</small>" in text
    assert "its ends were not seen twice yet" in text
