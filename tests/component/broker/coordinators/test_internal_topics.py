"""Internal topics: what they are like, and that each is made once, by the request that first needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.core.metadata.image import TOPIC
from ottla.wire.types import DeleteRecordsRequest, FindCoordinatorRequest
from tests.component.broker.coordinators.conftest import StartNode
from tests.component.broker.coordinators.heartbeats import say
from tests.component.broker.raw_client import RunningNode, batch, running_node

SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"


def find(running: RunningNode, key: str, key_type: int) -> None:
    answer = running.client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,)), 6)
    assert answer.coordinators[0].error_code == 0, answer


@pytest.mark.parametrize(
    ("key_type", "key", "topic", "configs"),
    [
        (
            0,
            "g",
            "__consumer_offsets",
            {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
        ),
        (
            1,
            "x",
            "__transaction_state",
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        ),
        (
            2,
            SHARE_KEY,
            "__share_group_state",
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": "2",
                "retention.ms": "-1",
                "segment.bytes": "104857600",
            },
        ),
    ],
)
def test_topics_are_as_apache_kafka_makes_them(
    tmp_path: Path, key_type: int, key: str, topic: str, configs: dict[str, str]
) -> None:
    with running_node(tmp_path) as running:
        find(running, key, key_type)
        found = running.node.image.topic(topic)
        assert found is not None
        assert len(found.partitions) == 50
        assert found.partitions[0].replicas == (1,), "as many replicas as there are brokers"
        assert running.node.image.configs(TOPIC, topic) == configs
        assert list(tmp_path.glob(f"{topic}-*")) == [], "directories come with the first append"


def test_settings_say_what_they_are_like(tmp_path: Path) -> None:
    settings = {
        "offsets_topic_num_partitions": 3,
        "offsets_topic_segment_bytes": 2_000_000,
        "transaction_state_log_num_partitions": 5,
        "share_coordinator_state_topic_num_partitions": 7,
    }
    with running_node(tmp_path, **settings) as running:
        image = running.node.image
        for key_type, key in enumerate(["g", "x", SHARE_KEY]):
            find(running, key, key_type)
        counts = {name: len(topic.partitions) for name, topic in image.topics_by_name.items()}
        assert counts == {"__consumer_offsets": 3, "__transaction_state": 5, "__share_group_state": 7}
        assert image.configs(TOPIC, "__consumer_offsets")["segment.bytes"] == "2000000"


def test_clients_cannot_delete_records_of_them_but_the_share_coordinator_prunes(tmp_path: Path) -> None:
    with running_node(tmp_path, share_coordinator_state_topic_num_partitions=1) as running:
        find(running, SHARE_KEY, 2)
        replica = running.node.replicas.get("__share_group_state", 0)
        assert replica is not None

        def write() -> None:
            replica.stage(batch(b"1", b"2", b"3"))
            running.node.write_staged()

        running.change(write)
        kind = DeleteRecordsRequest
        wanted = kind.DeleteRecordsTopic("__share_group_state", (kind.DeleteRecordsPartition(0, 1),))
        assert running.client.ask(kind((wanted,)), 2).topics[0].partitions[0].error_code == 17
        running.change(lambda: running.node.share_state.prune(0, 2))
        assert replica.log.log_start_offset == 2
        running.change(lambda: running.node.share_state.prune(0, 1))
        assert replica.log.log_start_offset == 2, "it never goes back"
        running.change(lambda: running.node.share_state.prune(0, 99))
        assert replica.log.log_start_offset == 3, "nor past what is committed"


def test_what_is_compacted_says_the_same(start_node: StartNode) -> None:
    """The cleaner takes what was overwritten out of the log, and a restart finds what was there before."""
    settings = {"offsets_topic_num_partitions": 1, "log_cleaner_min_cleanable_ratio": 0.01, "log_roll_ms": 1}
    with start_node(**settings) as running:
        for number in range(300):
            say(running, "put", f"n{number % 10}", number)
            running.advance(2)
        say(running, "drop", "n3")
        before = dict(running.node.groups.shards[0].core.hard_state())
        replica = running.node.replicas.get("__consumer_offsets", 0)
        assert replica is not None
        size_bytes = replica.log.size_bytes
        running.advance(20_000)
        running.change(running.node.housekeeping.run_due)
        for _ in range(10_000):
            say(running, "get", "n1")
            if replica.log.size_bytes < size_bytes / 2:
                break
        assert replica.log.size_bytes < size_bytes / 2, "it was not compacted"
        assert say(running, "get", "n1") == 291
    with start_node(**settings) as running:
        assert running.node.groups.shards[0].core.hard_state() == before
