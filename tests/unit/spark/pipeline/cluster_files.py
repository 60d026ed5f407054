"""A small cluster on disk: what its coordinators and its observer would have written, moment by moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.health.samples import OBSERVATIONS, Sample, encode, key_of
from ottla.log.partition import Partition
from ottla.wire import uuid_text
from ottla.wire.batch import Record, build_batch
from ottla.wire.keyed import encode_framed
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.wire.types.share_state import ShareUpdateKey, ShareUpdateValue, ShareUpdateValueStateBatch
from tests.unit.log.logs import open_partition
from tests.unit.spark.log_directories import CLUSTER, new_directory

DAY = 86_400_000
NOON = 20_000 * DAY + DAY // 2
TOPIC_ID = bytes(range(16))
Batches = Sequence[tuple[int, int, int, int]]


class ClusterFiles:
    """Writes records into the topics of a directory. Use as a context: what was written is on disk afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = new_directory(path)
        self._logs: dict[str, Partition] = {}
        self._seq = 0

    def __enter__(self) -> ClusterFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _append(self, topic: str, ts: int, key: bytes | None, value: bytes | None) -> None:
        log = self._logs.get(topic)
        if log is None:
            log = self._logs[topic] = open_partition(self.path / f"{topic}-0")
        log.append_as_leader(bytearray(build_batch([Record(0, ts, key, value)])), 0, ts)

    # --- coordinators -------------------------------------------------------------------------------------------------

    def coordinator(self, ts: int, key: Any, value: Any, version: int = 0) -> None:
        framed = None if value is None else encode_framed(value, version)
        self._append("__consumer_offsets", ts, encode_framed(key, 0), framed)

    def commit(self, ts: int, group: str, offset: int | None, topic: str = "orders", partition: int = 0) -> None:
        value = None if offset is None else OffsetCommitValue(offset, metadata="")
        self.coordinator(ts, OffsetCommitKey(group, topic, partition), value, 4)

    def rebalance(self, ts: int, group: str, epoch: int, member: str) -> None:
        """A consumer group whose one member joins, and has what it shall have a second later."""
        joined = ConsumerGroupMemberMetadataValue(client_id=member, client_host="h", subscribed_topic_names=("orders",))
        self.coordinator(ts, ConsumerGroupMemberMetadataKey(group, member), joined)
        self.coordinator(ts, ConsumerGroupMetadataKey(group), ConsumerGroupMetadataValue(epoch, 1))
        target = ConsumerGroupTargetAssignmentMetadataValue(epoch)
        self.coordinator(ts, ConsumerGroupTargetAssignmentMetadataKey(group), target)
        now = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch, previous_member_epoch=epoch - 1)
        self.coordinator(ts + 1_000, ConsumerGroupCurrentMemberAssignmentKey(group, member), now)

    def share(self, ts: int, group: str, batches: Batches, start: int = -1) -> None:
        key = ShareUpdateKey(group, TOPIC_ID, 0)
        states = tuple(ShareUpdateValueStateBatch(*each) for each in batches)
        value = ShareUpdateValue(start_offset=start, state_batches=states)
        self._append("__share_group_state", ts, encode_framed(key, 0), encode_framed(value, 0))

    def data(self, ts: int, topic: str = "orders") -> None:
        """A record of the topic that groups read."""
        self._append(topic, ts, None, b"x")

    # --- the observer -------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Another observer takes over, and counts from one again."""
        self._seq = 0

    def sample(
        self, ts: int, kind: str, entity: str, *, observer: str = "one", error: str | None = None, **body: Any
    ) -> None:
        found = self.make_sample(ts, kind, entity, observer=observer, error=error, **body)
        self._append(OBSERVATIONS, ts, key_of(found), encode(found))

    def make_sample(
        self, ts: int, kind: str, entity: str, *, observer: str = "one", error: str | None = None, **body: Any
    ) -> Sample:
        self._seq += 1
        told = None if error is not None else body
        return Sample(
            kind=kind, ts=ts, cluster=CLUSTER, observer=observer, seq=self._seq, entity=entity, error=error, body=told
        )

    def lag(self, ts: int, group: str, committed: int, end: int, observer: str = "one") -> None:
        body = {"group": group, "topic": "orders", "topic_id": uuid_text(TOPIC_ID), "partition": 0}
        told = {**body, "committed": committed, "high_watermark": end, "last_stable": end}
        self.sample(ts, "lag", f"{group}:orders-0", observer=observer, **told)

    def quorum(self, ts: int, epoch: int, leader: int = 1, observer: str = "one") -> None:
        replica = {"id": leader, "role": "voter", "log_end": 100, "last_fetch_ts": ts, "last_caught_up_ts": ts}
        told = {"leader": leader, "leader_epoch": epoch, "replicas": [replica]}
        self.sample(ts, "quorum", "quorum", observer=observer, **told)


def busy_day(cluster: ClusterFiles, start: int = NOON, minutes: int = 3) -> None:
    """All that the jobs look at: a group that rebalances and commits, one that shares, a quorum, lag."""
    cluster.rebalance(start, "billing", 1, "one")
    for second in range(0, 60 * minutes, 5):
        ts = start + second * 1_000
        cluster.data(ts)
        cluster.commit(ts + 10, "billing", second // 10)
        cluster.share(ts + 20, "risk", [(second, second, 2, 1), (second + 1, second + 1, 0, 1)], start=0)
        cluster.quorum(ts + 30, epoch=1 + second // 60)
        cluster.lag(ts + 40, "audit", committed=second, end=2 * second)
    cluster.rebalance(start + 60_000, "billing", 2, "two")
