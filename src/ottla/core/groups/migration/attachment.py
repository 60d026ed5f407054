"""What joins the two families."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.core.coordinator.contract import Context, Result
from ottla.core.groups.classic.family import ClassicFamily
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.consumer.family import ConsumerFamily, Upgrade, cancel_timers
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.members import ConsumerGroupMember
from ottla.core.groups.migration.downgrade import classic_group, is_downgrade_due
from ottla.core.groups.migration.host import ConsumerHost
from ottla.core.groups.migration.upgrade import upgrade
from ottla.core.groups.table import Group, GroupKind

__all__ = ["attach"]


def attach(consumer: ConsumerFamily, classic: ClassicFamily) -> None:
    """Let groups change between the two, and let consumer groups take members of the classic protocol."""
    consumer.migration = _Migration(consumer, classic)
    classic.hosts[GroupKind.CONSUMER] = ConsumerHost(consumer, classic)


class _Migration:
    def __init__(self, consumer: ConsumerFamily, classic: ClassicFamily) -> None:
        self._consumer = consumer
        self._classic = classic

    def upgrade(self, group: Group, context: Context) -> Upgrade:
        assert isinstance(group, ClassicGroup)
        return upgrade(group, self._consumer.memory.topic_sets, context)

    def downgrade(
        self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember], context: Context
    ) -> Result | None:
        if not is_downgrade_due(group, leaving, 0, context):
            return None
        gone = {member.member_id for member in leaving}
        stay = [member for member in group.members.values() if member.member_id not in gone]
        made = classic_group(group, stay, group.target, context)
        adopted = self._classic.adopt(made, context, rebalance=True, reason="it is a classic group again")
        return adopted._replace(
            records=[*group.tombstones(), *adopted.records],
            timers=[*cancel_timers(group.group_id, group.members), *adopted.timers],
        )
