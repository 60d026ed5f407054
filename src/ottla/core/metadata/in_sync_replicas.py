"""AlterPartition: the leader of a partition says which replicas are in sync with it.

Only the leader sees who has caught up and who lags behind. It proposes an ISR on top of the state it knows; if that is
not the state on record, the proposal is refused and the leader waits for the metadata. The checks, in this order:

==============================================================================  ==========================
what is wrong                                                                   error
==============================================================================  ==========================
the sender is registered with another epoch (of the whole request)              STALE_BROKER_EPOCH
there is no such topic                                                          UNKNOWN_TOPIC_ID
there is no such partition                                                      UNKNOWN_TOPIC_OR_PARTITION
the leader knows a later leader epoch or partition epoch than the controller    NOT_CONTROLLER
its leader epoch is over                                                        FENCED_LEADER_EPOCH
the sender does not lead the partition                                          INVALID_REQUEST
its partition epoch is over                                                     INVALID_UPDATE_VERSION
the ISR has others than replicas, one of them twice, or not the leader          INVALID_REQUEST
the leader still recovers, and others are in the ISR; or it recovers again      INVALID_REQUEST
a member is not registered, fenced, shutting down, or has another epoch         INELIGIBLE_REPLICA
==============================================================================  ==========================

An ISR that ends a reassignment may move the leader. That is the one case in which there are records and an error,
NEW_LEADER_ELECTED.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.core.metadata.brokers import check_broker_epoch
from ottla.core.metadata.checks import check_cluster_access
from ottla.core.metadata.context import Context, ControllerState, Result
from ottla.core.metadata.elections import change_partition, terms_for
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import NO_LEADER_CHANGE, RECOVERED, RECOVERING, PartitionImage, TopicImage, merge
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestBrokerState,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
)

_EPOCHS_FROM_VERSION: Final = 3
_ANY_EPOCH: Final = -1

_Proposal = AlterPartitionRequestPartitionData
_Member = AlterPartitionRequestBrokerState
_Answer = AlterPartitionResponsePartitionData


def alter_partition(state: ControllerState, request: AlterPartitionRequest, context: Context) -> Result:
    """AlterPartition: each partition is changed or refused on its own."""
    check_cluster_access(context, Operation.CLUSTER_ACTION)
    sender = check_broker_epoch(state, request.broker_id, request.broker_epoch).broker_id
    kind = AlterPartitionResponse
    records: list[Versioned] = []
    topics = []
    for asked in request.topics:
        topic = state.image.topic_by_id(asked.topic_id)
        answers = []
        for proposal in asked.partitions:
            try:
                answers.append(_alter(state, sender, topic, _with_members(proposal, context), records))
            except Reject as reject:
                answers.append(_Answer(proposal.partition_index, reject.code))
        topics.append(kind.TopicData(asked.topic_id, tuple(answers)))
    return Result(tuple(records), kind(topics=tuple(topics)), is_atomic=False)


def _with_members(proposal: _Proposal, context: Context) -> _Proposal:
    """Old versions name the members without their epochs."""
    if context.api_version >= _EPOCHS_FROM_VERSION:
        return proposal
    return msgspec.structs.replace(proposal, new_isr_with_epochs=tuple(map(_Member, proposal.new_isr)))


def _alter(
    state: ControllerState, sender: int, topic: TopicImage | None, proposal: _Proposal, records: list[Versioned]
) -> _Answer:
    if topic is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(proposal.partition_index)
    if partition is None:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = tuple(member.broker_id for member in proposal.new_isr_with_epochs)
    _check_epochs(sender, partition, proposal)
    _check_isr(partition, isr, proposal.leader_recovery_state)
    if not all(_is_eligible(state, member) for member in proposal.new_isr_with_epochs):
        raise Reject(ErrorCode.INELIGIBLE_REPLICA)
    wanted = msgspec.structs.replace(partition, isr=isr, leader_recovery_state=proposal.leader_recovery_state)
    record = change_partition(topic.topic_id, partition, wanted, terms_for(state, topic, partition))
    if record is not None:
        records.append(record)
        partition = merge(partition, record.message)
        if record.message.leader not in (NO_LEADER_CHANGE, sender):
            raise Reject(ErrorCode.NEW_LEADER_ELECTED)
    return _Answer(
        partition_index=partition.partition_id,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _check_epochs(sender: int, partition: PartitionImage, proposal: _Proposal) -> None:
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        raise Reject(ErrorCode.NOT_CONTROLLER)
    if proposal.leader_epoch < partition.leader_epoch:
        raise Reject(ErrorCode.FENCED_LEADER_EPOCH)
    if sender != partition.leader:
        raise Reject(ErrorCode.INVALID_REQUEST)
    if proposal.partition_epoch < partition.partition_epoch:
        raise Reject(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(partition: PartitionImage, isr: tuple[int, ...], recovery: int) -> None:
    is_sound = set(isr) <= set(partition.replicas) and len(set(isr)) == len(isr) and partition.leader in isr
    is_recovered = recovery == RECOVERED
    may_recover = recovery == RECOVERING == partition.leader_recovery_state and len(isr) == 1
    if not is_sound or not (is_recovered or may_recover):
        raise Reject(ErrorCode.INVALID_REQUEST)


def _is_eligible(state: ControllerState, member: _Member) -> bool:
    broker = state.image.brokers.get(member.broker_id)
    return broker is not None and broker.is_active and member.broker_epoch in (_ANY_EPOCH, broker.epoch)
