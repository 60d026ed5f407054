"""Makes the core of each kind of coordinator. A core is imported when the first of its partitions is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from ottla.core.coordinator.contract import BrokerSettings, Core
    from ottla.core.groups.coordinator import Family
    from ottla.core.groups.table import GroupTable

__all__ = ["CORES", "CorePartition", "group_core", "share_state_core", "transaction_core"]


class CorePartition(NamedTuple):
    """The partition of an internal topic for which a core is made."""

    partition: int
    leader_epoch: int
    leads: Callable[[str, int], bool]
    """Whether this node leads a partition of any topic now."""
    settings: BrokerSettings


def group_core() -> Core:
    """A core for one partition of `__consumer_offsets`."""
    from ottla.core.groups.coordinator import GroupCoordinator
    from ottla.core.groups.table import GroupTable

    return GroupCoordinator(_families(GroupTable()))


def _families(table: GroupTable) -> list[Family]:
    """One line for each kind of group, and one for offsets."""
    from ottla.core.groups.admin import AdminFamily
    from ottla.core.groups.classic.family import ClassicFamily
    from ottla.core.groups.classic.group import simple_group
    from ottla.core.groups.consumer.family import ConsumerFamily
    from ottla.core.groups.migration.attachment import attach
    from ottla.core.groups.offsets import OffsetsFamily
    from ottla.core.groups.streams.family import StreamsFamily
    from ottla.core.share.group.family import ShareFamily

    offsets = OffsetsFamily(table, simple_group)
    classic, consumer = ClassicFamily(table), ConsumerFamily(table)
    attach(consumer, classic)
    return [
        classic,
        consumer,
        StreamsFamily(table),
        ShareFamily(table),
        offsets,
        AdminFamily(table, offsets.tombstones_of),
    ]


def transaction_core(partition: CorePartition) -> Core:
    """A core for one partition of `__transaction_state`."""
    from ottla.core.txn.coordinator import TransactionCoordinator

    return TransactionCoordinator(partition.leader_epoch, partition.leads)


def share_state_core(partition: CorePartition) -> Core:
    """A core for one partition of `__share_group_state`."""
    from ottla.core.share.state import ShareStateCoordinator

    updates_per_snapshot = partition.settings["share.coordinator.snapshot.update.records.per.snapshot"]
    return ShareStateCoordinator(partition.partition, updates_per_snapshot)


CORES: Final[dict[str, Callable[[CorePartition], Core]]] = {
    GROUPS.name: lambda partition: group_core(),
    TRANSACTIONS.name: transaction_core,
    SHARE_STATE.name: share_state_core,
}
"""Internal topic -> the factory of the core for one of its partitions."""
