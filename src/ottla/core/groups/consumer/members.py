"""A member of a consumer group, as records 5 and 8 tell it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from ottla.core.groups.assignors import Target
from ottla.core.groups.modern.members import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.wire.types.group_consumer import ConsumerGroupMemberMetadataValueClassicMemberMetadata as ClassicMetadata

__all__ = [
    "NO_PARTITIONS",
    "ClassicMetadata",
    "ConsumerGroupMember",
    "MemberState",
    "Partitions",
    "Subscription",
]

Partitions = Mapping[bytes, Mapping[int, int]]
"""Topic id -> partition -> the member epoch at which it was received (KIP-1251)."""
NO_PARTITIONS: Final[Partitions] = {}


class MemberState(IntEnum):
    STABLE = 0
    """Owns what its target says, as far as its epoch goes."""
    UNREVOKED_PARTITIONS = 1
    """Must give up partitions before its epoch may advance."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that others still own."""
    UNKNOWN = 127
    """Of a newer release."""


class Subscription(NamedTuple):
    """What a member wants: names, which need not exist, and a pattern, "" for none."""

    names: frozenset[str]
    regex: str


class ConsumerGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscription: Subscription = Subscription(frozenset(), "")
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    """Of a member that speaks JoinGroup and SyncGroup."""
    assigned: Partitions = NO_PARTITIONS
    pending_revocation: Partitions = NO_PARTITIONS
    """Taken from it, but its own until it no longer lists them."""

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def must_revoke(self) -> bool:
        has_left = self.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH
        return self.state is MemberState.UNREVOKED_PARTITIONS and not has_left

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def owned_since(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which it received a partition that it still owns."""
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def target(self) -> Target:
        """What it owns now, in the form of a target."""
        return {topic_id: tuple(sorted(partitions)) for topic_id, partitions in self.assigned.items()}

    def released(self) -> ConsumerGroupMember:
        return msgspec.structs.replace(
            self,
            member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            previous_member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )
