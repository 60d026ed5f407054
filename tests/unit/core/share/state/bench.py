"""A share coordinator with a log in memory.

Every step is also a test of the law: a new core that replays the log, or what pruning has left of it, must have the
same hard state. The log holds bytes, so what does not survive being written is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.core.coordinator.contract import Context, Result, Timer, TopicsChange, World
from ottla.core.coordinator.records import encode_record
from ottla.core.share.state import PruneLog, ShareStateCoordinator
from ottla.wire.keyed import KeyedRecord, decode_keyed
from ottla.wire.types.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.types.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.types.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.types.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.types.write_share_group_state import WriteShareGroupStateRequest

WALL_MS = 1_800_000_000_000
TOPIC_ID = bytes([7]) * 16
PRUNE_MS = COLD_MS = 300_000
STATE_PARTITION = 11


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int

    def racks(self, partition: int) -> frozenset[str]:
        return frozenset()


class Topics:
    version = 0

    def __init__(self) -> None:
        self.all = {TOPIC_ID: Topic("orders", TOPIC_ID, 4)}

    def by_name(self, name: str) -> Topic | None:
        raise NotImplementedError

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self.all.get(topic_id)

    def names(self) -> list[str]:
        return []


class Bench:
    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self._updates_per_snapshot = updates_per_snapshot
        self.topics = Topics()
        self.world = World(
            settings={
                "share.coordinator.state.topic.prune.interval.ms": PRUNE_MS,
                "share.coordinator.cold.partition.snapshot.interval.ms": COLD_MS,
            },
            group_setting=lambda group_id, name: None,
            topics=self.topics,
            feature=lambda name: 0,
            new_uuid=lambda: bytes(16),
            draw=lambda: 0.0,
        )
        self.core = self.new_core()
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.log_start = 0
        self.checks_law = True
        self.timers: list[Timer] = []
        self.apply(self.core.loaded(self.context))

    def new_core(self) -> ShareStateCoordinator:
        return ShareStateCoordinator(STATE_PARTITION, self._updates_per_snapshot)

    @property
    def context(self) -> Context:
        return Context(self.now_ms, WALL_MS + self.now_ms, self.world, token="t")

    @property
    def records(self) -> list[KeyedRecord]:
        return [decode_keyed("__share_group_state", key, value) for key, value in self.log]

    def apply(self, result: Result) -> list[KeyedRecord]:
        """Append and replay what a result says; gives its records as they stand in the log."""
        begin = len(self.log)
        for record in result.records:
            self.log.append(encode_record(record))
            key, value = self.log[-1]
            self.core.replay(decode_keyed("__share_group_state", key, value), len(self.log) - 1, -1, -1)
        for effect in result.effects:
            assert isinstance(effect, PruneLog)
            assert effect.partition == STATE_PARTITION
            assert effect.offset > self.log_start
            self.log_start = effect.offset
        self.timers = list(result.timers) or self.timers
        if self.checks_law:
            self.check_law()
        return [decode_keyed("__share_group_state", key, value) for key, value in self.log[begin:]]

    def check_law(self) -> None:
        for start in {0, self.log_start}:
            assert self.replayed(start).hard_state() == self.core.hard_state()

    def replayed(self, start: int) -> ShareStateCoordinator:
        core = self.new_core()
        for offset, record in list(enumerate(self.records))[start:]:
            core.replay(record, offset, -1, -1)
        return core

    def expire(self, key: tuple[str]) -> list[KeyedRecord]:
        return self.apply(self.core.expire(key, self.context))

    def delete_topic(self) -> list[KeyedRecord]:
        del self.topics.all[TOPIC_ID]
        return self.apply(self.core.topics_changed(TopicsChange(deleted=[("orders", TOPIC_ID)]), self.context))

    # --- requests about one share partition ---------------------------------------------------------------------------

    def ask(self, request: Any) -> Any:
        result = self.core.handle(request, self.context)
        self.apply(result)
        (reply,) = result.replies
        assert reply.token == "t"
        return reply.message

    def _one(self, kind: Any, data: Any, partition: Any, topic_id: bytes) -> Any:
        answer = self.ask(kind(group_id="g", topics=(data(topic_id=topic_id, partitions=(partition,)),)))
        ((result,),) = [topic.partitions for topic in answer.results]
        return result

    def initialize(
        self, partition: int = 0, *, state_epoch: int = 1, start_offset: int = -1, topic_id: bytes = TOPIC_ID
    ) -> int:
        kind = InitializeShareGroupStateRequest
        asked = kind.PartitionData(partition, state_epoch, start_offset)
        return self._one(kind, kind.InitializeStateData, asked, topic_id).error_code  # type: ignore[no-any-return]

    def read(self, partition: int = 0, *, leader_epoch: int = 0, topic_id: bytes = TOPIC_ID) -> Any:
        kind = ReadShareGroupStateRequest
        return self._one(kind, kind.ReadStateData, kind.PartitionData(partition, leader_epoch), topic_id)

    def write(
        self,
        *batches: tuple[int, int, int, int],
        partition: int = 0,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = 0,
        count: int = 0,
        topic_id: bytes = TOPIC_ID,
    ) -> int:
        kind = WriteShareGroupStateRequest
        written = tuple(kind.StateBatch(*batch) for batch in batches)
        asked = kind.PartitionData(partition, state_epoch, leader_epoch, start_offset, count, written)
        return self._one(kind, kind.WriteStateData, asked, topic_id).error_code  # type: ignore[no-any-return]

    def delete(self, partition: int = 0, *, topic_id: bytes = TOPIC_ID) -> int:
        kind = DeleteShareGroupStateRequest
        return self._one(kind, kind.DeleteStateData, kind.PartitionData(partition), topic_id).error_code  # type: ignore[no-any-return]

    def summary(self, partition: int = 0, *, topic_id: bytes = TOPIC_ID) -> Any:
        kind = ReadShareGroupStateSummaryRequest
        return self._one(kind, kind.ReadStateSummaryData, kind.PartitionData(partition, 0), topic_id)
