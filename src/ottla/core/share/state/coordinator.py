"""The core of one partition of `__share_group_state`.

Requests come with any number of share partitions of one group, all of them of this partition of the topic; each is
judged by itself. What is kept of one is told by its last snapshot and the updates after it; after
`share.coordinator.snapshot.update.records.per.snapshot` updates a snapshot is written in place of the next.

Two epochs fence off leaders whose time is over. A leader reads with its leader epoch, which is written down if it is
new: writes of an older one are refused from then on. The state epoch comes with initialization: a leader that has read
before a group's offsets were altered cannot write any more. An initialization that comes again, since a group
coordinator has not heard the answer, or has not heard that another one has followed, changes nothing once the group
has begun. (Apache Kafka begins anew.)

The topic is not compacted, since an update does not replace what came before. Everything before the oldest of the last
snapshots is pruned now and then (`PruneLog`); a share partition that is never written to would hold that up for ever
and so gets a fresh snapshot (*cold*) when its last one is old.

Hard: `kept`. Soft: how many updates there have been since a snapshot (`_update_counts`; Kafka's rule, by which a
snapshot that came early does not count, so that what is pruned may matter to it), the highest leader epoch that was
ever seen (`_leader_epochs`: an initialization sets the kept one to 0), and how far the log has been pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, Token, TopicsChange
from ottla.core.share.state.batches import Batch, combine, merge
from ottla.core.share.state.kept import (
    UNCHANGED,
    Kept,
    Key,
    delete_record,
    of_snapshot,
    snapshot_record,
    update_record,
    updated,
)
from ottla.core.share.state.messages import form_of
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.types.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.types.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from ottla.wire.types.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.types.share_state import ShareSnapshotKey, ShareUpdateKey
from ottla.wire.types.write_share_group_state import WriteShareGroupStateRequest

__all__ = ["PruneLog", "ShareStateCoordinator"]

PRUNE: Final = ("prune",)
COLD: Final = ("cold",)
_PRUNE_INTERVAL: Final = "share.coordinator.state.topic.prune.interval.ms"
_COLD_INTERVAL: Final = "share.coordinator.cold.partition.snapshot.interval.ms"
_NO_TOPIC: Final = bytes(16)

_Asked = Any
"""PartitionData of one of the requests."""
_Decided = tuple[Sequence[KeyedRecord], Mapping[str, Any]]
"""Records, and the fields of a partition's answer."""
_DONE: Final[_Decided] = ((), {})


class PruneLog(NamedTuple):
    """Let the log of a partition of `__share_group_state` begin at an offset."""

    partition: int
    offset: int


_Decide = Callable[[Key, _Asked, Context], _Decided]


class ShareStateCoordinator:
    """A `Core`. `partition` is the one of `__share_group_state` that its records stand in."""

    def __init__(self, partition: int, updates_per_snapshot: int) -> None:
        self.kept: dict[Key, Kept] = {}
        self._partition = partition
        self._updates_per_snapshot = updates_per_snapshot
        self._snapshot_offsets: dict[Key, int] = {}
        self._update_counts: dict[Key, int] = {}
        self._leader_epochs: dict[Key, int] = {}
        self._next_offset = 0
        self._pruned_to = 0
        self._handlers: dict[type, _Decide] = {
            InitializeShareGroupStateRequest: self._initialize,
            ReadShareGroupStateRequest: self._read,
            WriteShareGroupStateRequest: self._write,
            DeleteShareGroupStateRequest: self._delete,
            ReadShareGroupStateSummaryRequest: self._summarize,
        }

    # --- requests -----------------------------------------------------------------------------------------------------

    def handle(self, request: Any, context: Context) -> Result:  # noqa: ANN401
        decide, form = self._handlers[type(request)], form_of(request)
        records: list[KeyedRecord] = []
        results = []
        seen: set[Key] = set()
        for topic in request.topics if request.group_id else ():
            partitions = []
            for asked in topic.partitions:
                key = Key(request.group_id, topic.topic_id, asked.partition)
                decided, fields = _judge(decide, key, asked, context, seen)
                records.extend(decided)
                partitions.append(form.partition_result(partition=asked.partition, **fields))
            results.append(form.topic_result(topic_id=topic.topic_id, partitions=tuple(partitions)))
        answer = form.response(results=tuple(results))
        return Result(records=records, replies=[Reply(context.token, answer)])

    def _initialize(self, key: Key, asked: _Asked, context: Context) -> _Decided:
        known = self.kept.get(key)
        if known is not None and asked.state_epoch < known.state_epoch:
            raise Reject(ErrorCode.FENCED_STATE_EPOCH)
        _check_exists(key, context)
        if known is not None and _is_repeated(asked, known):
            return _DONE
        fresh = Kept(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=asked.state_epoch,
            leader_epoch=0,
            start_offset=asked.start_offset,
            delivery_complete_count=UNCHANGED if asked.start_offset == UNCHANGED else 0,
            create_timestamp=context.wall_ms,
            write_timestamp=context.wall_ms,
        )
        return [snapshot_record(key, fresh)], {}

    def _read(self, key: Key, asked: _Asked, context: Context) -> _Decided:
        kept = self._initialized(key, "read")
        self._check_leader(key, asked.leader_epoch)
        _check_exists(key, context)
        batch = ReadShareGroupStateResponse.StateBatch
        fields = {
            "state_epoch": kept.state_epoch,
            "start_offset": kept.start_offset,
            "state_batches": tuple(batch(*each) for each in kept.batches),
        }
        if asked.leader_epoch in (UNCHANGED, self._leader_epochs[key]):
            return (), fields
        return [self._next_record(key, context, msgspec.structs.replace(kept, leader_epoch=asked.leader_epoch))], fields

    def _write(self, key: Key, asked: _Asked, context: Context) -> _Decided:
        kept = self._initialized(key, "write")
        self._check_leader(key, asked.leader_epoch)
        if UNCHANGED != asked.state_epoch < kept.state_epoch:
            raise Reject(ErrorCode.FENCED_STATE_EPOCH)
        _check_exists(key, context)
        batches = [
            Batch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in asked.state_batches
        ]
        changed = msgspec.structs.replace(
            kept, start_offset=asked.start_offset, delivery_complete_count=asked.delivery_complete_count
        )
        return [self._next_record(key, context, changed, batches)], {}

    def _delete(self, key: Key, asked: _Asked, context: Context) -> _Decided:
        _check_exists(key, context)
        return ([delete_record(key)], {}) if key in self.kept else _DONE

    def _summarize(self, key: Key, asked: _Asked, context: Context) -> _Decided:
        _check_exists(key, context)
        kept = self.kept.get(key)
        if kept is None:
            return (), {"start_offset": UNCHANGED, "delivery_complete_count": UNCHANGED}
        return (), {
            "state_epoch": kept.state_epoch,
            "leader_epoch": kept.leader_epoch,
            "start_offset": kept.start_offset,
            "delivery_complete_count": kept.delivery_complete_count,
        }

    def _initialized(self, key: Key, verb: str) -> Kept:
        kept = self.kept.get(key)
        if kept is None:
            raise Reject(ErrorCode.INVALID_REQUEST, f"There is nothing to {verb}: the share partition has no state.")
        return kept

    def _check_leader(self, key: Key, leader_epoch: int) -> None:
        if UNCHANGED != leader_epoch < self._leader_epochs[key]:
            raise Reject(ErrorCode.FENCED_LEADER_EPOCH)

    def _next_record(self, key: Key, context: Context, changed: Kept, batches: Sequence[Batch] = ()) -> KeyedRecord:
        """An update with what a write changes, or a snapshot with everything, if it is time for one.

        A start offset of -1 in `changed` leaves the start as it is.
        """
        start = changed.start_offset
        if not self._is_snapshot_due(key):
            return update_record(key, changed, combine(batches, start))
        if start == UNCHANGED:
            start = self.kept[key].start_offset
        snapshot = msgspec.structs.replace(
            changed,
            snapshot_epoch=changed.snapshot_epoch + 1,
            start_offset=start,
            create_timestamp=context.wall_ms,
            write_timestamp=context.wall_ms,
            batches=tuple(merge(changed.batches, batches, start)),
        )
        return snapshot_record(key, snapshot)

    def _is_snapshot_due(self, key: Key) -> bool:
        return self._update_counts.get(key, 0) >= self._updates_per_snapshot

    # --- replay -------------------------------------------------------------------------------------------------------

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        self._next_offset = offset + 1
        key_of = record.key
        key = Key(key_of.group_id, key_of.topic_id, key_of.partition)
        if isinstance(key_of, ShareUpdateKey):
            if record.value is not None:
                self._replay_update(key, record.value, offset)
        elif isinstance(key_of, ShareSnapshotKey):
            self._replay_snapshot(key, record.value, offset)

    def _replay_update(self, key: Key, value: Any, offset: int) -> None:  # noqa: ANN401
        self.kept[key] = updated(self.kept.get(key), value)
        self._snapshot_offsets.setdefault(key, offset)
        self._update_counts[key] = self._update_counts.get(key, 0) + 1
        self._saw_leader(key, value.leader_epoch)

    def _replay_snapshot(self, key: Key, value: Any, offset: int) -> None:  # noqa: ANN401
        if value is None:
            self.kept.pop(key, None)
            for numbers in (self._snapshot_offsets, self._update_counts, self._leader_epochs):
                numbers.pop(key, None)
            return
        self.kept[key] = of_snapshot(value)
        self._snapshot_offsets[key] = offset
        self._saw_leader(key, value.leader_epoch)
        if self._is_snapshot_due(key):
            self._update_counts[key] = 0

    def _saw_leader(self, key: Key, leader_epoch: int) -> None:
        self._leader_epochs[key] = max(leader_epoch, self._leader_epochs.get(key, leader_epoch))

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nobody writes to this topic in a transaction."""

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def loaded(self, context: Context) -> Result:
        return Result(timers=[_in(PRUNE, _PRUNE_INTERVAL, context), _in(COLD, _COLD_INTERVAL, context)])

    def unloaded(self) -> Iterable[Token]:
        return ()

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        return self._prune(context) if key == PRUNE else self._snapshot_cold(context)

    def _prune(self, context: Context) -> Result:
        """Whatever stands before the oldest of the last snapshots is told again behind it."""
        timers = [_in(PRUNE, _PRUNE_INTERVAL, context)]
        offset = min(self._snapshot_offsets.values(), default=self._next_offset)
        if offset <= self._pruned_to:
            return Result(timers=timers)
        self._pruned_to = offset
        return Result(timers=timers, effects=[PruneLog(self._partition, offset)])

    def _snapshot_cold(self, context: Context) -> Result:
        """Fresh snapshots for share partitions that nobody writes to; none if all are at rest.

        Those whose topic was deleted while nobody could tell this coordinator are forgotten instead.
        """
        topics, wall_ms = context.world.topics, context.wall_ms
        records = [delete_record(key) for key in self.kept if topics.by_id(key.topic_id) is None]
        if any(kept.write_timestamp == kept.create_timestamp for kept in self.kept.values()):
            latest = wall_ms - context.world.settings[_COLD_INTERVAL]
            records += [
                snapshot_record(key, _again(kept, wall_ms))
                for key, kept in self.kept.items()
                if kept.write_timestamp <= latest and topics.by_id(key.topic_id) is not None
            ]
        return Result(records=records, timers=[_in(COLD, _COLD_INTERVAL, context)], is_atomic=False)

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        """A log that could not be pruned is tried again at the next time."""
        if isinstance(subject, PruneLog) and not outcome.is_ok:
            self._pruned_to = min(self._pruned_to, subject.offset - 1)
        return NOTHING

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        deleted = {topic_id for _, topic_id in change.deleted}
        records = [delete_record(key) for key in self.kept if key.topic_id in deleted]
        return Result(records=records, is_atomic=False)

    def hard_state(self) -> Mapping[Any, Any]:
        return {key: msgspec.structs.asdict(kept) for key, kept in self.kept.items()}


def _in(key: tuple[str], interval: str, context: Context) -> Timer:
    return Timer(key, context.now_ms + context.world.settings[interval])


def _again(kept: Kept, wall_ms: int) -> Kept:
    return msgspec.structs.replace(kept, snapshot_epoch=kept.snapshot_epoch + 1, write_timestamp=wall_ms)


def _judge(decide: _Decide, key: Key, asked: _Asked, context: Context, seen: set[Key]) -> _Decided:
    """Decide on one share partition; a refusal is its answer."""
    try:
        _check_key(key, seen)
        return decide(key, asked, context)
    except Reject as reject:
        return (), {"error_code": int(reject.code), "error_message": reject.message or reject.code.meaning}


def _check_key(key: Key, seen: set[Key]) -> None:
    if key.topic_id == _NO_TOPIC or key.partition < 0:
        raise Reject(ErrorCode.INVALID_REQUEST, "A share partition needs a topic id and a partition.")
    if key in seen:
        raise Reject(ErrorCode.INVALID_REQUEST, "A share partition is named twice.")
    seen.add(key)


def _is_repeated(asked: _Asked, known: Kept) -> bool:
    """Whether an initialization has come before, and the group has begun since. One that is to change where it begins
    says where."""
    return bool(asked.state_epoch == known.state_epoch and asked.start_offset == UNCHANGED != known.start_offset)


def _check_exists(key: Key, context: Context) -> None:
    topic = context.world.topics.by_id(key.topic_id)
    if topic is None or key.partition >= topic.partition_count:
        raise Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
