"""The offsets family with a log in memory and groups that do what a test tells them.

Every step is also a test of the law: after it, a new family that replays the log, or the compacted log, must have the
same hard state. The log holds bytes, so what does not survive being written is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.core.coordinator.contract import Context, Producer, Result, Timer, TopicsChange, World
from ottla.core.coordinator.records import encode_record
from ottla.core.groups.coordinator import GroupCoordinator
from ottla.core.groups.offsets import FetchOffsets, OffsetsFamily
from ottla.core.groups.offsets.requests import TransactionalCommit
from ottla.core.groups.table import Claim, CommitCheck, ExpiryRule, GroupKind, GroupTable, HoldsNothingElsewhere
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.reject import Reject
from ottla.wire.types.group_classic import GroupMetadataKey
from ottla.wire.types.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.types.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.types.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.types.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS

SETTINGS: dict[str, Any] = {
    "offset.metadata.max.bytes": 4096,
    "offsets.retention.minutes": 7 * 24 * 60,
    "offsets.retention.check.interval.ms": 600_000,
}


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int

    def racks(self, partition: int) -> frozenset[str]:
        return frozenset()


class Topics:
    version = 0

    def __init__(self) -> None:
        self.all: dict[str, Topic] = {}

    def add(self, name: str, topic_id: bytes, partition_count: int = 4) -> None:
        self.all[name] = Topic(name, topic_id, partition_count)

    def by_name(self, name: str) -> Topic | None:
        return self.all.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return next((each for each in self.all.values() if each.topic_id == topic_id), None)

    def names(self) -> list[str]:
        return list(self.all)


class StubGroup(HoldsNothingElsewhere):
    """A group whose answers a test sets. Its one record is a GroupMetadata tombstone."""

    kind = GroupKind.CLASSIC
    protocol_type = ""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.is_empty = True
        self.refusals: dict[str, ErrorCode] = {}
        """By question: commit, fetch, delete."""
        self.check: CommitCheck | None = None
        self.subscribed: frozenset[str] = frozenset()
        self.rule: ExpiryRule | None = ExpiryRule(lambda commit_ms: commit_ms, lambda topic: topic in self.subscribed)
        self.claims: list[Claim] = []
        self.fetchers: list[tuple[str | None, int]] = []

    def state_name(self) -> str:
        return "Empty"

    def _ask(self, question: str) -> None:
        if question in self.refusals:
            raise Reject(self.refusals[question])

    def check_commit(self, claim: Claim, context: Context) -> CommitCheck | None:
        self.claims.append(claim)
        self._ask("commit")
        return self.check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self.fetchers.append((member_id, member_epoch))
        self._ask("fetch")

    def check_delete(self) -> None: ...

    def check_offset_delete(self) -> None:
        self._ask("delete")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def expiry(self, context: Context) -> ExpiryRule | None:
        return self.rule

    def tombstones(self) -> Sequence[KeyedRecord]:
        return [KeyedRecord(GroupMetadataKey(self.group_id), 0, None, -1)]

    def hard_state(self) -> Any:
        return ()


class Marker(NamedTuple):
    producer_id: int
    committed: bool


class Entry(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None
    producer_id: int


def core() -> tuple[GroupCoordinator, GroupTable, OffsetsFamily]:
    table = GroupTable()
    family = OffsetsFamily(table, StubGroup)
    return GroupCoordinator([family]), table, family


class Bench:
    def __init__(self) -> None:
        self.core, self.table, self.family = core()
        self.topics = Topics()
        self.topics.add("orders", b"O" * 16)
        self.topics.add("bills", b"B" * 16)
        self.settings = dict(SETTINGS)
        self.denied: set[tuple[str, str]] = set()
        """Operation and topic."""
        self.now_ms = 0
        self.log: list[Entry | Marker] = []
        self.timers: dict[Any, int] = {}
        self._take(self.core.loaded(self.context()))

    # --- steps --------------------------------------------------------------------------------------------------------

    def context(self, version: int = 0) -> Context:
        world = World(
            self.settings, lambda group_id, name: None, self.topics, lambda name: 0, lambda: bytes(16), lambda: 0
        )
        return Context(
            self.now_ms,
            START_MS + self.now_ms,
            world,
            token="caller",
            api_version=version,
            authorize=lambda operation, kind, name: (operation.name, name) not in self.denied,
        )

    def ask(self, request: object, version: int) -> Any:
        result = self.core.handle(request, self.context(version))
        self._take(result)
        (reply,) = result.replies
        assert reply.token == "caller"
        return reply.message

    def advance(self, milliseconds: int) -> list[KeyedRecord]:
        """Let time pass; gives what was written by timers."""
        written: list[KeyedRecord] = []
        end_ms = self.now_ms + milliseconds
        while self.timers and min(self.timers.values()) <= end_ms:
            key = min(self.timers, key=lambda each: self.timers[each])
            self.now_ms = self.timers.pop(key)
            result = self.core.expire(key, self.context())
            self._take(result)
            written += result.records
        self.now_ms = end_ms
        return written

    def restart(self) -> list[KeyedRecord]:
        """Replay the log into a new core; gives what is written when it is loaded."""
        self.core, self.table, self.family = core()
        self.timers.clear()
        replay_into(self.core, self.log)
        self._take(self.core.loaded(self.context()))
        return self.advance(0)

    def delete_topic(self, name: str) -> list[KeyedRecord]:
        topic = self.topics.all.pop(name)
        return self.tell_deleted(name, topic.topic_id)

    def tell_deleted(self, name: str, topic_id: bytes) -> list[KeyedRecord]:
        result = self.core.topics_changed(TopicsChange(deleted=[(name, topic_id)]), self.context())
        self._take(result)
        return list(result.records)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.log.append(Marker(producer_id, committed))
        self.core.replay_marker(producer_id, 0, committed)
        self.check_law()

    def remove_group(self, group_id: str) -> None:
        self._take(Result(self.family.tombstones_of(group_id)))
        self.table.remove(group_id)

    def group(self, group_id: str) -> StubGroup:
        """The group of this name, made if need be."""
        if self.table.get(group_id) is None:
            self.table.put(StubGroup(group_id))
        group = self.table.get(group_id)
        assert isinstance(group, StubGroup)
        return group

    def _take(self, result: Result) -> None:
        producer = result.producer if result.records and result.producer else Producer(-1, -1)
        for record in result.records:
            offset = len(self.log)
            self.log.append(Entry(offset, *encode_record(record), producer.producer_id))
            self.core.replay(record, offset, producer.producer_id, producer.producer_epoch)
            if isinstance(record.key, GroupMetadataKey):
                self.table.remove(record.key.group)
        for timer in result.timers:
            self._set(timer)
        self.check_law()

    def _set(self, timer: Timer) -> None:
        assert timer.at_ms is not None
        self.timers[timer.key] = timer.at_ms

    # --- the law ------------------------------------------------------------------------------------------------------

    def check_law(self) -> None:
        live = self.core.hard_state()
        assert replayed(self.log) == live
        assert replayed(compacted(self.log)) == live

    # --- requests -----------------------------------------------------------------------------------------------------

    def commit(self, group: str, *offsets: tuple[Any, ...], version: int = 9, **fields: Any) -> dict[Any, ErrorCode]:
        """Offsets are topic (name, or id from version 10 on), partition, offset, metadata, leader epoch."""
        kind = OffsetCommitRequest
        topics = request_topics(kind.OffsetCommitRequestTopic, kind.OffsetCommitRequestPartition, offsets)
        response: OffsetCommitResponse = self.ask(kind(group, topics=topics, **fields), version)
        return codes(response)

    def commit_in_transaction(
        self, group: str, producer_id: int, *offsets: tuple[Any, ...], version: int = 5, **fields: Any
    ) -> dict[Any, ErrorCode]:
        kind = TxnOffsetCommitRequest
        topics = request_topics(kind.TxnOffsetCommitRequestTopic, kind.TxnOffsetCommitRequestPartition, offsets)
        request = kind("tx", group, producer_id, 0, topics=topics, **fields)
        response: TxnOffsetCommitResponse = self.ask(TransactionalCommit(request), version)
        return codes(response)

    def fetch(
        self, group: str, topics: dict[Any, list[int]] | None, *, version: int = 9, stable: bool = False, **fields: Any
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        kind = OffsetFetchRequest
        asked = None
        if topics is not None:
            asked = tuple(kind.OffsetFetchRequestTopics(*naming(name), tuple(each)) for name, each in topics.items())
        request = FetchOffsets(kind.OffsetFetchRequestGroup(group, topics=asked, **fields), stable)
        answer: OffsetFetchResponse.OffsetFetchResponseGroup = self.ask(request, version)
        return answer

    def stored(self, group: str) -> dict[tuple[str, int], int]:
        """What is committed, by topic and partition."""
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in self.fetch(group, None).topics
            for each in topic.partitions
        }

    def delete(self, group: str, topics: dict[str, list[int]]) -> OffsetDeleteResponse:
        kind = OffsetDeleteRequest
        asked = tuple(
            kind.OffsetDeleteRequestTopic(name, tuple(map(kind.OffsetDeleteRequestPartition, indexes)))
            for name, indexes in topics.items()
        )
        response: OffsetDeleteResponse = self.ask(kind(group, asked), 0)
        return response


def naming(name: str | bytes) -> tuple[str, bytes]:
    return (name, bytes(16)) if isinstance(name, str) else ("", name)


def request_topics(topic_class: Any, partition_class: Any, offsets: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    topics = []
    for topic, partition, offset, *rest in offsets:
        metadata, leader_epoch = (*rest, *("", -1)[len(rest) :])
        topics.append(topic_class(*naming(topic), (partition_class(partition, offset, leader_epoch, metadata),)))
    return tuple(topics)


def codes(response: Any) -> dict[Any, ErrorCode]:
    return {
        (topic.name or topic.topic_id, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


def replayed(log: Sequence[Entry | Marker]) -> Any:
    fresh, _, _ = core()
    replay_into(fresh, log)
    return fresh.hard_state()


def replay_into(fresh: GroupCoordinator, log: Sequence[Entry | Marker]) -> None:
    for entry in log:
        if isinstance(entry, Marker):
            fresh.replay_marker(entry.producer_id, 0, entry.committed)
        else:
            fresh.replay(decode_keyed("__consumer_offsets", entry.key, entry.value), entry.offset, entry.producer_id, 0)


def compacted(log: Sequence[Entry | Marker]) -> list[Entry | Marker]:
    """Without records of aborted transactions and without those that a later record replaces; tombstones go, too. As
    in Kafka nothing after the start of an open transaction is touched."""
    decided = {entry.producer_id: at for at, entry in enumerate(log) if isinstance(entry, Marker)}
    open_from = next(
        (
            at
            for at, entry in enumerate(log)
            if isinstance(entry, Entry) and entry.producer_id >= 0 and decided.get(entry.producer_id, -1) < at
        ),
        len(log),
    )
    kept: dict[bytes, int] = {}
    for at, entry in enumerate(log[:open_from]):
        if isinstance(entry, Entry) and not _is_aborted(log, at, entry):
            kept[entry.key] = at
    return [
        entry
        for at, entry in enumerate(log)
        if at >= open_from or isinstance(entry, Marker) or (kept.get(entry.key) == at and entry.value is not None)
    ]


def _is_aborted(log: Sequence[Entry | Marker], at: int, entry: Entry) -> bool:
    if entry.producer_id < 0:
        return False
    marker = next(each for each in log[at:] if isinstance(each, Marker) and each.producer_id == entry.producer_id)
    return not marker.committed
