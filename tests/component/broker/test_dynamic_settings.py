"""Settings that are made while a node runs act at once, and each place of a setting is stronger than the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.loop.clock import ShiftedClock
from ottla.wire.errors import ErrorCode
from ottla.wire.types import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from tests.component.broker.raw_client import Closed, RawClient, RunningNode, Topic, batch, batches, running_node

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE = 0, 1
HOUR_MS = 3_600_000


class Scene:
    """A node whose time passes when a test says so."""

    def __init__(self, running: RunningNode, clock: ShiftedClock) -> None:
        self.running, self.node, self.clock = running, running.node, clock
        self.client: RawClient = running.client

    def alter(self, resource: tuple[int, str], *steps: tuple[str, int, str | None]) -> None:
        kind = IncrementalAlterConfigsRequest
        configs = tuple(kind.AlterableConfig(*step) for step in steps)
        (answer,) = self.client.ask(kind((kind.AlterConfigsResource(*resource, configs),)), 1).responses
        assert answer.error_code == 0, answer

    def set(self, name: str, value: object, broker: str = "") -> None:
        self.alter((BROKER, broker), (name, SET, str(value)))

    def entry(self, resource: tuple[int, str], name: str) -> Any:
        kind = DescribeConfigsRequest
        (result,) = self.client.ask(kind((kind.DescribeConfigsResource(*resource, (name,)),), True), 4).results
        return result.configs[0]

    def later(self, ms: int) -> None:
        def run() -> None:
            self.clock.shift_ms += ms
            self.node.housekeeping.run_due()
            self.node.cooperative_tasks.run_for(20)
            self.node.offload.finish_all()

        self.running.change(run)

    def start_offset(self, topic: Topic) -> int:
        log = self.node.replicas.leader(topic.name, 0).log
        return int(log.log_start_offset)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    clock = ShiftedClock()
    with running_node(tmp_path, clock, connections_max_idle_ms=10**12) as running:
        yield Scene(running, clock)


def plain_topic(scene: Scene, **configs: object) -> Topic:
    """One without a retention of its own."""
    topic = scene.client.topic(**configs)
    scene.alter((TOPIC, topic.name), ("retention.ms", DELETE, None))
    return topic


def sources(entry: Any) -> list[tuple[str, str, int]]:
    return [(each.name, each.value, each.source) for each in entry.synonyms]


# --- retention


def test_a_node_s_own_retention_is_shown_with_its_source_and_deletes(tmp_path: Path):
    clock = ShiftedClock()
    with running_node(tmp_path, clock, log_retention_ms=1000, connections_max_idle_ms=10**12) as running:
        scene = Scene(running, clock)
        topic = plain_topic(scene)
        entry = scene.entry((TOPIC, topic.name), "retention.ms")
        assert (entry.value, entry.config_source) == ("1000", 4)
        assert sources(entry)[:1] == [("log.retention.ms", "1000", 4)]
        scene.client.produce(topic, batch(b"old", timestamp=clock.wall_ms()))
        scene.later(HOUR_MS)
        assert scene.start_offset(topic) == 1


def test_retention_that_is_set_for_all_brokers_deletes(scene: Scene):
    topic = plain_topic(scene)
    scene.client.produce(topic, batch(b"old", timestamp=scene.clock.wall_ms()))
    scene.later(HOUR_MS)
    assert scene.start_offset(topic) == 0
    scene.set("log.retention.ms", 1000)
    assert scene.entry((TOPIC, topic.name), "retention.ms").config_source == 3
    scene.later(HOUR_MS)
    assert scene.start_offset(topic) == 1


def test_one_broker_is_stronger_than_all_and_the_topic_is_stronger_still(scene: Scene):
    topic = plain_topic(scene)
    seen = []
    for resource, name, value in [
        ((BROKER, ""), "log.retention.ms", "3000"),
        ((BROKER, "1"), "log.retention.ms", "2000"),
        ((TOPIC, topic.name), "retention.ms", "1000"),
    ]:
        scene.alter(resource, (name, SET, value))
        entry = scene.entry((TOPIC, topic.name), "retention.ms")
        seen.append((entry.value, entry.config_source, scene.node.settings.log_config(topic.name).retention_ms))
    assert seen == [("3000", 3, 3000), ("2000", 2, 2000), ("1000", 1, 1000)]
    assert sources(entry) == [
        ("retention.ms", "1000", 1),
        ("log.retention.ms", "2000", 2),
        ("log.retention.ms", "3000", 3),
        ("log.retention.hours", "168", 5),
    ]


# --- what producers meet


def test_the_largest_batch(scene: Scene):
    topic = scene.client.topic()
    assert scene.client.produce(topic, batch(bytes(3000))).error_code == 0
    scene.set("message.max.bytes", 2000)
    assert scene.client.produce(topic, batch(bytes(3000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    scene.alter((BROKER, ""), ("message.max.bytes", DELETE, None))
    assert scene.client.produce(topic, batch(bytes(3000))).error_code == 0


def test_the_codec(scene: Scene):
    topic = scene.client.topic()
    scene.set("compression.type", "gzip", broker="1")
    scene.client.produce(topic, batch(b"x" * 100))
    (stored,) = batches(scene.client.fetch(topic))
    assert stored.attributes & 7 == 1


def test_the_kind_of_time(scene: Scene):
    topic = scene.client.topic()
    scene.set("log.message.timestamp.type", "LogAppendTime")
    assert scene.client.produce(topic, batch(b"a")).log_append_time_ms > 1_000
    scene.set("log.message.timestamp.type", "CreateTime")
    scene.set("log.message.timestamp.before.max.ms", 1000)
    assert scene.client.produce(topic, batch(b"a")).error_code == ErrorCode.INVALID_TIMESTAMP


def test_the_least_number_of_replicas_is_the_cluster_s(scene: Scene):
    topic = scene.client.topic()
    scene.set("min.insync.replicas", 2)
    entry = scene.entry((TOPIC, topic.name), "min.insync.replicas")
    assert (entry.value, entry.config_source) == ("2", 3)
    assert scene.client.produce(topic, batch(b"a")).error_code == 0  # a topic of one replica needs no more than one
    kind = IncrementalAlterConfigsRequest
    for name, operation, value in [("1", SET, "1"), ("", DELETE, None)]:
        resource = kind.AlterConfigsResource(
            BROKER, name, (kind.AlterableConfig("min.insync.replicas", operation, value),)
        )
        (answer,) = scene.client.ask(kind((resource,)), 1).responses
        assert answer.error_code == ErrorCode.INVALID_CONFIG


def test_producers_are_forgotten_after_another_time(scene: Scene):
    topic = scene.client.topic()
    marks = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    scene.client.produce(topic, batch(b"a", timestamp=scene.clock.wall_ms(), **marks))
    log = scene.node.replicas.leader(topic.name, 0).log
    scene.later(HOUR_MS)
    assert log.producers.entry(7) is not None
    scene.set("producer.id.expiration.ms", 1000)
    scene.later(HOUR_MS)
    assert log.producers.entry(7) is None


# --- connections


@pytest.mark.parametrize(
    ("name", "value"), [("max.connections.per.ip", "1"), ("max.connections.per.ip.overrides", "127.0.0.1:1")]
)
def test_connections_from_one_address(scene: Scene, name: str, value: str):
    scene.client.connect().close()
    scene.set(name, value)
    kind = DescribeConfigsRequest
    with pytest.raises((Closed, ConnectionError)):
        scene.client.connect().ask(kind(()), 4)
    scene.alter((BROKER, ""), (name, DELETE, None))
    assert scene.client.connect().ask(kind(()), 4).results == ()


@pytest.mark.parametrize(
    ("name", "broker"), [("max.connections", ""), ("listener.name.plaintext.max.connections", "1")]
)
def test_all_connections(scene: Scene, name: str, broker: str):
    scene.set(name, 1, broker)
    waiting = scene.client.connect()
    number = waiting.send(DescribeConfigsRequest(()), 4)
    assert waiting.is_silent(0.05)
    scene.set(name, 10, broker)
    assert waiting.receive(32, 4, number).results == ()


# --- chores


def test_a_shorter_pause_of_the_cleaner_holds_from_now_on(scene: Scene):
    topic = scene.client.topic(cleanup_policy="compact", segment_ms=1, min_cleanable_dirty_ratio=0)
    for _ in range(3):
        scene.client.produce(topic, batch(b"v", keys=[b"k"], timestamp=scene.clock.wall_ms()))
        scene.later(2)
    scene.later(1)
    assert batches(scene.client.fetch(topic))[0].base_offset == 0  # the next look is due in 15 s
    scene.set("log.cleaner.backoff.ms", 100)
    scene.later(101)
    assert batches(scene.client.fetch(topic))[0].base_offset > 0


def test_the_cleaner_s_settings_reach_every_topic(scene: Scene):
    topic = scene.client.topic(cleanup_policy="compact")
    scene.set("log.cleaner.min.cleanable.ratio", "0.01")
    scene.set("log.cleaner.delete.retention.ms", 5)
    scene.set("log.cleaner.min.compaction.lag.ms", 6)
    scene.set("log.cleaner.max.compaction.lag.ms", 7)
    config = scene.node.replicas.leader(topic.name, 0).log.config
    assert (config.min_cleanable_dirty_ratio, config.delete_retention_ms) == (0.01, 5)
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (6, 7)


@pytest.mark.parametrize("family", ["consumer", "share", "streams"])
def test_assignment_intervals_of_groups(scene: Scene, family: str):
    name = f"group.{family}.assignment.interval.ms"
    assert scene.node.settings[name] == 1000
    scene.set(name, 0)
    assert scene.node.settings[name] == 0


# --- what changes nothing


def test_what_changes_nothing_is_said_once(scene: Scene, caplog: pytest.LogCaptureFixture):
    for value in ("2", "3"):
        scene.set("num.io.threads", value)
    said = [record.getMessage() for record in caplog.records if record.name == "ottla.broker.config.settings"]
    assert said == ["accepted, but without effect in ottla: num.io.threads"]


# --- loggers


def test_requests_are_logged_from_one_to_the_next(scene: Scene, caplog: pytest.LogCaptureFixture):
    logger = logging.getLogger("ottla.requests")
    level = logger.level
    try:
        scene.alter((LOGGER, "1"), ("ottla.requests", SET, "INFO"))
        scene.entry((BROKER, "1"), "num.partitions")
        scene.alter((LOGGER, "1"), ("ottla.requests", SET, "ERROR"))
        scene.entry((BROKER, "1"), "num.partitions")
    finally:
        logger.setLevel(level)
    seen = [record.getMessage() for record in caplog.records if record.name == "ottla.requests"]
    assert len([text for text in seen if "DescribeConfigs" in text]) == 1
