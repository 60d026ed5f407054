"""The invariants of every world of groups. A violation is reported by the name of its invariant.

===============  =======================================================================================================
epochs           group epochs, target epochs and generations in the log only grow, until the group is deleted
owned once       no partition (or active task) belongs to two members of a group at once, according to the log; no two
                 members are given the same one in one generation or epoch; no two clients work on the same one, as long
                 as the coordinator counts both as members (this holds only if requests do not overtake each other)
kept             an offset whose commit was answered without an error is kept, unless a later commit has replaced it
replay           hard state equals the replayed log, also after compaction
answers          no request is answered twice, or with an error that the protocol does not allow
warm-ups         of a group with the highly available assignor (see `warmups`): every task has one owner in every
                 target, none with state moves to a process that has not caught up, and there are no more warm-ups than
                 allowed
described        of a group whose members describe their topology (see `topology_descriptions`): if the group says that
                 the plugin holds a description, it does; if not, or if the group is gone, the plugin holds nothing
                 unless a push is under way
converges        once the faults stop, every group settles within a bound: all members know their assignment, and all
                 partitions are assigned
===============  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from ottla.testing.trace import Violation
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.keyed import KeyedRecord
from simulation.clients.assignment import read_assignment

__all__ = ["Claims", "CommitRegister", "LogModel", "OffsetKey", "commit_codes", "commit_writes"]

_GROWING: Final = {
    "GroupMetadataKey": "generation",
    "ConsumerGroupMetadataKey": "epoch",
    "ConsumerGroupTargetAssignmentMetadataKey": "assignment_epoch",
    "StreamsGroupMetadataKey": "epoch",
    "StreamsGroupTargetAssignmentMetadataKey": "assignment_epoch",
}
"""Type of record -> the field that must grow."""

_HELD: Final = {
    "ConsumerGroupCurrentMemberAssignmentKey": ("assigned_partitions", "partitions_pending_revocation"),
    "StreamsGroupCurrentMemberAssignmentKey": ("active_tasks", "active_tasks_pending_revocation"),
}
"""Type of record -> the fields with what a member owns alone."""


class LogModel:
    """A model of the log: epochs and owners, record by record, independent of the coordinator's code."""

    def __init__(self) -> None:
        self._epochs: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], dict[str, frozenset[Any]]] = {}

    @classmethod
    def of(cls, records: Iterable[KeyedRecord]) -> LogModel:
        """The model of a whole log. Only its end is checked, because compaction removes records from the middle."""
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
        """Whether the log has an assignment of this member; for consumer and streams groups."""
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


OffsetKey = tuple[str, str, int]
"""The key of a committed offset: group, topic, partition."""


class Write(NamedTuple):
    """An offset commit that has reached the coordinator. None is a removal."""

    number: int
    offset: int | None


class CommitRegister:
    """For each committed offset, the values that a reader may find: the last acknowledged write or a later one."""

    def __init__(self) -> None:
        self._writes: dict[OffsetKey, list[Write]] = {}
        self._open: dict[Any, list[tuple[OffsetKey, Write]]] = {}
        self._numbers = 0

    def begin(self, token: Any, writes: Iterable[tuple[OffsetKey, int | None]]) -> None:  # noqa: ANN401
        """A request with commits, or removals, is sent to the coordinator."""
        self._open[token] = [(key, self._add(key, offset)) for key, offset in writes]

    def _add(self, key: OffsetKey, offset: int | None) -> Write:
        self._numbers += 1
        write = Write(self._numbers, offset)
        self._writes.setdefault(key, [Write(0, None)]).append(write)
        return write

    def may_vanish(self, key: OffsetKey) -> None:
        """Allow an offset to be removed, for instance because its topic was deleted."""
        self._add(key, None)

    def offset_keys(self, group_id: str | None = None) -> list[OffsetKey]:
        return sorted(key for key in self._writes if group_id in (None, key[0]))

    def finish(self, token: Any, code_of: Callable[[OffsetKey], int]) -> None:  # noqa: ANN401
        """The coordinator has answered: acknowledged writes must stay, refused writes must not be there."""
        for key, write in self._open.pop(token, ()):
            code = ErrorCode(code_of(key))
            if code is ErrorCode.NONE:
                self._writes[key] = [each for each in self._writes[key] if each.number >= write.number]
            elif not _is_unclear(code) and write in self._writes[key]:
                self._writes[key].remove(write)

    def candidates(self, key: OffsetKey) -> set[int | None]:
        return {write.offset for write in self._writes[key]}


def commit_writes(request: Any) -> list[tuple[OffsetKey, int | None]]:  # noqa: ANN401
    """The offsets that an OffsetCommit writes."""
    return [
        ((request.group_id, topic.name, each.partition_index), each.committed_offset)
        for topic in request.topics
        for each in topic.partitions
    ]


def commit_codes(answer: Any) -> Callable[[OffsetKey], int]:  # noqa: ANN401
    """The error code of each offset in an OffsetCommit response."""
    codes = {
        (topic.name, each.partition_index): each.error_code for topic in answer.topics for each in topic.partitions
    }
    return lambda key: int(codes[key[1], key[2]])


def _is_unclear(code: ErrorCode) -> bool:
    """Whether the commit may have been written despite the error."""
    return code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT)


class Claims:
    """The assignments in responses of the coordinator, by generation or epoch."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int], dict[Any, str]] = {}

    def take(self, group_id: str, epoch: int, owner: str, units: Iterable[Any]) -> str | None:
        """Note an assignment; returns what is wrong with it, or None."""
        owners = self._owners.setdefault((group_id, epoch), {})
        for unit in sorted(units):
            known = owners.setdefault(unit, owner)
            if known != owner:
                return f"{unit} was given to {known} and to {owner} in generation or epoch {epoch} of {group_id}"
        return None

    def forget(self, group_id: str) -> None:
        """Forget a deleted group; a new one of the same name starts over."""
        for key in [key for key in self._owners if key[0] == group_id]:
            del self._owners[key]
