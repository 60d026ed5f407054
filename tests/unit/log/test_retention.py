"""Which of the oldest segments go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.log.partition import Partition
from ottla.log.retention import Expired, Reason, apply_retention, expired_segments
from tests.unit.log.logs import NOW, offsets, open_partition, sized_batch

DAY = 86_400_000


def filled(path: Path, *, segments: int = 4, age_ms: int = 0, **settings: Any) -> Partition:
    """One batch of 200 bytes to a segment, the last of them active; all below the high watermark."""
    partition = open_partition(path, segment_bytes=250, **settings)
    for _ in range(segments):
        made = sized_batch(200, timestamp=NOW - age_ms, partition_leader_epoch=0)
        made[:8] = partition.log_end_offset.to_bytes(8, "big")
        partition.append_as_follower(made, 0, NOW)  # which takes records without keys under any policy
    partition.update_high_watermark(partition.log_end_offset)
    assert len(partition.segments) == segments
    return partition


def test_nothing_goes_before_its_time(tmp_path: Path) -> None:
    partition = filled(tmp_path / "orders-0", age_ms=7 * DAY)
    assert expired_segments(partition, NOW) == Expired(0, None)
    assert expired_segments(partition, NOW + 1).reason is Reason.TIME


def test_a_log_that_is_all_too_old_goes_on_empty_at_its_end(tmp_path: Path) -> None:
    partition = filled(tmp_path / "orders-0", age_ms=8 * DAY)
    assert apply_retention(partition, NOW) == Expired(4, Reason.TIME)
    assert (partition.log_start_offset, partition.log_end_offset, len(partition.segments)) == (4, 4, 1)
    assert offsets(partition) == []
    assert expired_segments(partition, NOW) == Expired(0, None), "an empty segment is not removed again"


@pytest.mark.parametrize(
    ("retention_bytes", "count"), [(-1, 0), (800, 0), (601, 0), (600, 1), (400, 2), (1, 3), (0, 4)]
)
def test_size_is_judged_without_the_segment(tmp_path: Path, retention_bytes: int, count: int) -> None:
    partition = filled(tmp_path / "orders-0", retention_bytes=retention_bytes, retention_ms=-1)
    expired = expired_segments(partition, NOW)
    assert expired == Expired(count, Reason.SIZE if count else None)


def test_what_is_above_the_high_watermark_stays(tmp_path: Path) -> None:
    partition = filled(tmp_path / "orders-0", age_ms=8 * DAY)
    partition.high_watermark = 2
    assert expired_segments(partition, NOW).segment_count == 2


@pytest.mark.parametrize("policy", [("delete",), ("compact",), ()])
def test_whole_segments_below_the_log_start_go_under_any_policy(tmp_path: Path, policy: tuple[str, ...]) -> None:
    partition = filled(tmp_path / "orders-0", cleanup_policy=frozenset(policy))
    partition.delete_records(2)
    assert apply_retention(partition, NOW) == Expired(2, Reason.LOG_START)
    assert offsets(partition) == [2, 3]


def test_time_and_size_do_not_matter_without_the_policy(tmp_path: Path) -> None:
    partition = filled(
        tmp_path / "orders-0", age_ms=800 * DAY, retention_bytes=1, cleanup_policy=frozenset(("compact",))
    )
    assert expired_segments(partition, NOW) == Expired(0, None)


def test_without_timestamps_the_age_of_the_file_counts(tmp_path: Path) -> None:
    partition = open_partition(tmp_path / "orders-0", segment_bytes=250, retention_ms=1_000)
    partition.append_as_leader(sized_batch(200, timestamp=-1), 0, NOW)
    partition.update_high_watermark(1)
    written_ms = partition.segments[0].modified_ms()
    assert expired_segments(partition, written_ms + 1_000).segment_count == 0
    assert expired_segments(partition, written_ms + 1_001).segment_count == 1


def test_what_is_staged_does_not_go_with_an_old_segment(tmp_path: Path) -> None:
    partition = open_partition(tmp_path / "orders-0", retention_ms=DAY)
    partition.append_as_leader(sized_batch(200, timestamp=NOW - 2 * DAY), 0, NOW - 2 * DAY)
    partition.update_high_watermark(1)
    partition.stage_as_leader(sized_batch(200, timestamp=NOW), 0, NOW)
    assert apply_retention(partition, NOW) == Expired(0, None)
    assert offsets(partition) == [0, 1]
