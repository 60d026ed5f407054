"""What must hold in every world, whatever goes wrong. Each invariant has a name, by which a violation is told.

===============  =======================================================================================================
epochs           group epochs, target epochs and generations in the log only grow, until the group is deleted
owned once       no partition (or active task) belongs to two members of a group at once, as far as the log says; no two
                 members are given the same one in one generation or epoch; no two clients work on the same one, as long
                 as the coordinator counts both as members (this holds only if requests do not overtake each other)
kept             an offset whose commit was answered without an error is there, unless a later commit has replaced it
replay           hard state is what the log says: live, replayed, replayed after compaction
answers          nobody is answered twice, or with an error that no client can make sense of
warm-ups         of a group with the highly available assignor (see `warmups`): every task has one owner in every
                 target, none with state moves to a process that has not caught up, and there are no more warm-ups than
                 allowed
described        of a group whose members describe their topology (see `described`): what it says that the plugin holds
                 is held; and where it says nothing of that, or is gone, nothing is held unless a push is under way
converges        once the faults stop, every group settles within a bound: all members know their part, and all
                 partitions are given out
===============  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.testing.trace import Violation
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.keyed import KeyedRecord
from simulation.clients.assigning import read_assignment

__all__ = ["Claims", "CommitRegister", "LogModel", "Place", "commit_codes", "commit_writes"]

_GROWING: Final = {
    "GroupMetadataKey": "generation",
    "ConsumerGroupMetadataKey": "epoch",
    "ConsumerGroupTargetAssignmentMetadataKey": "assignment_epoch",
    "StreamsGroupMetadataKey": "epoch",
    "StreamsGroupTargetAssignmentMetadataKey": "assignment_epoch",
}
"""Type of record -> the field that only grows."""

_HELD: Final = {
    "ConsumerGroupCurrentMemberAssignmentKey": ("assigned_partitions", "partitions_pending_revocation"),
    "StreamsGroupCurrentMemberAssignmentKey": ("active_tasks", "active_tasks_pending_revocation"),
}
"""Type of record -> the fields that say what a member holds alone."""


class LogModel:
    """What the log says about epochs and owners, record by record, apart from any coordinator."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], dict[str, frozenset[Any]]] = {}

    @classmethod
    def of(cls, records: Iterable[KeyedRecord]) -> LogModel:
        """What a whole log says. Only its end is judged: compaction removes from the middle."""
        model = cls()
        model._take_all(records)
        for where in sorted(model._held):
            model._check_owners(where)
        return model

    def take(self, records: Iterable[KeyedRecord]) -> None:
        """One batch. Raises Violation."""
        for where in sorted(self._take_all(records)):
            self._check_owners(where)

    def _take_all(self, records: Iterable[KeyedRecord]) -> set[tuple[str, str]]:
        touched = set()
        for record in records:
            name = type(record.key).__name__
            if name in _GROWING:
                self._grow(name, record)
            if name == "GroupMetadataKey":
                self._held.pop((name, record.key.group), None)
                if record.value is not None and record.value.protocol_type == "consumer":
                    self._held[name, record.key.group] = _classic_owners(record.value)
                touched.add((name, record.key.group))
            elif name in _HELD:
                touched.add(self._hold(name, record))
        return touched

    def is_member(self, group_id: str, member_id: str) -> bool:
        """Whether a member of one of the newer protocols has a part in its group."""
        return any(member_id in self._held.get((name, group_id), {}) for name in _HELD)

    def _grow(self, name: str, record: KeyedRecord) -> None:
        group_id = record.key.group if name == "GroupMetadataKey" else record.key.group_id
        if record.value is None:
            self._epochs.pop((name, group_id), None)
            return
        epoch, known = getattr(record.value, _GROWING[name]), self._epochs.get((name, group_id), -1)
        if epoch < known:
            raise Violation("epochs", f"{_GROWING[name]} of {group_id} falls from {known} to {epoch}")
        self._epochs[name, group_id] = epoch

    def _hold(self, name: str, record: KeyedRecord) -> tuple[str, str]:
        members = self._held.setdefault((name, record.key.group_id), {})
        if record.value is None:
            members.pop(record.key.member_id, None)
        else:
            members[record.key.member_id] = frozenset(
                unit for field in _HELD[name] for unit in _units(getattr(record.value, field))
            )
        return name, record.key.group_id

    def _check_owners(self, where: tuple[str, str]) -> None:
        owners: dict[Any, str] = {}
        for member_id, units in self._held.get(where, {}).items():
            for unit in sorted(units):
                if unit in owners:
                    detail = f"{unit} of {where[1]} belongs to {owners[unit]} and to {member_id}"
                    raise Violation("owned once", detail)
                owners[unit] = member_id


def _units(entries: Iterable[Any]) -> Iterable[tuple[Any, int]]:
    """Topic id and partition, or subtopology and partition."""
    for each in entries:
        name = each.topic_id if hasattr(each, "topic_id") else each.subtopology_id
        for partition in each.partitions:
            yield name, partition


def _classic_owners(value: Any) -> dict[str, frozenset[Any]]:  # noqa: ANN401
    found = {}
    for member in value.members:
        try:
            found[member.member_id] = read_assignment(bytes(member.assignment))
        except WireError:
            found[member.member_id] = frozenset()
    return found


Place = tuple[str, str, int]
"""Group, topic, partition."""


class Write(NamedTuple):
    """A commit that has reached the coordinator. None is a removal."""

    number: int
    offset: int | None


class CommitRegister:
    """For each committed offset, what a reader may find: the last write that was acknowledged, or any one after it."""

    def __init__(self) -> None:
        self._writes: dict[Place, list[Write]] = {}
        self._open: dict[Any, list[tuple[Place, Write]]] = {}
        self._numbers = 0

    def begin(self, token: Any, writes: Iterable[tuple[Place, int | None]]) -> None:  # noqa: ANN401
        """Commits, or removals, are being put to the coordinator."""
        self._open[token] = [(place, self._add(place, offset)) for place, offset in writes]

    def _add(self, place: Place, offset: int | None) -> Write:
        self._numbers += 1
        write = Write(self._numbers, offset)
        self._writes.setdefault(place, [Write(0, None)]).append(write)
        return write

    def may_vanish(self, place: Place) -> None:
        """Somebody has good reason to remove an offset, such as a deleted topic."""
        self._add(place, None)

    def places(self, group_id: str | None = None) -> list[Place]:
        return sorted(place for place in self._writes if group_id in (None, place[0]))

    def finish(self, token: Any, code_of: Callable[[Place], int]) -> None:  # noqa: ANN401
        """The coordinator has answered: what was acknowledged must stay, what was refused must not be there."""
        for place, write in self._open.pop(token, ()):
            code = ErrorCode(code_of(place))
            if code is ErrorCode.NONE:
                self._writes[place] = [each for each in self._writes[place] if each.number >= write.number]
            elif not _is_unclear(code) and write in self._writes[place]:
                self._writes[place].remove(write)

    def candidates(self, place: Place) -> set[int | None]:
        return {write.offset for write in self._writes[place]}


def commit_writes(request: Any) -> list[tuple[Place, int | None]]:  # noqa: ANN401
    """What an OffsetCommit writes."""
    return [
        ((request.group_id, topic.name, each.partition_index), each.committed_offset)
        for topic in request.topics
        for each in topic.partitions
    ]


def commit_codes(answer: Any) -> Callable[[Place], int]:  # noqa: ANN401
    """By place, how an OffsetCommit went."""
    codes = {
        (topic.name, each.partition_index): each.error_code for topic in answer.topics for each in topic.partitions
    }
    return lambda place: int(codes[place[1], place[2]])


def _is_unclear(code: ErrorCode) -> bool:
    """Whether the commit may have been written all the same."""
    return code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT)


class Claims:
    """Who was given what in which generation or epoch, as the answers that leave the coordinator say."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int], dict[Any, str]] = {}

    def take(self, group_id: str, epoch: int, owner: str, units: Iterable[Any]) -> str | None:
        """Somebody is given something; what is wrong with that, if anything."""
        owners = self._owners.setdefault((group_id, epoch), {})
        for unit in sorted(units):
            known = owners.setdefault(unit, owner)
            if known != owner:
                return f"{unit} was given to {known} and to {owner} in generation or epoch {epoch} of {group_id}"
        return None

    def forget(self, group_id: str) -> None:
        """The group is gone; one of the same name counts from the beginning."""
        for key in [key for key in self._owners if key[0] == group_id]:
            del self._owners[key]
