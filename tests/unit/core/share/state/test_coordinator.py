"""The share coordinator: each check of each request, snapshots, pruning."""

from __future__ import annotations

import pytest

from ottla.core.share.state.coordinator import COLD, PRUNE
from ottla.core.share.state.kept import Key
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.share_state import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from ottla.wire.types.write_share_group_state import WriteShareGroupStateRequest
from tests.unit.core.share.state.bench import COLD_MS, PRUNE_MS, TOPIC_ID, WALL_MS, Bench

UNKNOWN_TOPIC_ID = bytes([8]) * 16
NO_TOPIC_ID = bytes(16)


def snapshots(bench: Bench) -> list[ShareSnapshotValue]:
    return [record.value for record in bench.records if isinstance(record.value, ShareSnapshotValue)]


def kinds(records: list[KeyedRecord]) -> list[str]:
    return [type(record.key).__name__.removesuffix("Key") for record in records]


@pytest.mark.parametrize(
    ("topic_id", "partition", "error"),
    [
        (NO_TOPIC_ID, 0, ErrorCode.INVALID_REQUEST),
        (TOPIC_ID, -1, ErrorCode.INVALID_REQUEST),
        (UNKNOWN_TOPIC_ID, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_ID, 4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_bad_keys(topic_id: bytes, partition: int, error: ErrorCode) -> None:
    bench = Bench()
    assert bench.initialize(partition, topic_id=topic_id) == error
    assert bench.delete(partition, topic_id=topic_id) == error
    assert bench.summary(partition, topic_id=topic_id).error_code == error
    # What has no state is not there, whether or not its topic is.
    assert bench.read(partition, topic_id=topic_id).error_code == ErrorCode.INVALID_REQUEST
    assert bench.write(partition=partition, topic_id=topic_id) == ErrorCode.INVALID_REQUEST
    assert bench.log == []


def test_state_of_a_topic_that_is_gone_from_metadata() -> None:
    bench = Bench()
    bench.initialize()
    bench.topics.all.clear()
    assert bench.read().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bench.write() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("start_offset", "count"), [(-1, -1), (0, 0), (17, 0)])
def test_initialize_writes_a_snapshot(start_offset: int, count: int) -> None:
    bench = Bench()
    assert bench.initialize(2, state_epoch=5, start_offset=start_offset) == 0
    ((key, _, value, _),) = bench.records
    assert key == ShareSnapshotKey("g", TOPIC_ID, 2)
    assert value == ShareSnapshotValue(0, 5, 0, start_offset, count, WALL_MS, WALL_MS, ())


def test_initialize_again_replaces_what_was_kept() -> None:
    bench = Bench()
    bench.initialize(start_offset=3)
    bench.write((3, 9, 2, 1), start_offset=3, count=7)
    assert bench.initialize(state_epoch=1, start_offset=0) == 0
    assert bench.read().state_batches == ()
    assert [value.snapshot_epoch for value in snapshots(bench)] == [0, 1]
    assert bench.summary().delivery_complete_count == 0


def test_an_initialization_that_comes_again_changes_nothing() -> None:
    """A former group coordinator may still try it, when the group has begun to work."""
    bench = Bench()
    bench.initialize(state_epoch=4, start_offset=-1)
    bench.write((5, 9, 2, 1), start_offset=5, state_epoch=4)
    assert bench.initialize(state_epoch=4, start_offset=-1) == 0
    assert bench.read().start_offset == 5
    assert len(bench.read().state_batches) == 1


def test_initialize_with_a_lower_state_epoch_is_fenced() -> None:
    bench = Bench()
    bench.initialize(state_epoch=5)
    assert bench.initialize(state_epoch=4) == ErrorCode.FENCED_STATE_EPOCH


def test_read_with_a_new_leader_epoch_writes_it_down() -> None:
    bench = Bench()
    bench.initialize(state_epoch=4, start_offset=10)
    bench.write((10, 14, 0, 2), start_offset=10, state_epoch=4)
    read = bench.read(leader_epoch=3)
    assert (read.state_epoch, read.start_offset) == (4, 10)
    assert [(batch.first_offset, batch.last_offset) for batch in read.state_batches] == [(10, 14)]
    assert bench.records[-1].value == ShareUpdateValue(0, 3, 10, 0, ())
    assert bench.read(leader_epoch=3).error_code == 0
    assert bench.read(leader_epoch=-1).error_code == 0
    assert len(bench.log) == 3
    assert bench.read(leader_epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert bench.write(leader_epoch=2, state_epoch=4) == ErrorCode.FENCED_LEADER_EPOCH


def test_initialization_does_not_let_old_leaders_in_again() -> None:
    bench = Bench()
    bench.initialize()
    bench.read(leader_epoch=3)
    bench.initialize(state_epoch=2)
    assert bench.write(leader_epoch=2, state_epoch=2) == ErrorCode.FENCED_LEADER_EPOCH
    assert bench.summary().leader_epoch == 0


@pytest.mark.parametrize(
    ("state_epoch", "leader_epoch", "error"),
    [
        (4, 3, ErrorCode.FENCED_STATE_EPOCH),
        (5, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (5, 3, ErrorCode.NONE),
        (6, 4, ErrorCode.NONE),
        (-1, -1, ErrorCode.NONE),
    ],
)
def test_write_is_fenced_by_both_epochs(state_epoch: int, leader_epoch: int, error: ErrorCode) -> None:
    bench = Bench()
    bench.initialize(state_epoch=5)
    bench.read(leader_epoch=3)
    assert bench.write((0, 4, 2, 1), state_epoch=state_epoch, leader_epoch=leader_epoch) == error
    summary = bench.summary()
    assert (summary.state_epoch, summary.leader_epoch) == (5, 3)  # a write raises neither


def test_write_merges_and_cuts_at_the_start() -> None:
    bench = Bench()
    bench.initialize(start_offset=0)
    bench.write((0, 9, 0, 1), (3, 3, 2, 1), count=1)
    bench.write((4, 6, 2, 2), start_offset=2, count=4)
    kept = bench.core.kept[Key("g", TOPIC_ID, 0)]
    assert kept.batches == ((2, 2, 0, 1), (3, 3, 2, 1), (4, 6, 2, 2), (7, 9, 0, 1))
    assert (kept.start_offset, kept.delivery_complete_count) == (2, 4)


def test_write_without_a_start_leaves_it() -> None:
    bench = Bench(updates_per_snapshot=1)
    bench.initialize(start_offset=5)
    bench.write((0, 9, 2, 1), start_offset=-1)
    assert bench.summary().start_offset == 5
    bench.write(start_offset=-1)
    assert (snapshots(bench)[-1].start_offset, snapshots(bench)[-1].snapshot_epoch) == (5, 1)


def test_delete_forgets_epochs_as_well() -> None:
    bench = Bench()
    bench.initialize(state_epoch=5)
    bench.read(leader_epoch=3)
    assert bench.delete() == 0
    assert (bench.records[-1].key, bench.records[-1].value) == (ShareSnapshotKey("g", TOPIC_ID, 0), None)
    assert bench.initialize(state_epoch=1) == 0
    assert bench.read(leader_epoch=1).error_code == 0


def test_delete_of_what_is_unknown_writes_nothing() -> None:
    bench = Bench()
    assert bench.delete() == 0
    assert bench.log == []


def test_summary_of_what_is_unknown() -> None:
    summary = Bench().summary()
    assert (summary.error_code, summary.state_epoch, summary.leader_epoch) == (0, 0, 0)
    assert (summary.start_offset, summary.delivery_complete_count) == (-1, -1)


def test_partitions_of_a_request_are_judged_one_by_one() -> None:
    bench = Bench()
    bench.initialize(0)
    kind = WriteShareGroupStateRequest
    partitions = tuple(kind.PartitionData(each, 1, 0, 0, 0) for each in (0, 1, 0))
    answer = bench.ask(kind("g", (kind.WriteStateData(TOPIC_ID, partitions),)))
    codes = [each.error_code for each in answer.results[0].partitions]
    assert codes == [0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("group_id", ["", "g"])
def test_empty_requests_get_empty_answers(group_id: str) -> None:
    kind = WriteShareGroupStateRequest
    topics = () if group_id else (kind.WriteStateData(TOPIC_ID, (kind.PartitionData(0),)),)
    assert Bench().ask(kind(group_id, topics)).results == ()


def test_snapshots_of_1200_writes() -> None:
    """A snapshot stands in the place of the update after each 500; the log after pruning tells the same."""
    bench = Bench()
    bench.checks_law = False
    bench.initialize(start_offset=0)
    for offset in range(1200):
        bench.write((offset, offset, 2, 1), start_offset=max(0, offset - 50), count=1)
    positions = [index for index, record in enumerate(bench.records) if isinstance(record.key, ShareSnapshotKey)]
    assert positions == [0, 501, 1002]
    assert [value.snapshot_epoch for value in snapshots(bench)] == [0, 1, 2]
    bench.expire(PRUNE)
    assert bench.log_start == 1002
    bench.check_law()
    # A node that has replayed the log goes on counting where the other was.
    assert bench.replayed(0)._update_counts == bench.core._update_counts


def test_every_write_is_a_snapshot_if_so_set() -> None:
    bench = Bench(updates_per_snapshot=0)
    bench.initialize()
    bench.write((0, 0, 2, 1))
    bench.write((1, 1, 2, 1))
    assert [value.snapshot_epoch for value in snapshots(bench)] == [0, 1, 2]


def test_pruning_goes_to_the_oldest_of_the_last_snapshots() -> None:
    bench = Bench(updates_per_snapshot=1)
    bench.initialize(0)
    bench.initialize(1)
    for offset in range(4):
        bench.write((offset, offset, 2, 1), partition=1)
    bench.expire(PRUNE)
    assert bench.log_start == 0
    bench.delete(0)
    bench.expire(PRUNE)
    assert bench.log_start == 5
    assert bench.timers[0] == (PRUNE, PRUNE_MS)
    bench.delete(1)
    bench.expire(PRUNE)
    assert bench.log_start == len(bench.log)


def test_cold_snapshots_let_pruning_go_on() -> None:
    bench = Bench(updates_per_snapshot=1)
    bench.initialize(0)
    bench.write((0, 3, 0, 2), partition=0)
    bench.initialize(1)
    bench.now_ms = COLD_MS
    bench.write(partition=1)
    bench.write(partition=1)
    (record,) = bench.expire(COLD)
    cold = snapshots(bench)[-1]
    assert (record.key, record.value) == (ShareSnapshotKey("g", TOPIC_ID, 0), cold)
    assert (cold.snapshot_epoch, cold.create_timestamp, cold.write_timestamp) == (1, WALL_MS, WALL_MS + COLD_MS)
    assert [(batch.first_offset, batch.last_offset) for batch in cold.state_batches] == [(0, 3)]
    bench.expire(PRUNE)
    assert bench.log_start == 4


def test_no_cold_snapshots_where_all_is_at_rest() -> None:
    bench = Bench()
    bench.initialize(0)
    for _ in range(3):
        bench.now_ms += COLD_MS
        bench.expire(COLD)
    assert kinds(bench.records) == ["ShareSnapshot", "ShareSnapshot"]


def test_deleted_topic_takes_its_state_along() -> None:
    bench = Bench()
    bench.initialize(0)
    bench.initialize(1)
    assert [record.value for record in bench.delete_topic()] == [None, None]
    assert bench.core.hard_state() == {}


def test_topic_that_was_deleted_while_nobody_could_tell() -> None:
    bench = Bench()
    bench.initialize(0)
    bench.write((0, 3, 2, 1))
    bench.topics.all.clear()
    bench.now_ms = COLD_MS
    (record,) = bench.expire(COLD)
    assert (record.key, record.value) == (ShareSnapshotKey("g", TOPIC_ID, 0), None)
    assert bench.core.hard_state() == {}


def test_update_without_a_snapshot_is_read_as_it_stands() -> None:
    """A log that was pruned between a snapshot and its tombstone."""
    bench = Bench()
    update = KeyedRecord(ShareUpdateKey("g", TOPIC_ID, 0), 0, ShareUpdateValue(2, 3, 4, 0, ()), 0)
    bench.core.replay(update, 0, -1, -1)
    assert bench.core.kept[Key("g", TOPIC_ID, 0)].start_offset == 4
