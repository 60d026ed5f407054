"""Reads the metadata log over the network, from the leader of the controllers, as a follower does.

Brokers know the leader and the end of the log (DescribeQuorum). The leader answers Fetch on its own listener, if the
client is authorized: with ACLs that takes CLUSTER_ACTION. If the beginning of the log was deleted, the leader names the
snapshot that replaces it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ottla.client.address import Address, Peer
from ottla.client.blocking import BlockingClient
from ottla.client.client import always
from ottla.client.errors import ResponseError, check
from ottla.client.versions import choose_version
from ottla.spark.errors import OttlaSparkError
from ottla.spark.offsets import Offsets, TopicPartition
from ottla.spark.topic.cluster import Assigned
from ottla.wire import uuid_text
from ottla.wire.columns import decode_columns
from ottla.wire.types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.types.fetch import FetchRequest, FetchResponse, FetchResponsePartitionData, FetchResponseSnapshotId
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

if TYPE_CHECKING:
    from ottla.wire.columns import Columns

__all__ = ["METADATA", "Quorum", "QuorumCluster"]

METADATA: Final = TopicPartition("__cluster_metadata", 0)
METADATA_ID: Final = bytes(15) + b"\x01"
ANSWER_BYTES: Final = 8 << 20
WAIT_MS: Final = 200


class Leader(NamedTuple):
    node_id: int
    peer: Peer
    epoch: int
    high_watermark: int


class Quorum:
    """The leader of the controllers, and its log."""

    def __init__(self, client: Callable[[], BlockingClient], stall_timeout_ms: int) -> None:
        self._client = client
        self._stall_timeout_s = stall_timeout_ms / 1000

    def leader(self) -> Leader:
        """The present leader. Raises OttlaSparkError if brokers do not give its address, as those before Kafka 3.9."""
        topic = DescribeQuorumRequest.TopicData(
            METADATA.topic, (DescribeQuorumRequest.PartitionData(METADATA.partition),)
        )
        answer = self._client().ask("DescribeQuorum", always(DescribeQuorumRequest((topic,))))
        body = answer.of(DescribeQuorumResponse)
        check(answer.peer, "DescribeQuorum", body.error_code, message=body.error_message)
        (partition,) = body.topics[0].partitions
        check(answer.peer, "DescribeQuorum", partition.error_code, str(METADATA), partition.error_message)
        for node in body.nodes:
            if node.node_id == partition.leader_id and node.listeners:
                address = Address(node.listeners[0].host, node.listeners[0].port)
                peer = Peer(address, node.node_id)
                return Leader(node.node_id, peer, partition.leader_epoch, partition.high_watermark)
        raise OttlaSparkError(
            f"the address of controller {partition.leader_id} is unknown: read its files with the option path"
        )

    def log_start(self) -> int:
        leader = self.leader()
        return max(self._fetch(leader, leader.high_watermark).log_start_offset, 0)

    def columns(self, start: int, until: int) -> Iterator[Columns]:
        """The records of a range; if the log begins later, the records of the snapshot come first."""
        leader = self.leader()
        position, progress_at_s = start, time.monotonic()
        while position < until:
            data = self._fetch(leader, position)
            if data.snapshot_id.end_offset >= 0 and position == 0 == data.log_start_offset:
                # A follower with an empty log is sent a snapshot even if the log is complete. The first batch, of the
                # first leader's election, has more than one record if the log has voters.
                position = 1
            elif data.snapshot_id.end_offset >= 0:
                yield self._snapshot(leader, data.snapshot_id)
                position = data.snapshot_id.end_offset
            elif data.records:
                columns = decode_columns(data.records, include_control=True)
                yield columns
                position = int(columns.batches.last_offset[-1]) + 1
            elif time.monotonic() - progress_at_s > self._stall_timeout_s:
                raise OttlaSparkError(f"no response from {leader.peer} for {METADATA} in {self._stall_timeout_s:g} s")
            else:
                continue
            progress_at_s = time.monotonic()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _fetch(self, leader: Leader, offset: int) -> FetchResponsePartitionData:
        # With the leader's own epoch as the epoch of our last record, the leader compares only the offset.
        partition = FetchRequest.FetchPartition(
            partition=METADATA.partition,
            current_leader_epoch=leader.epoch,
            fetch_offset=offset,
            last_fetched_epoch=leader.epoch,
            log_start_offset=0,
            partition_max_bytes=ANSWER_BYTES,
        )
        topic = FetchRequest.FetchTopic(METADATA.topic, METADATA_ID, (partition,))
        request = FetchRequest(max_wait_ms=WAIT_MS, min_bytes=0, max_bytes=ANSWER_BYTES, topics=(topic,))
        body = self._ask(leader, "Fetch", request)
        assert isinstance(body, FetchResponse)
        self._check(leader, "Fetch", body.error_code)
        (data,) = body.responses[0].partitions
        self._check(leader, "Fetch", data.error_code)
        return data

    def _snapshot(self, leader: Leader, named: FetchResponseSnapshotId) -> Columns:
        data, size = b"", 1
        while len(data) < size:
            partition = FetchSnapshotRequest.PartitionSnapshot(
                partition=METADATA.partition,
                current_leader_epoch=leader.epoch,
                snapshot_id=FetchSnapshotRequest.SnapshotId(named.end_offset, named.epoch),
                position=len(data),
            )
            topic = FetchSnapshotRequest.TopicSnapshot(METADATA.topic, (partition,))
            body = self._ask(leader, "FetchSnapshot", FetchSnapshotRequest(max_bytes=ANSWER_BYTES, topics=(topic,)))
            assert isinstance(body, FetchSnapshotResponse)
            self._check(leader, "FetchSnapshot", body.error_code)
            (part,) = body.topics[0].partitions
            self._check(leader, "FetchSnapshot", part.error_code)
            data, size = data + bytes(part.unaligned_records or b""), part.size
        columns = decode_columns(data, include_control=True)
        return replace(columns, offset=np.full(len(columns), named.end_offset - 1, np.int64))

    def _ask(self, leader: Leader, api: str, request: object) -> object:
        connection = self._client().borrow(leader.peer)
        try:
            connection.send(request, choose_version(api, connection.versions, connection.peer))
            return connection.receive()
        finally:
            self._client().give_back(connection)

    def _check(self, leader: Leader, api: str, code: int) -> None:
        try:
            check(leader.peer, api, code, str(METADATA))
        except ResponseError as error:
            raise OttlaSparkError(
                f"{error}; if the controller's log is not accessible, read its files with the option path"
            ) from None


class QuorumCluster:
    """The metadata log in the role of a cluster for planning."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    def assigned(self) -> Assigned:
        leader = self._quorum.leader()
        return Assigned({METADATA: leader.node_id}, {METADATA.topic: uuid_text(METADATA_ID)})

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: self._quorum.log_start() for at in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: self._quorum.leader().high_watermark for at in partitions}

    def at_time(self, timestamps: Offsets) -> dict[TopicPartition, int | None]:
        raise OttlaSparkError(
            "controllers do not support timestamps: use offsets, or read their files with the option path"
        )
