"""A consumer group as its records tell it. Only replay changes it, but for the soft fields, which are marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.assignors import Target
from ottla.core.groups.consumer.members import ConsumerGroupMember, Partitions, Subscription
from ottla.core.groups.consumer.records import (
    ResolvedRegex,
    group_tombstones,
    resolved_regex_of,
    with_current,
    with_metadata,
)
from ottla.core.groups.consumer.settings import ConsumerGroupSettings, read_settings
from ottla.core.groups.modern.group import ModernGroup, Readers, target_of
from ottla.core.groups.subscriptions import Subscriptions
from ottla.core.groups.table import Claim, CommitCheck, ExpiryRule, GroupKind, HoldsNothingElsewhere
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_consumer import ConsumerGroupRegularExpressionKey

__all__ = ["ConsumerGroup"]

PROTOCOL_TYPE: Final = "consumer"
COMMIT_VERSION_MIN: Final = 9
"""Of OffsetCommit, for members of the new protocol: before it there is no word for a stale epoch."""


READERS: Final[Readers[ConsumerGroupMember, ConsumerGroupSettings, Target]] = Readers(
    settings=read_settings,
    new_member=lambda member_id: ConsumerGroupMember(member_id=member_id),
    with_metadata=with_metadata,
    with_current=with_current,
    target=lambda value: target_of(value.topic_partitions),
    no_target={},
)


class ConsumerGroup(ModernGroup[ConsumerGroupMember, ConsumerGroupSettings, Target], HoldsNothingElsewhere):
    """Soft fields: `refresh_due`, `refreshed_epoch`, `steady`, `session_at_ms`, `owing_join`, `unheard`, and all
    that is derived from the members."""

    kind = GroupKind.CONSUMER
    protocol_type = PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, READERS)
        self.resolved: dict[str, ResolvedRegex] = {}
        self.has_old_metadata = False
        """The log has topic metadata of the group as releases before 4.1 wrote it."""

        self.subscriptions = Subscriptions(self._union)
        self.assignors: Counter[str] = Counter()
        self.statics: dict[str, str] = {}
        """Instance id -> member id."""
        self.classic_count = 0
        self.classic_protocols: Counter[str] = Counter()
        """How many members of the classic protocol support a protocol of that name."""
        self._owners: dict[bytes, dict[int, str]] = {}
        self._names: dict[frozenset[str], frozenset[str]] = {}

        self.owing_join: set[str] = set()
        """Members of the classic protocol that have been told to join again."""
        self.unheard: set[str] = set()
        """Members whose last change was told in answer to a second join."""

    # --- what every kind of group can be asked ------------------------------------------------------------------------

    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def check_commit(self, claim: Claim, context: Context) -> CommitCheck | None:
        if claim.generation < 0 and not self.members:
            return None
        if claim == Claim(is_transactional=True):
            return None  # a producer that names no member
        member = self.member(claim.member_id)
        if not claim.is_transactional and not member.uses_classic_protocol and context.api_version < COMMIT_VERSION_MIN:
            raise Reject(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of this group must use version {COMMIT_VERSION_MIN} or above of OffsetCommit.",
            )
        if claim.generation > member.member_epoch:
            raise _stale(member, claim.generation)
        if claim.generation == member.member_epoch:
            return None
        return _older_epoch_check(member, claim.generation, context.world.topics)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(member, member_epoch)

    def check_offset_delete(self) -> None:
        """Never refused as a whole: topics that are subscribed to are refused one by one."""

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def expiry(self, context: Context) -> ExpiryRule | None:
        return ExpiryRule(base_ms=lambda commit_ms: commit_ms, is_subscribed=self.is_subscribed_to)

    def tombstones(self) -> Sequence[KeyedRecord]:
        return group_tombstones(self.group_id, sorted(self.members), sorted(self.resolved))

    def hard_state(self) -> Any:  # noqa: ANN401
        return {
            **self.epoch_state(),
            "resolved": dict(self.resolved),
            "has_old_metadata": self.has_old_metadata,
        }

    # --- questions of this family -------------------------------------------------------------------------------------

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        member_id = None if instance_id is None else self.statics.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get(topic_id, {}).get(partition)

    def regex_count(self, regex: str) -> int:
        """How many members subscribe to a pattern."""
        return sum(count for subscription, count in self.subscriptions.counts.items() if subscription.regex == regex)

    def regexes(self) -> set[str]:
        return {subscription.regex for subscription in self.subscriptions.counts if subscription.regex}

    def topics_of(self, subscription: Subscription) -> frozenset[str]:
        """The names that a subscription stands for. A pattern that is not resolved yet stands for none."""
        resolved = self.resolved.get(subscription.regex)
        if resolved is None:
            return subscription.names
        return subscription.names | resolved.topics if subscription.names else resolved.topics

    def subscribed_topics(self) -> frozenset[str]:
        return self.subscriptions.topics()

    def subscribed_topics_with(
        self, gone: Iterable[ConsumerGroupMember], come: ConsumerGroupMember | None = None
    ) -> frozenset[str]:
        """The topics subscribed to once some members are gone and one has come."""
        return self.subscriptions.topics_with(
            (member.subscription for member in gone), None if come is None else come.subscription
        )

    def _union(self, subscriptions: Iterable[Subscription]) -> frozenset[str]:
        topics = {self.topics_of(each) for each in subscriptions}
        return next(iter(topics)) if len(topics) == 1 else frozenset().union(*topics)

    def is_waiting_for(self, member: ConsumerGroupMember) -> bool:
        """Whether something of a member's target is still owned by others."""
        for topic_id, partitions in self.target(member.member_id).items():
            mine = member.assigned.get(topic_id, {})
            if any(each not in mine and self.owner(topic_id, each) is not None for each in partitions):
                return True
        return False

    # --- replay -------------------------------------------------------------------------------------------------------

    def set_resolved(self, regex: str, resolved: ResolvedRegex | None) -> None:
        if resolved is None:
            self.resolved.pop(regex, None)
        else:
            self.resolved[regex] = resolved
        self.subscriptions.forget_topics()

    def replay_regex(self, key: ConsumerGroupRegularExpressionKey, value: Any) -> None:  # noqa: ANN401
        self.set_resolved(key.regular_expression, None if value is None else resolved_regex_of(value))

    def replay_old_metadata(self, key: Any, value: Any) -> None:  # noqa: ANN401
        self.has_old_metadata = value is not None

    def change_member(self, member_id: str, change: Callable[[ConsumerGroupMember], ConsumerGroupMember]) -> None:
        super().change_member(member_id, lambda member: self._with_shared_names(change(member)))

    def _member_changed(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        if old is None or new is None or old.subscription != new.subscription:
            self._count_subscriptions(old, new)
        self._count_protocols(old, new)
        if old is None or new is None or not _owns_the_same(old, new):
            self._set_owned(old, new)
        if old is not None and new is None:
            self._forget(old)
        if new is not None and new.instance_id is not None:
            self.statics[new.instance_id] = new.member_id

    def _forget(self, member: ConsumerGroupMember) -> None:
        self.owing_join.discard(member.member_id)
        self.unheard.discard(member.member_id)
        if member.instance_id is not None and self.statics.get(member.instance_id) == member.member_id:
            del self.statics[member.instance_id]

    def _with_shared_names(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """A thousand members with the same ten thousand names keep them once."""
        names = member.subscription.names
        shared = self._names.setdefault(names, names)
        if shared is names:
            return member
        return msgspec.structs.replace(member, subscription=Subscription(shared, member.subscription.regex))

    def _count_subscriptions(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        self.subscriptions.move(None if old is None else old.subscription, None if new is None else new.subscription)
        if old is not None and old.subscription not in self.subscriptions.counts:
            names = old.subscription.names
            if all(each.names != names for each in self.subscriptions.counts):
                self._names.pop(names, None)

    def _count_protocols(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        for member, sign in ((old, -1), (new, 1)):
            if member is not None:
                _count(self.assignors, [member.server_assignor] if member.server_assignor else (), sign)
                if member.classic is not None:
                    self.classic_count += sign
                    _count(self.classic_protocols, [each.name for each in member.classic.supported_protocols], sign)

    def _set_owned(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        if old is not None:
            self._disown(old.member_id, old.assigned)
            self._disown(old.member_id, old.pending_revocation)
        if new is not None:
            for owned in (new.assigned, new.pending_revocation):
                for topic_id, partitions in owned.items():
                    self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, new.member_id))

    def _disown(self, member_id: str, owned: Partitions) -> None:
        for topic_id, partitions in owned.items():
            owners = self._owners.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self._owners.pop(topic_id, None)


def _owns_the_same(old: ConsumerGroupMember, new: ConsumerGroupMember) -> bool:
    return old.assigned is new.assigned and old.pending_revocation is new.pending_revocation


def _count(counter: Counter[str], names: Iterable[str], sign: int) -> None:
    for name in names:
        counter[name] += sign
        if not counter[name]:
            del counter[name]


def _stale(member: ConsumerGroupMember, epoch: int) -> Reject:
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return Reject(code, f"Epoch {epoch} is not that of member {member.member_id}, {member.member_epoch}.")


def _older_epoch_check(member: ConsumerGroupMember, epoch: int, topics: Topics) -> CommitCheck:
    """A member that moved on may commit with the epoch it had, as long as it has owned the partition since then: the
    commit was under way when its heartbeat was answered (KIP-1251)."""

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        known = None if any(topic_id) else topics.by_name(topic)  # before v10 there is only a name
        since = member.owned_since(known.topic_id if known is not None else topic_id, partition)
        if since is None or since > epoch:
            raise _stale(member, epoch)

    return check
