"""The default values of fields in examples: by entity type, then by name, then by type. Scenes override them.

Of the message, the rules use only the type of its group; values that depend on more are in scenes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.explain import cast
from ottla.wire.shape import INTEGER_LIMITS, FieldShape, Type

NO_RULE = object()


class Players(NamedTuple):
    """The group and the members in a message, by type of group."""

    group: str
    member: str
    client: str


_CONSUMERS = Players("group", "member", "client")
_SHARE_CONSUMERS = Players("share_group", "share_member", "share_client")
_STREAMS_THREADS = Players("streams_group", "streams_member", "streams_client")


def players(message_name: str) -> Players:
    if message_name.startswith("Streams"):
        return _STREAMS_THREADS
    return _SHARE_CONSUMERS if "Share" in message_name else _CONSUMERS


_BY_ENTITY: dict[str, Any] = {
    "topicName": cast.TOPIC,
    "brokerId": 1,
    "producerId": cast.PRODUCER_ID,
    "transactionalId": "$transactional_id",
}
_BY_NAME: dict[str, Any] = {
    "AssignmentEpoch": 12,
    "AssignorName": "uniform",
    "BrokerEpoch": "$broker_epoch",
    "BrokerId": 1,
    "ClientHost": cast.CLIENT_HOST,
    "ClusterId": "$cluster_id",
    "CoordinatorEpoch": 3,
    "CommittedLeaderEpoch": 5,
    "CommittedOffset": cast.ORDER_OFFSET,
    "CurrentLeaderEpoch": 5,
    "DeliveryCount": 1,
    "ErrorCode": 0,
    "GroupEpoch": 12,
    "GroupState": "Stable",
    "HeartbeatIntervalMs": 5_000,
    "Host": "$host1",
    "Index": 0,
    "LeaderEpoch": 5,
    "LeaderId": 1,
    "MemberEpoch": 12,
    "NumPartitions": 3,
    "Partition": 0,
    "PartitionId": 0,
    "PartitionIndex": 0,
    "Port": 9_092,
    "PrincipalName": "alice",
    "PrincipalType": "User",
    "ProducerEpoch": 0,
    "ProducerId": cast.PRODUCER_ID,
    "ProcessId": "$process",
    "Rack": "$rack1",
    "RackId": "$rack1",
    "RebalanceTimeoutMs": 300_000,
    "ReplicationFactor": 3,
    "SessionTimeoutMs": 45_000,
    "StateEpoch": 12,
    "SubtopologyId": "0",
    "ThrottleTimeMs": 0,
    "TimeoutMs": 30_000,
    "TopicId": "$topic_id",
    "TopicName": cast.TOPIC,
    "Topic": cast.TOPIC,
    "TransactionTimeoutMs": 60_000,
    "TransactionalId": "$transactional_id",
    "Id": "$topic_id",
}
_LISTS_BY_NAME: dict[str, list[Any]] = {
    "Replicas": [1, 2, 3],
    "ReplicaNodes": [1, 2, 3],
    "Isr": [1, 2, 3],
    "IsrNodes": [1, 2, 3],
    "Partitions": [0, 1],
    "PartitionIndexes": [0, 1],
    "SubscribedTopicNames": [cast.TOPIC],
    "SourceTopics": [cast.TOPIC],
    "Topics": [cast.TOPIC],
    "TopicNames": [cast.TOPIC],
}
_BY_SUFFIX: tuple[tuple[str, Any], ...] = (
    ("ErrorCode", 0),
    ("TimestampMs", cast.NOW_MS),
    ("Timestamp", cast.NOW_MS),
    ("TimeMs", cast.NOW_MS),
)
"""Matched in this order, if the name alone is not in the table."""


def rule_value(member: FieldShape, leaf: Type, message_name: str) -> Any:
    """The value that the rules give to a field, written as in a scene; or NO_RULE."""
    field = member.field
    if member.type.kind == "array":
        return _list_rule(member, message_name)
    if member.name.endswith("ErrorMessage"):
        return None if member.type.nullable else ""
    found = _by_players(member, message_name)
    if found is NO_RULE and field.entity:
        found = _BY_ENTITY.get(field.entity, NO_RULE)
    if found is NO_RULE:
        found = _by_name(member.name[0].upper() + member.name[1:], leaf)
    return found


def _by_players(member: FieldShape, message_name: str) -> Any:
    cast_of = players(message_name)
    by_name = {"GroupId": cast_of.group, "group": cast_of.group, "MemberId": cast_of.member, "ClientId": cast_of.client}
    word = cast_of.group if member.field.entity == "groupId" else by_name.get(member.name)
    return NO_RULE if word is None else f"${word}"


def _list_rule(member: FieldShape, message_name: str) -> Any:
    if member.field.entity == "groupId":
        return [f"${players(message_name).group}"]
    if member.type.nullable and member.default is None:
        return None
    found = _LISTS_BY_NAME.get(member.name, [NO_RULE])
    assert member.type.element is not None
    return found if _fits(found[0], member.type.element) else NO_RULE


def _by_name(name: str, leaf: Type) -> Any:
    found = _BY_NAME.get(name, NO_RULE)
    if found is NO_RULE:
        found = next((value for suffix, value in _BY_SUFFIX if name.endswith(suffix)), NO_RULE)
    return found if _fits(found, leaf) else NO_RULE


def _fits(found: Any, leaf: Type) -> bool:
    """Whether the value has the field's type: an Id may be a uuid or a number, a ProducerEpoch has 16 or 32 bits."""
    if isinstance(found, str):
        return leaf.kind in ("string", "uuid") or found == "$broker_epoch"
    limits = INTEGER_LIMITS.get(leaf.kind)
    return limits is not None and isinstance(found, int) and limits[0] <= found <= limits[1]
