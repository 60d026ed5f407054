"""Topics and partitions as the metadata log has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.uuids import MIGRATING, UNASSIGNED
from ottla.wire.keyed import Versioned
from ottla.wire.types.cluster_metadata import PartitionChangeRecord, PartitionRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
_NO_RECOVERY_CHANGE: Final = -1


def partitions_by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Partitions as most messages have them: each topic once, with the numbers of its partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """One partition. `directories` runs parallel to `replicas`; the first replica is the preferred leader."""

    partition_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    @property
    def placed(self) -> Iterator[tuple[int, bytes]]:
        """The replicas with their log directories."""
        return zip(self.replicas, self.directories, strict=True)

    def directory_of(self, broker_id: int) -> bytes:
        """The log directory of a replica; UNASSIGNED for a broker that has none."""
        for replica, directory in self.placed:
            if replica == broker_id:
                return directory
        return UNASSIGNED


class TopicImage:
    """One topic. `partitions` are by number, 0 to n-1.

    `generation` is that of the image which made it. Another image that has it, too, copies it before it changes it.
    """

    __slots__ = ("generation", "name", "partitions", "topic_id")

    def __init__(
        self, name: str, topic_id: bytes, partitions: dict[int, PartitionImage] | None = None, generation: int = 0
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionImage] = {} if partitions is None else partitions
        self.generation = generation

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicImage):
            return NotImplemented
        return (self.name, self.topic_id, self.partitions) == (other.name, other.topic_id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {self.topic_id.hex()}, {len(self.partitions)} partitions)"

    def copy(self, generation: int) -> TopicImage:
        return TopicImage(self.name, self.topic_id, dict(self.partitions), generation)


def partition_from_record(record: PartitionRecord) -> PartitionImage:
    """The partition that a whole-state record describes. MetadataFault if it cannot be one."""
    _check_recovery(record.leader_recovery_state)
    return PartitionImage(
        partition_id=record.partition_id,
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=_directories(record.replicas, record.directories),
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        elr=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
        leader_recovery_state=record.leader_recovery_state,
    )


def merge(partition: PartitionImage, change: PartitionChangeRecord) -> PartitionImage:
    """The partition after a change. Its epoch grows with every one, the leader's with every election."""
    elected = change.leader != NO_LEADER_CHANGE
    recovery = change.leader_recovery_state
    if recovery != _NO_RECOVERY_CHANGE:
        _check_recovery(recovery)
    replicas = _given(change.replicas, partition.replicas)
    return PartitionImage(
        partition_id=partition.partition_id,
        replicas=replicas,
        isr=_given(change.isr, partition.isr),
        leader=change.leader if elected else partition.leader,
        leader_epoch=partition.leader_epoch + 1 if elected else partition.leader_epoch,
        partition_epoch=partition.partition_epoch + 1,
        directories=_merged_directories(partition, replicas, change.directories),
        removing_replicas=_given(change.removing_replicas, partition.removing_replicas),
        adding_replicas=_given(change.adding_replicas, partition.adding_replicas),
        elr=_given(change.eligible_leader_replicas, partition.elr),
        last_known_elr=_given(change.last_known_elr, partition.last_known_elr),
        leader_recovery_state=partition.leader_recovery_state if recovery == _NO_RECOVERY_CHANGE else recovery,
    )


def partition_record(topic_id: bytes, partition: PartitionImage, version: int) -> Versioned:
    """The whole-state record in the given version; what that version has no field for is left out."""
    record = PartitionRecord(
        partition_id=partition.partition_id,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories if version >= 1 else (),
        # Tagged fields: absent says the same as empty.
        eligible_leader_replicas=(partition.elr or None) if version >= 2 else None,
        last_known_elr=(partition.last_known_elr or None) if version >= 2 else None,
    )
    return Versioned(record, version)


def _given(new: tuple[int, ...] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else new


def _directories(replicas: tuple[int, ...], directories: tuple[bytes, ...]) -> tuple[bytes, ...]:
    if not directories:
        return (MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise MetadataFault(f"{len(directories)} directories for {len(replicas)} replicas")
    return directories


def _merged_directories(
    partition: PartitionImage, replicas: tuple[int, ...], directories: tuple[bytes, ...] | None
) -> tuple[bytes, ...]:
    if directories is not None:
        return _directories(replicas, directories)
    if replicas == partition.replicas:
        return partition.directories
    # Versions without directories move replicas, too; what is known of those that stay is kept.
    known = dict(partition.placed)
    return tuple(known.get(replica, MIGRATING) for replica in replicas)


def _check_recovery(state: int) -> None:
    if state not in (RECOVERED, RECOVERING):
        raise MetadataFault(f"leader recovery state {state} is neither recovered (0) nor recovering (1)")
