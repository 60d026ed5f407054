"""The metadata log from a controller: ranges, a log that has lost its beginning, refusals."""

from pathlib import Path

import pytest

from ottla.client.address import Address, Peer
from ottla.spark.errors import OttlaSparkError
from ottla.spark.records.quorum import METADATA, Leader, Quorum, QuorumCluster
from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch import FetchRequest, FetchResponse
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse

LIFE = Path(__file__).parents[2] / "golden" / "storage" / "life"
LOG = (LIFE / "00000000000000000000.log").read_bytes()
SNAPSHOT = (LIFE / "00000000000000000033-0000000001.checkpoint").read_bytes()
END = 100


class Controller(Quorum):
    """A controller that has the golden log from an offset on, and one snapshot."""

    def __init__(self, log_start: int = 0, *, error: int = 0, sends_snapshots: bool = True) -> None:
        super().__init__(lambda: pytest.fail("no client is needed"), 1000)
        self.log_start_offset = log_start
        self.error = error
        self.sends_snapshots = sends_snapshots
        self.asked: list[int] = []

    def leader(self) -> Leader:
        return Leader(1, Peer(Address("controller", 9093), 1), 3, END)

    def _ask(self, leader: Leader, api: str, request: object) -> object:
        if isinstance(request, FetchSnapshotRequest):
            return self._snapshot_part(request.topics[0].partitions[0].position)
        assert isinstance(request, FetchRequest)
        (partition,) = request.topics[0].partitions
        assert (partition.current_leader_epoch, partition.last_fetched_epoch) == (3, 3)
        offset = partition.fetch_offset
        self.asked.append(offset)
        snapshot = FetchResponse.SnapshotId()
        records = b""
        if offset < self.log_start_offset or (offset == 0 and self.sends_snapshots):
            snapshot = FetchResponse.SnapshotId(33, 1)
        else:
            records = next((bytes(batch.data) for batch in split_batches(LOG) if batch.last_offset >= offset), b"")
        data = FetchResponse.PartitionData(
            partition_index=0,
            error_code=self.error,
            high_watermark=END,
            log_start_offset=self.log_start_offset,
            snapshot_id=snapshot,
            records=records,
        )
        return FetchResponse(responses=(FetchResponse.FetchableTopicResponse(METADATA.topic, bytes(16), (data,)),))

    def _snapshot_part(self, position: int) -> FetchSnapshotResponse:
        part = FetchSnapshotResponse.PartitionSnapshot(
            index=0,
            error_code=0,
            snapshot_id=FetchSnapshotResponse.SnapshotId(33, 1),
            size=len(SNAPSHOT),
            position=position,
            unaligned_records=SNAPSHOT[position : position + 500],
        )
        return FetchSnapshotResponse(topics=(FetchSnapshotResponse.TopicSnapshot(METADATA.topic, (part,)),))


def offsets(quorum: Quorum, start: int, until: int) -> list[int]:
    return [offset for columns in quorum.columns(start, until) for offset in columns.offset.tolist()]


def test_a_whole_log_is_read_from_its_beginning_though_a_snapshot_is_offered():
    controller = Controller()
    assert offsets(controller, 0, END) == list(range(END))
    assert controller.asked[:2] == [0, 1]


def test_a_range_begins_with_the_batch_that_holds_it():
    assert offsets(Controller(sends_snapshots=False), 40, 60)[-1] >= 59


def test_a_snapshot_stands_for_what_the_log_has_lost():
    found = offsets(Controller(log_start=33), 0, END)
    assert set(found[: found.index(33)]) == {32}
    assert found[found.index(33) :] == list(range(33, END))


def test_the_log_as_planning_sees_it():
    cluster = QuorumCluster(Controller(log_start=33))
    assigned = cluster.assigned()
    assert assigned.leaders == {METADATA: 1}
    assert cluster.earliest(assigned.leaders) == {METADATA: 33}
    assert cluster.latest(assigned.leaders) == {METADATA: END}
    with pytest.raises(OttlaSparkError, match=r"^controllers do not support timestamps"):
        cluster.at_time({METADATA: 5})


def test_a_refusal_says_what_else_to_do():
    controller = Controller(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(OttlaSparkError, match=r"CLUSTER_AUTHORIZATION_FAILED .*read its files with the option path$"):
        offsets(controller, 0, END)


def test_a_controller_that_sends_nothing_is_not_waited_for_for_ever():
    controller = Controller(sends_snapshots=False)
    controller._stall_timeout_s = 0.0
    with pytest.raises(OttlaSparkError, match=r"^no response from broker 1 \(controller:9093\) for "):
        offsets(controller, 95, END + 10)
