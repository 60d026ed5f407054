"""AssignReplicasToDirs: a broker with several log directories says which of them holds a replica.

So the controller knows whom a failed directory concerns (KIP-858). A broker with one directory need not say it: its
replicas get that directory when they are made. A replica in a directory that has failed leaves the ISR.
"""

from __future__ import annotations

from itertools import chain

import msgspec

from ottla.core.metadata import elections, features
from ottla.core.metadata.brokers import check_broker_epoch
from ottla.core.metadata.checks import check_cluster_access
from ottla.core.metadata.context import Context, ControllerState, Result, in_slices
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import PartitionImage
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def assign_replicas(state: ControllerState, request: AssignReplicasToDirsRequest, context: Context) -> Result:
    """Each replica is assigned or refused on its own."""
    check_cluster_access(context, Operation.CLUSTER_ACTION)
    if state.image.metadata_version < features.DIRECTORIES_FROM:
        raise Reject(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Directories have ids from {features.METADATA_VERSION} {features.DIRECTORIES_FROM} on.",
        )
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    kind = AssignReplicasToDirsResponse
    records: list[Versioned] = []
    lost: list[tuple[bytes, int]] = []
    directories = []
    for directory in request.directories:
        is_online = broker.has_online_dir(directory.id)
        topics = []
        for topic in directory.topics:
            partitions = []
            for partition in topic.partitions:
                code = _assign(
                    state, broker.broker_id, topic.topic_id, partition.partition_index, directory.id, records
                )
                partitions.append(kind.PartitionData(partition.partition_index, code))
                if code is ErrorCode.NONE and not is_online:
                    lost.append((topic.topic_id, partition.partition_index))
            topics.append(kind.TopicData(topic.topic_id, tuple(partitions)))
        directories.append(kind.DirectoryData(directory.id, tuple(topics)))
    changes = elections.replicas_lost(state, broker.broker_id, dict.fromkeys(lost))
    return in_slices(chain(records, changes), kind(directories=tuple(directories)))


def _assign(
    state: ControllerState, broker_id: int, topic_id: bytes, number: int, directory: bytes, records: list[Versioned]
) -> ErrorCode:
    topic = state.image.topic_by_id(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(number)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    wanted = msgspec.structs.replace(partition, directories=_with(partition, broker_id, directory))
    terms = elections.terms_for(state, topic, partition, elections.Election.ONLINE)
    record = elections.change_partition(topic_id, partition, wanted, terms)
    if record is not None:
        records.append(record)
    return ErrorCode.NONE


def _with(partition: PartitionImage, broker_id: int, directory: bytes) -> tuple[bytes, ...]:
    return tuple(directory if replica == broker_id else known for replica, known in partition.placed)
