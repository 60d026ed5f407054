"""Partitions on their way to other brokers: AlterPartitionReassignments and ListPartitionReassignments.

A reassignment has two steps. The partition first gets the new replicas beside the old ones, with those that come
(`adding`) and those that go (`removing`) noted; when those that come are in sync, those that go are dropped. That
happens with the change of the ISR that makes it so (see `elections`), or at once if nobody has to catch up.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ottla.core.metadata.checks import check_cluster_access, check_single, check_size
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.elections import Election, change_partition, terms_for, usual_election
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import PartitionImage, TopicImage
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.types.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

# --- asking for it


def alter_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest, context: Context
) -> Result:
    """AlterPartitionReassignments: each partition is sent on its way, or called back, on its own."""
    check_cluster_access(context, Operation.ALTER)
    kind = AlterPartitionReassignmentsResponse
    may_resize = request.allow_replication_factor_change
    if not request.topics:
        return Result((), kind())
    counts = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    records: list[Versioned] = []
    topics = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            count = counts[topic.name, wanted.partition_index]
            code, message = _alter(state, topic.name, wanted, count, records, may_resize=may_resize)
            answers.append(kind.ReassignablePartitionResponse(wanted.partition_index, code, message))
        topics.append(kind.ReassignableTopicResponse(topic.name, tuple(answers)))
    check_size(len(records))
    reply = kind(allow_replication_factor_change=may_resize, error_message=None, responses=tuple(topics))
    return Result(tuple(records), reply)


def refuse_alter(request: AlterPartitionReassignmentsRequest, reject: Reject) -> AlterPartitionReassignmentsResponse:
    kind = AlterPartitionReassignmentsResponse
    entry = kind.ReassignablePartitionResponse
    responses = tuple(
        kind.ReassignableTopicResponse(
            topic.name,
            tuple(entry(each.partition_index, reject.code, reject.message) for each in topic.partitions),
        )
        for topic in request.topics
    )
    return kind(error_code=reject.code, error_message=reject.message, responses=responses)


def _alter(
    state: ControllerState,
    name: str,
    wanted: AlterPartitionReassignmentsRequestReassignablePartition,
    count: int,
    records: list[Versioned],
    *,
    may_resize: bool,
) -> tuple[ErrorCode, str | None]:
    try:
        check_single(count)
        topic, partition = _find(state, name, wanted.partition_index)
        if wanted.replicas is None:
            target, election = _called_back(state, topic, partition), usual_election(state, topic)
        else:
            _check_target(state, partition, wanted.replicas, may_resize=may_resize)
            target, election = _sent(state, partition, wanted.replicas), Election.ONLINE
        record = change_partition(topic.topic_id, partition, target, terms_for(state, topic, partition, election))
    except Reject as reject:
        return reject.code, reject.message
    if record is not None:
        records.append(record)
    return ErrorCode.NONE, None


def _find(state: ControllerState, name: str, number: int) -> tuple[TopicImage, PartitionImage]:
    topic = state.image.topic(name)
    if topic is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(number)
    if partition is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{number}.")
    return topic, partition


def _check_target(
    state: ControllerState, partition: PartitionImage, target: tuple[int, ...], *, may_resize: bool
) -> None:
    problem = _target_problem(state, target)
    if problem:
        raise Reject(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {problem}")
    size = len({*partition.replicas}.difference(partition.removing_replicas))
    if not may_resize and len(target) != size:
        raise Reject(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {size} to {len(target)}",
        )


def _target_problem(state: ControllerState, target: tuple[int, ...]) -> str | None:
    if not target:
        return "an empty replica list."
    seen: set[int] = set()
    for broker in sorted(target):
        if broker not in state.image.brokers:
            return f"broker {broker}, but no such broker is registered."
        if broker in seen:
            return f"the broker {broker} more than once."
        seen.add(broker)
    return None


# --- what becomes of the partition


def _sent(state: ControllerState, partition: PartitionImage, target: tuple[int, ...]) -> PartitionImage:
    """The partition with the replicas that it is to have, and with those that it has until they are in sync."""
    adding = tuple(sorted({*target}.difference(partition.replicas)))
    removing = tuple(sorted({*partition.replicas}.difference(target)))
    moved = _on(state, partition, (*target, *removing))
    # Those that an earlier reassignment has added, and this one keeps, are still on their way.
    coming = adding or tuple(each for each in partition.adding_replicas if each in target)
    return msgspec.structs.replace(moved, adding_replicas=coming, removing_replicas=removing)


def _called_back(state: ControllerState, topic: TopicImage, partition: PartitionImage) -> PartitionImage:
    """The partition as it was before it was sent on its way."""
    if not partition.is_reassigning:
        raise Reject(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(each for each in partition.replicas if each not in partition.adding_replicas)
    isr = tuple(each for each in partition.isr if each in replicas)
    if not isr:
        if usual_election(state, topic) is not Election.UNCLEAN:
            raise Reject(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition.partition_id} because it would "
                "require an unclean leader election.",
            )
        isr = replicas[:1]
    return msgspec.structs.replace(_on(state, partition, replicas), isr=isr, adding_replicas=(), removing_replicas=())


def _on(state: ControllerState, partition: PartitionImage, replicas: tuple[int, ...]) -> PartitionImage:
    """The partition on these brokers, each replica where it is known to be or where its broker puts new ones."""
    known = dict(partition.placed)
    brokers = state.image.brokers
    directories = tuple(known[each] if each in known else brokers[each].default_dir for each in replicas)
    return msgspec.structs.replace(partition, replicas=replicas, directories=directories)


# --- asking how it goes


def list_reassignments(state: ControllerState, request: ListPartitionReassignmentsRequest, context: Context) -> Result:
    """ListPartitionReassignments: the partitions, of all or of some, that are on their way to other brokers."""
    check_cluster_access(context, Operation.DESCRIBE)
    if request.topics is None:
        asked = [(topic.name, tuple(topic.partitions)) for topic in state.image.topics_by_id.values()]
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = []
    kind = ListPartitionReassignmentsResponse
    for name, numbers in asked:
        moving = [p for n in numbers if (p := state.image.partition(name, n)) is not None and p.is_reassigning]
        if moving:
            partitions = tuple(
                kind.OngoingPartitionReassignment(p.partition_id, p.replicas, p.adding_replicas, p.removing_replicas)
                for p in moving
            )
            topics.append(kind.OngoingTopicReassignment(name, partitions))
    return Result((), kind(error_message=None, topics=tuple(topics)))


def refuse_list(request: ListPartitionReassignmentsRequest, reject: Reject) -> ListPartitionReassignmentsResponse:
    kind = ListPartitionReassignmentsResponse
    topics = tuple(
        kind.OngoingTopicReassignment(
            topic.name, tuple(kind.OngoingPartitionReassignment(each) for each in topic.partition_indexes)
        )
        for topic in request.topics or ()
    )
    return kind(error_code=reject.code, error_message=reject.message, topics=topics)
