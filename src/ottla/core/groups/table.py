"""The groups of one partition of `__consumer_offsets`, whatever their kind, and what every kind of group can be asked.

Offsets belong to a group's name, not to its kind: a group may turn from classic into consumer and back, and its offsets
stay. So the offsets family asks these questions and knows no kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.core.coordinator.contract import Context
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject

__all__ = [
    "Claim",
    "CommitCheck",
    "ExpiryRule",
    "Group",
    "GroupKind",
    "GroupTable",
    "HoldsNothingElsewhere",
    "Preparation",
    "not_of_kind",
]

GroupType = TypeVar("GroupType")


class GroupKind(StrEnum):
    """The names that ListGroups shows."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"


class Claim(NamedTuple):
    """As whom somebody commits or fetches offsets. `generation` is the member epoch in the newer protocols."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    is_transactional: bool = False


CommitCheck = Callable[[str, bytes, int], None]
"""Topic, topic id, partition: raises Reject if this very partition must not be committed by the member."""


class ExpiryRule(NamedTuple):
    """When offsets of a group are too old. `base_ms` of a commit time gives the time that is compared; topics that the
    group is subscribed to are left alone."""

    base_ms: Callable[[int], int]
    is_subscribed: Callable[[str], bool]


class Preparation(NamedTuple):
    """What must happen before a group may be removed: these records are committed, then this effect is performed.

    The effect's first entry is the name of the family that asked, and it has a `group_id`.
    """

    records: Sequence[KeyedRecord]
    effect: Any
    begun: Callable[[], object] | None = None
    """Called when this is decided on."""


class Group(Protocol):
    """A group of any kind."""

    group_id: str

    @property
    def kind(self) -> GroupKind: ...
    @property
    def protocol_type(self) -> str:
        """As ListGroups shows it."""
        ...

    def state_name(self) -> str:
        """As ListGroups shows it, for instance Stable."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    def check_commit(self, claim: Claim, context: Context) -> CommitCheck | None:
        """Reject who must not commit; what comes back is asked for each partition. Soft state may change: a commit
        shows that a classic member lives. The version of the request is `context.api_version`."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Reject who must not fetch offsets. Tools and older clients give no member id and -1, and are not asked."""
        ...

    def check_delete(self) -> None:
        """Reject if the group must stay."""
        ...

    def check_offset_delete(self) -> None:
        """Reject if no offset of the group may be deleted now."""
        ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def expiry(self, context: Context) -> ExpiryRule | None:
        """When its offsets expire; None if none does."""
        ...

    def before_removal(self, family: str, context: Context) -> Preparation | None:
        """What something outside the group still holds of it, and how it is cleared away for this family, which means
        to remove the group; None if it may go at once. Reject if it must not be tried now. See
        `ottla.core.groups.preparation`."""
        ...

    def prepared(self, effect: Any, context: Context) -> Sequence[KeyedRecord]:  # noqa: ANN401
        """What the group notes once the effect of its `before_removal` has gone well. It may have changed since, or may
        be another group of the same name."""
        ...

    def not_prepared(self, family: str, effect: Any, context: Context) -> None:  # noqa: ANN401
        """The effect has failed."""
        ...

    def tombstones(self) -> Sequence[KeyedRecord]:
        """What removes the group, without its offsets."""
        ...

    def hard_state(self) -> Any:  # noqa: ANN401
        """What its records say, as plain values."""
        ...


class HoldsNothingElsewhere:
    """For kinds of groups of which nothing is kept but their records."""

    def before_removal(self, family: str, context: Context) -> Preparation | None:
        return None

    def prepared(self, effect: Any, context: Context) -> Sequence[KeyedRecord]:  # noqa: ANN401
        return ()

    def not_prepared(self, family: str, effect: Any, context: Context) -> None:  # noqa: ANN401
        """Nothing can fail."""


class GroupTable:
    """Groups by name. Only replay puts groups in and takes them out, with one exception: a classic group exists softly
    from its first join to its first record, and then `is_written` of it is False."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    def deletable(self, group_id: str) -> Group:
        """A group that may be deleted as far as its members go; else Reject."""
        group = self.get(group_id)
        if group is None:
            raise Reject(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_delete()
        return group

    def put(self, group: Group) -> None:
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)

    def all(self) -> Mapping[str, Group]:
        return self._groups

    def of_kind(self, kind: type[GroupType]) -> list[GroupType]:
        """A list of its own: who goes through it may change the table."""
        return [group for group in self._groups.values() if isinstance(group, kind)]


def not_of_kind(group_id: str, group: Group | None, kind: GroupKind) -> Reject:
    """What is told to who names a group as one of this kind, if it is not there or of another."""
    what = "is not there" if group is None else f"is not a {kind} group but a {group.kind} group"
    return Reject(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
