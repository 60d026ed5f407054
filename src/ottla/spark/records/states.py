"""Numeric codes in records, with Kafka's own names for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.wire.access import Operation, ResourceType

__all__ = ["NAMES", "names_of"]

_DELIVERY: Final = {0: "AVAILABLE", 1: "ACQUIRED", 2: "ACKNOWLEDGED", 3: "ARCHIVING", 4: "ARCHIVED"}
_RECOVERY: Final = {-1: "NO_CHANGE", 0: "RECOVERED", 1: "RECOVERING"}
_MECHANISM: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_PROTOCOL: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
_REMOTE_SEGMENT: Final = {
    0: "COPY_SEGMENT_STARTED",
    1: "COPY_SEGMENT_FINISHED",
    2: "DELETE_SEGMENT_STARTED",
    3: "DELETE_SEGMENT_FINISHED",
}

NAMES: Final[dict[tuple[str, str], Mapping[int, str]]] = {
    ("ConsumerGroupCurrentMemberAssignmentValue", "State"): {
        0: "STABLE",
        1: "UNREVOKED_PARTITIONS",
        2: "UNRELEASED_PARTITIONS",
        127: "UNKNOWN",
    },
    ("ShareGroupCurrentMemberAssignmentValue", "State"): {0: "STABLE", 127: "UNKNOWN"},
    ("StreamsGroupCurrentMemberAssignmentValue", "State"): {
        1: "STABLE",
        2: "UNREVOKED_TASKS",
        3: "UNRELEASED_TASKS",
        127: "UNKNOWN",
    },
    ("TransactionLogValue", "TransactionStatus"): dict(
        enumerate(
            (
                "Empty",
                "Ongoing",
                "PrepareCommit",
                "PrepareAbort",
                "CompleteCommit",
                "CompleteAbort",
                "Dead",
                "PrepareEpochFence",
            )
        )
    ),
    ("ShareSnapshotValue", "DeliveryState"): _DELIVERY,
    ("ShareUpdateValue", "DeliveryState"): _DELIVERY,
    ("ConfigRecord", "ResourceType"): {
        2: "TOPIC",
        4: "BROKER",
        8: "BROKER_LOGGER",
        16: "CLIENT_METRICS",
        32: "GROUP",
    },
    ("AccessControlEntryRecord", "ResourceType"): {each.value: each.name for each in ResourceType},
    ("AccessControlEntryRecord", "PatternType"): {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"},
    ("AccessControlEntryRecord", "Operation"): {each.value: each.name for each in Operation},
    ("AccessControlEntryRecord", "PermissionType"): {1: "ANY", 2: "DENY", 3: "ALLOW"},
    ("PartitionRecord", "LeaderRecoveryState"): _RECOVERY,
    ("PartitionChangeRecord", "LeaderRecoveryState"): _RECOVERY,
    ("UserScramCredentialRecord", "Mechanism"): _MECHANISM,
    ("RemoveUserScramCredentialRecord", "Mechanism"): _MECHANISM,
    ("RegisterBrokerRecord", "SecurityProtocol"): _PROTOCOL,
    ("RegisterControllerRecord", "SecurityProtocol"): _PROTOCOL,
    ("BrokerRegistrationChangeRecord", "Fenced"): {-1: "UNFENCE", 0: "NONE", 1: "FENCE"},
    ("BrokerRegistrationChangeRecord", "InControlledShutdown"): {0: "NONE", 1: "IN_CONTROLLED_SHUTDOWN"},
    ("ZkMigrationStateRecord", "ZkMigrationState"): {
        0: "NONE",
        1: "MIGRATION",
        2: "PRE_MIGRATION",
        3: "POST_MIGRATION",
    },
    ("RemoteLogSegmentMetadataRecord", "RemoteLogSegmentState"): _REMOTE_SEGMENT,
    ("RemoteLogSegmentMetadataUpdateRecord", "RemoteLogSegmentState"): _REMOTE_SEGMENT,
    ("RemoteLogSegmentMetadataSnapshotRecord", "RemoteLogSegmentState"): _REMOTE_SEGMENT,
    ("RemotePartitionDeleteMetadataRecord", "RemotePartitionDeleteState"): {
        0: "DELETE_PARTITION_MARKED",
        1: "DELETE_PARTITION_STARTED",
        2: "DELETE_PARTITION_FINISHED",
    },
}


def names_of(message: str, field: str) -> Mapping[int, str] | None:
    """The names of a field's codes; None if its values are plain numbers."""
    return NAMES.get((message, field))
