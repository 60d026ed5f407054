"""New partitions, for new and for existing topics; CreatePartitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.core.metadata import features
from ottla.core.metadata.checks import charge, check_single, check_size
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.placement import draw_from, place
from ottla.core.metadata.topic_image import PartitionImage, TopicImage, partition_record
from ottla.core.metadata.uuids import UNASSIGNED
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
)

_Result = CreatePartitionsResponseCreatePartitionsTopicResult


def create_partitions(state: ControllerState, request: CreatePartitionsRequest, context: Context) -> Result:
    """CreatePartitions: topics get more partitions, each topic on its own."""
    counts = Counter(topic.name for topic in request.topics)
    records: list[Versioned] = []
    by_name = {topic.name: topic for topic in request.topics}
    results = tuple(_grow(state, topic, counts[name], context, records) for name, topic in by_name.items())
    reply = CreatePartitionsResponse(results=results)
    return Result(() if request.validate_only else tuple(records), reply)


def _grow(
    state: ControllerState,
    topic: CreatePartitionsRequestCreatePartitionsTopic,
    count: int,
    context: Context,
    records: list[Versioned],
) -> _Result:
    try:
        check_single(count)
        new = _additional(state, topic, context)
        check_size(len(records) + len(new))
    except Reject as reject:
        return _Result(topic.name, reject.code, reject.message)
    records += new
    return _Result(topic.name)


def _additional(
    state: ControllerState, wanted: CreatePartitionsRequestCreatePartitionsTopic, context: Context
) -> list[Versioned]:
    if not context.authorize(Operation.ALTER, ResourceType.TOPIC, wanted.name):
        raise Reject(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = state.image.topic(wanted.name)
    if topic is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    first = len(topic.partitions)
    additional = wanted.count - first
    if additional <= 0:
        raise Reject(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {wanted.name} has {first} partition(s); {wanted.count} would not be more.",
        )
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise Reject(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{additional} partition(s) are added, and {len(wanted.assignments)} are assigned.",
        )
    charge(context, additional)
    check_size(additional)
    replicas = _replicas(state, topic, wanted, context)
    return new_partition_records(state, topic.topic_id, new_partitions(state, replicas, first))


def _replicas(
    state: ControllerState,
    topic: TopicImage,
    wanted: CreatePartitionsRequestCreatePartitionsTopic,
    context: Context,
) -> list[list[int]]:
    replication_factor = len(next(iter(topic.partitions.values())).replicas)
    if wanted.assignments is None:
        additional = wanted.count - len(topic.partitions)
        return place(state.image.brokers.values(), additional, replication_factor, draw_from(context.new_uuid))
    assigned = [list(assignment.broker_ids) for assignment in wanted.assignments]
    check_assignments(state, assigned, replication_factor)
    return assigned


# --- what new topics need, too


def check_assignments(state: ControllerState, assigned: Sequence[list[int]], replication_factor: int | None) -> None:
    """Reject with INVALID_REPLICA_ASSIGNMENT placements by hand that cannot be."""
    for partition, brokers in enumerate(assigned):
        replication_factor = len(brokers) if replication_factor is None else replication_factor
        problem = _assignment_problem(state, brokers, replication_factor)
        if problem:
            raise Reject(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Assignment {partition} of {len(assigned)} {problem}.")


def _assignment_problem(state: ControllerState, brokers: list[int], replication_factor: int) -> str | None:
    if not brokers:
        return "names no broker"
    unknown = [broker for broker in sorted(brokers) if broker not in state.image.brokers]
    if unknown:
        return f"names broker {unknown[0]}, which is not registered"
    if len(set(brokers)) != len(brokers):
        return "names a broker twice"
    if len(brokers) != replication_factor:
        return f"has {len(brokers)} replica(s) where the others have {replication_factor}"
    if not any(state.image.brokers[broker].is_active for broker in brokers):
        return "names only brokers that are fenced or shutting down"
    return None


def new_partitions(state: ControllerState, replicas: Sequence[list[int]], first: int) -> list[PartitionImage]:
    """Partitions numbered from `first` on, with those of their replicas in sync whose brokers are active."""
    return [_new_partition(state, number, tuple(brokers)) for number, brokers in enumerate(replicas, first)]


def _new_partition(state: ControllerState, number: int, replicas: tuple[int, ...]) -> PartitionImage:
    brokers = state.image.brokers
    isr = tuple(replica for replica in replicas if brokers[replica].is_active)
    return PartitionImage(
        partition_id=number,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(brokers[replica].default_dir if replica in brokers else UNASSIGNED for replica in replicas),
    )


def new_partition_records(
    state: ControllerState, topic_id: bytes, partitions: Sequence[PartitionImage]
) -> list[Versioned]:
    version = features.record_version("PartitionRecord", state.image.metadata_version)
    return [partition_record(topic_id, partition, version) for partition in partitions]
