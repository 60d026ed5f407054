from itertools import islice

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.context import Result
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.snapshot import (
    BATCH_RECORDS,
    SnapshotId,
    load_snapshot,
    read_snapshot,
    snapshot_id,
    snapshot_records,
    write_snapshot,
)
from ottla.wire import WireError
from ottla.wire.batch import read_header
from ottla.wire.keyed import Versioned
from ottla.wire.types import cluster_metadata as log
from tests.unit.core.metadata.cluster import Cluster, through_snapshot, uuid
from tests.unit.core.metadata.formatted import standalone_voters

VOTERS = standalone_voters(1, uuid(1), "CONTROLLER", "127.0.0.1", 9093)


def batches(image: MetadataImage, **fields: int) -> list[bytes]:
    given = {"epoch": 3, "timestamp_ms": 5, "last_contained_log_timestamp": 4, "kraft_version": 1, **fields}
    return list(write_snapshot(snapshot_records(image), voters=VOTERS, **given))


def test_names():
    identity = SnapshotId(95, 3)
    assert identity.file_name == "00000000000000000095-0000000003.checkpoint"
    assert SnapshotId.of_file(identity.file_name) == identity
    assert SnapshotId.of_file("bootstrap.checkpoint") is None
    assert SnapshotId.of_file(identity.file_name + ".part") is None
    assert max(SnapshotId(9, 1), SnapshotId(10, 0), SnapshotId(10, 2)) == SnapshotId(10, 2)


def test_head_body_foot(cluster: Cluster):
    cluster.create("t")
    data = batches(cluster.image)
    headers = [read_header(batch) for batch in data]
    assert [header.is_control for header in headers] == [True, False, True]
    assert [header.record_count for header in headers][::2] == [3, 1]
    assert {header.partition_leader_epoch for header in headers} == {3}
    assert headers[1].base_offset == 3
    assert headers[2].base_offset == headers[1].next_offset
    snapshot = read_snapshot(b"".join(data))
    assert (snapshot.last_contained_log_timestamp, snapshot.kraft_version, snapshot.voters) == (4, 1, VOTERS)


def test_a_static_quorum_is_not_in_it(cluster: Cluster):
    snapshot = read_snapshot(b"".join(batches(cluster.image, kraft_version=0)))
    assert (snapshot.kraft_version, snapshot.voters) == (0, None)


def test_the_order_of_the_records(three: Cluster):
    three.create("t", 2, 2, retention_ms="5")
    others = [
        log.ClientQuotaRecord((log.ClientQuotaRecord.EntityData("user", None),), "producer_byte_rate", 1.0),
        log.ProducerIdsRecord(1, 1, 1000),
        log.AccessControlEntryRecord(uuid(1)),
        log.UserScramCredentialRecord("alice", 1),
        log.DelegationTokenRecord(token_id="x"),
        log.RegisterControllerRecord(1),
    ]
    three.append(Result(tuple(Versioned(record, 0) for record in others), None))
    kinds = [type(record.message).__name__ for record in snapshot_records(three.image)]
    assert list(dict.fromkeys(kinds)) == [
        "FeatureLevelRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "TopicRecord",
        "PartitionRecord",
        "ConfigRecord",
        "ClientQuotaRecord",
        "ProducerIdsRecord",
        "AccessControlEntryRecord",
        "UserScramCredentialRecord",
        "DelegationTokenRecord",
    ]
    first = next(snapshot_records(three.image)).message
    assert first.name == features.METADATA_VERSION


def test_batches_are_small_enough_to_pause_between():
    cluster = Cluster().with_brokers(1)
    cluster.create("t", 3 * BATCH_RECORDS)
    counts = [read_header(batch).record_count for batch in batches(cluster.image)]
    assert max(counts) == BATCH_RECORDS
    assert len(counts) == 6
    assert through_snapshot(cluster.image) == cluster.image


def test_written_slowly_from_a_view_it_shows_one_moment(three: Cluster):
    three.create("t", 2000, 3)
    expected = through_snapshot(three.image)
    identity = snapshot_id(three.image)
    writing = write_snapshot(
        snapshot_records(three.image.fork()),
        epoch=1,
        timestamp_ms=0,
        last_contained_log_timestamp=0,
        kraft_version=0,
        voters=None,
    )
    written = list(islice(writing, 2))
    three.heartbeat(2, want_fence=True)
    three.create("u")
    written += writing
    assert load_snapshot(read_snapshot(b"".join(written)), identity) == expected


def test_never_in_the_middle_of_a_transaction():
    image = MetadataImage()
    image.replay(log.BeginTransactionRecord(), 0, 1)
    with pytest.raises(MetadataFault, match="offset 0"):
        list(snapshot_records(image))


def test_registrations_are_caught_up_with_once_the_snapshot_is(cluster: Cluster):
    identity = snapshot_id(cluster.image)
    loaded = through_snapshot(cluster.image)
    assert loaded is not None
    assert loaded.registered_at == {1: identity.end_offset - 1}


def test_an_empty_snapshot_is_an_empty_image():
    assert through_snapshot(MetadataImage()) == MetadataImage()


def test_every_cut_is_noticed(cluster: Cluster):
    data = b"".join(batches(cluster.image))
    for end in range(len(data)):
        with pytest.raises((MetadataFault, WireError)):
            read_snapshot(data[:end])


def test_damage_is_noticed(cluster: Cluster):
    data = bytearray(b"".join(batches(cluster.image)))
    data[len(data) // 2] ^= 1
    with pytest.raises(WireError, match="crc"):
        read_snapshot(bytes(data))


def test_without_head_or_foot(cluster: Cluster):
    head, body, foot = batches(cluster.image)
    with pytest.raises(MetadataFault, match="header"):
        read_snapshot(body + foot)
    with pytest.raises(MetadataFault, match="footer"):
        read_snapshot(head + body)
    with pytest.raises(MetadataFault, match="footer"):
        read_snapshot(head)


@pytest.mark.parametrize("level", [7, 8, 11, 13, 14, 15, 17, 22, 23, 29, 30])
def test_old_clusters_have_records_of_their_time(level: int):
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: level})).with_brokers(1)
    cluster.create("t")
    cluster.heartbeat(want_fence=True)
    cluster.check_law()
