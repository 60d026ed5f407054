"""A leader of a share group for a fake cluster: it hands out records once each, and remembers what it was told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ottla.client import ShareConsumer, TopicPartition
from ottla.wire import frames, types
from ottla.wire.batch import Record, build_batch
from ottla.wire.errors import ErrorCode
from tests.component.client.fake import FakeBroker, FakeCluster, topic_id

Fetch = types.ShareFetchResponse
Acknowledge = types.ShareAcknowledgeResponse
Heartbeat = types.ShareGroupHeartbeatResponse
JOBS = topic_id("jobs")
LOCK_MS = 30_000


def batch(*offsets: int) -> bytes:
    return build_batch([Record(offset, 1_000, None, b"v%d" % offset) for offset in offsets])


def assigned(*partitions: int, epoch: int = 3, name: str = "jobs") -> Heartbeat:
    topics = (Heartbeat.TopicPartitions(topic_id(name), partitions),) if partitions else ()
    return Heartbeat(
        member_id="m", member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=Heartbeat.Assignment(topics)
    )


def steady(epoch: int = 3) -> Heartbeat:
    return Heartbeat(member_id="m", member_epoch=epoch, heartbeat_interval_ms=5_000)


class Leader:
    """Answers ShareFetch from a list of answers, one for each fetch that may bring records; then with nothing."""

    def __init__(self, broker: FakeBroker, *deliveries: Any) -> None:
        self.deliveries = list(deliveries)
        self.said: list[tuple[int, int, int, tuple[int, ...]]] = []
        """Partition, first offset, last offset, types, of every acknowledgement."""
        self.epochs: list[int] = []
        self.errors: dict[str, list[int]] = {"fetch": [], "acknowledge": [], "request": []}
        """Codes for the next answers."""
        self.leaves_out = False
        self.acknowledges = 0
        broker.on("ShareFetch", self.fetch)
        broker.on("ShareAcknowledge", self.acknowledge)

    def fetch(self, request: frames.Request) -> Fetch:
        body = request.body
        self.epochs.append(body.share_session_epoch)
        if self.errors["request"]:
            return Fetch(error_code=self.errors["request"].pop(0))
        told = {
            each.partition_index: each.acknowledgement_batches for topic in body.topics for each in topic.partitions
        }
        acknowledged = [index for index, batches in told.items() if self._hear(index, batches)]
        code = self.errors["acknowledge"].pop(0) if acknowledged and self.errors["acknowledge"] else 0
        found = {each.partition_index: each for each in (self._delivery() if body.max_records else ())}
        for index in () if self.leaves_out else acknowledged:
            data = found.get(index, Fetch.PartitionData(index, records=b""))
            found[index] = msgspec.structs.replace(data, acknowledge_error_code=code)
        topics = (Fetch.ShareFetchableTopicResponse(JOBS, tuple(found.values())),) if found else ()
        return Fetch(acquisition_lock_timeout_ms=LOCK_MS, responses=topics)

    def _delivery(self) -> list[Any]:
        if self.errors["fetch"]:
            return [Fetch.PartitionData(0, self.errors["fetch"].pop(0), records=b"")]
        return list(self.deliveries.pop(0)) if self.deliveries else []

    def acknowledge(self, request: frames.Request) -> Acknowledge:
        body = request.body
        self.acknowledges += 1
        self.epochs.append(body.share_session_epoch)
        if self.errors["request"]:
            return Acknowledge(error_code=self.errors["request"].pop(0))
        told = {
            each.partition_index: each.acknowledgement_batches for topic in body.topics for each in topic.partitions
        }
        code = self.errors["acknowledge"].pop(0) if told and self.errors["acknowledge"] else 0
        found = tuple(Acknowledge.PartitionData(index, code) for index in told if self._hear(index, told[index]))
        topics = (Acknowledge.ShareAcknowledgeTopicResponse(JOBS, found),) if found else ()
        return Acknowledge(acquisition_lock_timeout_ms=LOCK_MS, responses=topics)

    def _hear(self, index: int, batches: Any) -> bool:
        self.said += [(index, each.first_offset, each.last_offset, each.acknowledge_types) for each in batches]
        return bool(batches)


def delivery(*offsets: int, partition: int = 0, count: int = 1, data: bytes | None = None, error: int = 0) -> Any:
    """Records of one partition, acquired from the first to the last offset."""
    ranges = (Fetch.AcquiredRecords(offsets[0], offsets[-1], count),) if offsets else ()
    stored = batch(*offsets) if data is None else data
    return Fetch.PartitionData(partition, error, records=stored, acquired_records=ranges)


class OneLeader:
    """A cluster of one broker that coordinates and leads, with one group."""

    def __init__(self, *deliveries: Any, partitions: int = 1) -> None:
        self.cluster = FakeCluster(topics={"jobs": [1] * partitions})
        self.broker = self.cluster.broker(1)
        self.leader = Leader(self.broker, *deliveries)
        self.broker.on("ShareGroupHeartbeat", assigned(*range(partitions)), steady())

    @property
    def heartbeats(self) -> list[Any]:
        return self.broker.asked_for("ShareGroupHeartbeat")


INVALID = ErrorCode.INVALID_RECORD_STATE


# --- consumers -------------------------------------------------------------------------------------------------------

JOBS_0 = TopicPartition("jobs", 0)
ACCEPT, RELEASE, REJECT, RENEW, GAP = (1,), (2,), (3,), (4,), (0,)
QUICK: dict[str, Any] = {"max_wait_ms": 50}
EXPLICIT: dict[str, Any] = QUICK | {"acknowledgement": "explicit"}


@asynccontextmanager
async def consuming(cluster: FakeCluster, **options: Any) -> AsyncIterator[ShareConsumer]:
    async with cluster, cluster.client() as client, ShareConsumer(client, "g", ["jobs"], **options) as consumer:
        yield consumer


async def polled(consumer: ShareConsumer) -> list[Any]:
    """The records of the next poll that has some."""
    while not (found := await consumer.poll()):
        pass
    return [record for acquired in found for record in acquired.records()]
