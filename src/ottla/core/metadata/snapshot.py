"""Snapshots: an image as a file, and back.

A snapshot is a run of batches: a control batch with the header and, from kraft.version 1 on, the quorum's version and
voters; data batches whose records build the state from nothing; a control batch with the footer, without which the
file is incomplete. Offsets in it are only numbers; every batch carries the epoch of the last record contained. The
name says what it contains: `<end offset, exclusive>-<epoch>.checkpoint`.

Order of the records: features (metadata.version first, so that a reader knows what to expect), brokers, controllers,
topics with their partitions, configs, quotas, producer ids, ACLs, SCRAM credentials, delegation tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ottla.core.metadata import features
from ottla.core.metadata.cluster_image import broker_record, controller_record
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.records import build_data_batch, read_batch, split
from ottla.core.metadata.topic_image import partition_record
from ottla.wire import WireError
from ottla.wire.batch import (
    AnyBatch,
    BatchView,
    ControlRecordType,
    build_control_batch,
    read_control_batch,
    split_batches,
)
from ottla.wire.keyed import Versioned, encode_framed
from ottla.wire.types.cluster_metadata import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from ottla.wire.types.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

BATCH_RECORDS: Final = 1024
"""Records in a batch of a snapshot; a writer can pause after each."""

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(msgspec.Struct, frozen=True, order=True):
    """The log up to `end_offset`, exclusive; `epoch` is that of the last record contained."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"

    @classmethod
    def of_file(cls, name: str) -> SnapshotId | None:
        """The id in a file's name; None for other files."""
        match = _NAME.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2]))


BOOTSTRAP_ID: Final = SnapshotId(0, 0)
"""The snapshot that formatting makes: it holds the first voters and no data."""


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot that was read. Without kraft.version 1 there are no voters in it."""

    records: tuple[Versioned, ...]
    last_contained_log_timestamp: int = 0
    kraft_version: int = 0
    voters: VotersRecord | None = None


def snapshot_id(image: MetadataImage) -> SnapshotId:
    """The id of a snapshot of all that this image has read."""
    return SnapshotId(image.last_offset + 1, max(image.last_epoch, 0))


def snapshot_records(image: MetadataImage) -> Iterator[Versioned]:
    """The records that build this state from nothing. For slow readers hand in `image.fork()`."""
    if image.in_transaction:
        raise MetadataFault(f"the transaction of offset {image.transaction_start_offset} is still open")
    version = image.metadata_version
    yield from _feature_records(image)
    for broker in image.brokers.values():
        yield broker_record(broker, features.record_version("RegisterBrokerRecord", version))
    if version >= features.CONTROLLER_REGISTRATION_FROM:
        yield from map(controller_record, image.controllers.values())
    yield from _topic_records(image, features.record_version("PartitionRecord", version) if version else 0)
    yield from _config_records(image)
    yield from _quota_records(image)
    if image.next_producer_id >= 0:
        yield Versioned(ProducerIdsRecord(-1, -1, image.next_producer_id), 0)
    yield from (Versioned(acl, 0) for acl in image.acls.values())
    if version >= features.SCRAM_FROM:
        yield from (Versioned(credential, 0) for credential in image.scram.values())
    if version >= features.DELEGATION_TOKENS_FROM:
        yield from (Versioned(token, 0) for token in image.tokens.values())


def write_snapshot(
    records: Iterable[Versioned],
    *,
    epoch: int,
    timestamp_ms: int,
    last_contained_log_timestamp: int,
    kraft_version: int,
    voters: VotersRecord | None,
) -> Iterator[bytes]:
    """The batches of a snapshot one by one, in the order in which they are written."""
    head = _head(last_contained_log_timestamp, kraft_version, voters)
    yield _control_batch(head, 0, epoch, timestamp_ms)
    offset = len(head)
    for part in split((encode_framed(*record) for record in records), BATCH_RECORDS):
        yield build_data_batch(part, offset, epoch, timestamp_ms)
        offset += len(part)
    yield _control_batch([(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord())], offset, epoch, timestamp_ms)


def read_snapshot(data: bytes | bytearray | memoryview) -> Snapshot:
    """A whole file. WireError if it is damaged, MetadataFault if it is no complete snapshot."""
    batches = list(split_batches(data))
    if not batches or sum(batch.size_bytes for batch in batches) != len(data):
        raise MetadataFault("the snapshot is cut off")
    head, *body = [_checked(batch) for batch in batches]
    control = _control_messages(head)
    header = _header(control)
    if not body or ControlRecordType.SNAPSHOT_FOOTER not in _control_messages(body[-1]):
        raise MetadataFault("the snapshot has no footer: it is incomplete")
    version = control.get(ControlRecordType.KRAFT_VERSION)
    voters = control.get(ControlRecordType.KRAFT_VOTERS)
    return Snapshot(
        records=tuple(record for batch in body[:-1] for record in read_batch(batch)),
        last_contained_log_timestamp=header.last_contained_log_timestamp,
        kraft_version=version.k_raft_version if isinstance(version, KRaftVersionRecord) else 0,
        voters=voters if isinstance(voters, VotersRecord) else None,
    )


def read_snapshot_header(data: bytes | bytearray | memoryview) -> SnapshotHeaderRecord:
    """The header of a snapshot, of which `data` has at least the first batch. Errors are those of `read_snapshot`."""
    head = next(iter(split_batches(data)), None)
    if head is None:
        raise MetadataFault("the snapshot is cut off")
    return _header(_control_messages(_checked(head)))


def _header(control: dict[ControlRecordType, object]) -> SnapshotHeaderRecord:
    header = control.get(ControlRecordType.SNAPSHOT_HEADER)
    if not isinstance(header, SnapshotHeaderRecord):
        raise MetadataFault("the snapshot does not begin with a header")
    return header


def load_snapshot(snapshot: Snapshot, identity: SnapshotId) -> MetadataImage:
    """The image that a snapshot holds, as if the log up to it had been replayed."""
    image = MetadataImage()
    last_offset = identity.end_offset - 1
    for record in snapshot.records:
        image.replay(record.message, last_offset, identity.epoch)
    image.last_offset, image.last_epoch = last_offset, identity.epoch if last_offset >= 0 else -1
    return image


def _feature_records(image: MetadataImage) -> Iterator[Versioned]:
    names = sorted(image.features, key=lambda name: (name != features.METADATA_VERSION, name))
    return (Versioned(FeatureLevelRecord(name, image.features[name]), 0) for name in names)


def _topic_records(image: MetadataImage, version: int) -> Iterator[Versioned]:
    for topic in image.topics_by_id.values():
        yield Versioned(TopicRecord(topic.name, topic.topic_id), 0)
        for partition_id in sorted(topic.partitions):
            yield partition_record(topic.topic_id, topic.partitions[partition_id], version)


def _config_records(image: MetadataImage) -> Iterator[Versioned]:
    for (resource_type, name), configs in image.all_configs():
        for key, value in configs.items():
            yield Versioned(ConfigRecord(resource_type, name, key, value), 0)


def _quota_records(image: MetadataImage) -> Iterator[Versioned]:
    for entity, quotas in image.quotas.items():
        parts = tuple(ClientQuotaRecord.EntityData(*part) for part in entity)
        for key, value in quotas.items():
            yield Versioned(ClientQuotaRecord(parts, key, value), 0)


_Control = tuple[ControlRecordType, object]


def _head(timestamp: int, kraft_version: int, voters: VotersRecord | None) -> list[_Control]:
    head: list[_Control] = [
        (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=timestamp))
    ]
    if kraft_version >= 1:
        head.append((ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(k_raft_version=kraft_version)))
        if voters is not None:
            head.append((ControlRecordType.KRAFT_VOTERS, voters))
    return head


def _control_batch(messages: list[_Control], base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    return build_control_batch(messages, base_offset=base_offset, timestamp=timestamp_ms, partition_leader_epoch=epoch)


def _checked(batch: AnyBatch) -> BatchView:
    if not isinstance(batch, BatchView):
        raise WireError("RecordBatch.magic", None, "a snapshot has batches of magic 2 only")
    batch.check_crc()
    return batch


def _control_messages(batch: BatchView) -> dict[ControlRecordType, object]:
    return {record.type: record.message for record in read_control_batch(batch)} if batch.is_control else {}
