"""The metadata log of an Apache Kafka 4.3.1 node: read by ours, and written again by ours from the same requests."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ottla.core.metadata import features
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.configs import DELETE, SET
from ottla.core.metadata.context import Context, ControllerSettings
from ottla.core.metadata.controller import Controller
from ottla.core.metadata.image import BROKER, GROUP, TOPIC, MetadataImage
from ottla.core.metadata.records import build_data_batch, read_batch
from ottla.core.metadata.snapshot import SnapshotId, load_snapshot, read_snapshot
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.keyed import Versioned, encode_framed
from ottla.wire.properties import read_meta_properties
from ottla.wire.types import cluster_metadata as log
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.create_partitions import CreatePartitionsRequest
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.core.metadata.cluster import through_snapshot
from tests.unit.core.metadata.simple_rules import SimpleRules

LIFE = Path(__file__).parents[3] / "golden" / "storage" / "life"
LOG = (LIFE / "00000000000000000000.log").read_bytes()
_NO_OP = Versioned(log.NoOpRecord(), 0)
SNAPSHOTS = sorted(path for path in LIFE.glob("*.checkpoint") if not path.name.startswith("0" * 20))


def batches() -> Iterator[BatchView]:
    for batch in split_batches(LOG):
        assert isinstance(batch, BatchView)
        if not batch.is_control:
            yield batch


def replayed(end_offset: int | None = None) -> MetadataImage:
    image = MetadataImage()
    for batch in batches():
        if end_offset is None or batch.last_offset < end_offset:
            image.replay_all(read_batch(batch), batch.base_offset, batch.partition_leader_epoch)
    return image


def test_the_whole_log_is_read():
    image = replayed()
    assert set(image.topics_by_name) == {"orders", "pay.ments", "after-crash"}
    assert len(image.topics_by_name["orders"].partitions) == 5
    assert image.configs(TOPIC, "pay.ments") == {"segment.bytes": "1048576", "cleanup.policy": "compact,delete"}
    assert image.configs(TOPIC, "orders") == {"cleanup.policy": "compact", "min.insync.replicas": "1"}
    assert image.configs(BROKER, "1") == {"num.io.threads": "4"}
    assert image.configs(BROKER, "") == {"min.insync.replicas": "1", "log.cleaner.threads": "2"}
    assert image.configs(GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    assert list(image.scram) == [(2, "bob")]
    assert image.quotas == {
        (("user", "alice"),): {"producer_byte_rate": 1024.0},
        (("client-id", None),): {"consumer_byte_rate": 2048.0},
    }
    assert image.next_producer_id == 1000
    assert {**image.features, "kraft.version": 1} == features.levels_for_format()
    assert image.brokers[1].fenced
    for _, partition in image.partitions():
        assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (1,))


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name)
def test_apaches_snapshot_says_what_its_log_says(path: Path):
    identity = SnapshotId.of_file(path.name)
    assert identity is not None
    snapshot = read_snapshot(path.read_bytes())
    assert snapshot.kraft_version == 1
    assert snapshot.voters is not None
    loaded, from_log = load_snapshot(snapshot, identity), replayed(identity.end_offset)
    # A quorum's control batch may be the last one before the snapshot, and is not in the image.
    from_log.last_offset, from_log.last_epoch = loaded.last_offset, loaded.last_epoch
    assert loaded.state() == from_log.state()
    assert through_snapshot(loaded) == loaded


def test_apaches_snapshot_and_the_rest_of_the_log():
    path = SNAPSHOTS[0]
    identity = SnapshotId.of_file(path.name)
    assert identity is not None
    image = load_snapshot(read_snapshot(path.read_bytes()), identity)
    for batch in batches():
        if batch.base_offset >= identity.end_offset:
            image.replay_all(read_batch(batch), batch.base_offset, batch.partition_leader_epoch)
    assert image == replayed()


def test_records_come_out_byte_for_byte_as_they_went_in():
    for batch in batches():
        values = [encode_framed(*record) for record in read_batch(batch)]
        rebuilt = build_data_batch(values, batch.base_offset, batch.partition_leader_epoch, batch.base_timestamp)
        assert rebuilt == bytes(batch.data)


# --- the same life again, led by our controller


class Script:
    """Answers requests as a node would, with Apache's ids, and holds the records against Apache's, batch by batch."""

    def __init__(self) -> None:
        # Apache's controller adds a NoOp now and then, by the clock.
        read = [(batch.base_offset, read_batch(batch)) for batch in batches()]
        self.remaining = [(offset, records) for offset, records in read if records != [_NO_OP]]
        self.image = MetadataImage()
        meta = read_meta_properties((LIFE / "meta.properties").read_bytes())
        self.settings = ControllerSettings(node_id=1, cluster_id=meta.cluster_id)
        self.become_active()

    def become_active(self) -> None:
        rules = _AnyTopicConfig()
        self.controller = Controller(self.image, rules, self.settings)
        self.now_ms = 0

    def upcoming(self, kind: type) -> Any:
        return next(record.message for record in self.remaining[0][1] if isinstance(record.message, kind))

    def send(self, request: Any, **context: Any) -> Any:
        base_offset, _ = self.remaining[0]
        given = Context(now_ms=self.now_ms, log_end_offset=base_offset, new_uuid=self.next_topic_id, api_version=9)
        result = self.controller.handle(request, msgspec.structs.replace(given, **context))
        self.expect(result.records)
        return result.reply

    def next_topic_id(self) -> bytes:
        return bytes(self.upcoming(log.TopicRecord).topic_id)

    def expect(self, records: tuple[Versioned, ...]) -> None:
        """These records are Apache's next batch."""
        base_offset, apaches = self.remaining.pop(0)
        assert _comparable(records) == _comparable(apaches), f"offset {base_offset}"
        self.image.replay_all(apaches, base_offset, 1)

    def skip(self, *kinds: type) -> None:
        """Over batches of requests that the controller does not answer yet."""
        base_offset, apaches = self.remaining.pop(0)
        assert {type(record.message) for record in apaches} <= set(kinds)
        self.image.replay_all(apaches, base_offset, 1)

    def heartbeat(self, **fields: Any) -> Any:
        epoch = self.image.brokers[1].epoch
        return self.send(BrokerHeartbeatRequest(1, epoch, current_metadata_offset=1 << 40, **fields))

    def register_controller(self) -> None:
        record = self.upcoming(log.RegisterControllerRecord)
        kind = ControllerRegistrationRequest
        listeners = tuple(kind.Listener(e.name, e.host, e.port, e.security_protocol) for e in record.end_points)
        supported = tuple(
            kind.Feature(f.name, f.min_supported_version, f.max_supported_version) for f in record.features
        )
        self.send(kind(1, record.incarnation_id, listeners=listeners, features=supported))

    def register_broker(self, previous_epoch: int) -> None:
        record = self.upcoming(log.RegisterBrokerRecord)
        kind = BrokerRegistrationRequest
        request = kind(
            1,
            self.settings.cluster_id,
            record.incarnation_id,
            listeners=tuple(kind.Listener(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features=tuple(
                kind.Feature(f.name, f.min_supported_version, f.max_supported_version) for f in record.features
            ),
            rack=None,
            log_dirs=record.log_dirs,
            previous_broker_epoch=previous_epoch,
        )
        assert self.send(request).broker_epoch == record.broker_epoch

    def create(self, name: str, partitions: int, **configs: str) -> None:
        kind = CreateTopicsRequest
        given = tuple(kind.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items())
        reply = self.send(kind((kind.CreatableTopic(name, partitions, 1, configs=given),)))
        assert reply.topics[0].error_code == 0

    def alter(self, kind: int, name: str, *steps: tuple[str, int, str | None]) -> None:
        request = IncrementalAlterConfigsRequest
        configs = tuple(request.AlterableConfig(*step) for step in steps)
        reply = self.send(request((request.AlterConfigsResource(kind, name, configs),)))
        assert reply.responses[0].error_code == 0, reply


class _AnyTopicConfig(SimpleRules):
    def check(self, *_: Any) -> None:
        pass

    def topic_configs(self, *_: Any) -> list[Any]:
        return []


def _comparable(records: Any) -> list[Any]:
    """Neighbours of one kind in an order of ours: Apache's comes from hash tables."""
    plain = [(type(record.message).__name__, record.version, msgspec.to_builtins(record.message)) for record in records]
    runs = [sorted(run, key=str) for _, run in groupby(plain, key=lambda entry: entry[0])]
    return [record for run in runs for record in run]


def test_our_controller_writes_what_apaches_wrote():
    life = Script()
    life.expect(life.controller.activate(bootstrap_records(features.levels_for_format()), 0).records)
    life.register_controller()
    life.register_broker(-1)
    life.heartbeat(want_fence=True, cordoned_log_dirs=())
    life.heartbeat()
    life.create("orders", 3, cleanup_policy="compact", min_insync_replicas="1")
    life.create("pay.ments", 1)
    life.create("gone", 2, retention_ms="1000")
    life.send(CreatePartitionsRequest((CreatePartitionsRequest.CreatePartitionsTopic("orders", 5, None),)))
    life.send(DeleteTopicsRequest((DeleteTopicsRequest.DeleteTopicState("gone"),)))
    life.alter(TOPIC, "orders", ("retention.ms", SET, "86400000"))
    life.alter(TOPIC, "orders", ("retention.ms", DELETE, None))
    life.alter(TOPIC, "pay.ments", ("segment.bytes", SET, "1048576"), ("cleanup.policy", SET, "compact,delete"))
    life.alter(BROKER, "", ("log.cleaner.threads", SET, "2"))
    life.alter(BROKER, "1", ("num.io.threads", SET, "4"))
    life.alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    for _ in range(5):
        life.skip(log.UserScramCredentialRecord, log.ClientQuotaRecord, log.RemoveUserScramCredentialRecord)
    reply = life.send(AllocateProducerIdsRequest(1, life.image.brokers[1].epoch))
    assert (reply.producer_id_start, reply.producer_id_len) == (0, 1000)
    stop(life)

    epoch = life.image.brokers[1].epoch
    life.become_active()
    assert life.controller.activate((), 0).records == ()
    life.register_controller()
    life.register_broker(epoch)
    start(life)

    # Killed. Apache's controller waits for the old session to end before it lets the new process in.
    life.become_active()
    assert life.controller.activate((), 0).records == ()
    life.register_controller()
    life.now_ms = 9_000
    fencing = life.controller.tick(life.now_ms, life.now_ms)
    assert fencing is not None
    life.expect(fencing.records)
    life.register_broker(-1)
    start(life)
    life.create("after-crash", 1)
    stop(life)
    assert life.remaining == []
    assert life.image.state()["topics"] == replayed().state()["topics"]


def start(life: Script) -> None:
    """A broker comes up; whether it tells of cordoned directories before or with its unfencing is a matter of time."""
    changes = [record.message for record in life.remaining[0][1]]
    if changes[0].cordoned_log_dirs is not None:
        life.heartbeat(want_fence=True, cordoned_log_dirs=())
        life.heartbeat()
    else:
        is_last = changes[-1] != changes[0] and isinstance(changes[-1], log.BrokerRegistrationChangeRecord)
        life.heartbeat(cordoned_log_dirs=() if is_last else None)
        if not is_last:
            life.heartbeat(cordoned_log_dirs=())


def stop(life: Script) -> None:
    assert life.heartbeat(want_shut_down=True).should_shut_down is False
    assert life.heartbeat(want_shut_down=True).should_shut_down is True
