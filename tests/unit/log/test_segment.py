"""A segment's indexes, rule by rule. What they should hold is worked out by hand from Apache Kafka's rules."""

from pathlib import Path
from typing import Any

import pytest

from ottla.log.config import LogConfig
from ottla.log.files import Directory, LogStorage
from ottla.log.segment import Segment
from ottla.wire.batch import BatchBuilder
from tests.unit.log.logs import NOW, new_storage

CONFIG = LogConfig(index_interval_bytes=4096)


def new_segment(path: Path, base_offset: int = 0, *, storage: LogStorage | None = None) -> Segment:
    return Segment.create(Directory(storage or new_storage(), str(path)), base_offset, CONFIG, NOW)


def add(segment: Segment, base_offset: int, timestamp: int, *, size_bytes: int = 0, count: int = 1) -> int:
    """Append a batch, blown up to a size if asked; gives where it begins."""
    builder = BatchBuilder(base_offset)
    for _ in range(count):
        builder.append(timestamp, None, b"")
    data = builder.build()
    value_bytes = size_bytes - len(data)
    while size_bytes and len(data) != size_bytes:
        builder = BatchBuilder(base_offset)
        builder.append(timestamp, None, bytes(value_bytes), offset=base_offset + count - 1)
        data = builder.build()
        value_bytes -= len(data) - size_bytes
    position = segment.size_bytes
    segment.append([data], [(base_offset + count - 1, timestamp, len(data))], CONFIG)
    return position


def test_an_entry_comes_when_more_than_the_interval_has_been_written(tmp_path: Path):
    segment = new_segment(tmp_path)
    sizes = [1000, 3096, 100, 4096, 4097, 5000, 100]
    positions = []
    for number, size in enumerate(sizes):
        positions.append(segment.size_bytes)
        segment.add_to_indexes([(number, NOW + number, size)], CONFIG)
    # 4,096 bytes lie before batch 2: not more than the interval. Before batch 3 it is 4,196; the count begins anew
    # with batch 3 itself, 4,096 bytes, so batch 4 gets none, and batches 5 and 6 each follow more than the interval.
    assert segment.offset_index.entries() == [(3, positions[3]), (5, positions[5]), (6, positions[6])]
    assert segment.time_index.entries() == [(NOW + 3, 3), (NOW + 5, 5), (NOW + 6, 6)]


def test_an_entry_names_the_last_offset_of_a_batch_and_where_it_begins(tmp_path: Path):
    segment = new_segment(tmp_path, 1000)
    add(segment, 1000, NOW, size_bytes=5000, count=10)
    position = add(segment, 1010, NOW, size_bytes=5000, count=10)
    assert segment.offset_index.entries() == [(19, position)]


def test_the_time_index_holds_the_largest_timestamp_so_far(tmp_path: Path):
    segment = new_segment(tmp_path)
    for offset, timestamp in enumerate([50, 90, 70, 90, 60, 95, 10]):
        add(segment, offset, timestamp, size_bytes=5000)
    assert segment.time_index.entries() == [(90, 1), (95, 5)]
    assert (segment.max_timestamp(), segment.max_timestamp_offset()) == (95, 5)
    assert segment.first_timestamp() == 50


def test_closing_adds_the_largest_timestamp(tmp_path: Path):
    segment = new_segment(tmp_path)
    add(segment, 0, 100)
    add(segment, 1, 300)
    add(segment, 2, 200)
    segment.close_indexes()
    assert segment.time_index.entries() == [(300, 1)]
    assert (tmp_path / "00000000000000000000.index").stat().st_size == 0
    segment.close_indexes()
    assert (tmp_path / "00000000000000000000.timeindex").stat().st_size == 12


def test_without_timestamps_the_time_index_stays_empty(tmp_path: Path):
    segment = new_segment(tmp_path)
    for offset in range(3):
        add(segment, offset, -1, size_bytes=5000)
    segment.close_indexes()
    assert segment.time_index.entries() == []
    assert len(segment.offset_index) == 2


def test_counting_begins_anew_after_opening(tmp_path: Path):
    segment = new_segment(tmp_path)
    add(segment, 0, NOW, size_bytes=5000)
    segment.close_indexes()
    segment.close()
    again = Segment(segment.file.directory, 0, segment.size_bytes, CONFIG, NOW)
    add(again, 1, NOW + 1, size_bytes=5000)
    position = add(again, 2, NOW + 2, size_bytes=5000)
    assert again.offset_index.entries() == [(2, position)]
    assert again.time_index.entries() == [(NOW, 0), (NOW + 2, 2)]


def rolls(segment: Segment, **settings: Any) -> bool:
    call = {"size_bytes": 100, "max_timestamp": NOW, "last_offset": segment.base_offset + 1}
    call |= {key: settings.pop(key) for key in list(settings) if key in call}
    now_ms = settings.pop("now_ms", NOW)
    return segment.should_roll(LogConfig(**settings), now_ms, **call)


def test_rolling_by_size(tmp_path: Path):
    segment = new_segment(tmp_path)
    assert not rolls(segment, segment_bytes=100)
    assert rolls(segment, segment_bytes=99)
    add(segment, 0, NOW, size_bytes=1000)
    assert not rolls(segment, segment_bytes=1100)
    assert rolls(segment, segment_bytes=1099)


def test_rolling_by_the_records_own_time(tmp_path: Path):
    segment = new_segment(tmp_path)
    assert not rolls(segment, segment_ms=1000, max_timestamp=NOW + 5000, now_ms=NOW + 5000)
    add(segment, 0, NOW + 7)
    assert not rolls(segment, segment_ms=1000, max_timestamp=NOW + 1007, now_ms=NOW + 99999)
    assert rolls(segment, segment_ms=1000, max_timestamp=NOW + 1008)
    assert not rolls(segment, segment_ms=1000, max_timestamp=NOW - 99999)


def test_rolling_by_the_clock_where_records_have_no_time(tmp_path: Path):
    segment = new_segment(tmp_path)
    add(segment, 0, -1)
    assert not rolls(segment, segment_ms=1000, max_timestamp=-1, now_ms=NOW + 1000)
    assert rolls(segment, segment_ms=1000, max_timestamp=-1, now_ms=NOW + 1001)


def test_a_compacted_log_rolls_in_time_to_be_compacted(tmp_path: Path):
    segment = new_segment(tmp_path)
    add(segment, 0, NOW)
    settings: dict[str, Any] = {"segment_ms": 1000, "max_compaction_lag_ms": 500, "max_timestamp": NOW + 501}
    compacted = frozenset(("compact", "delete"))
    assert rolls(segment, cleanup_policy=compacted, **settings)
    assert not rolls(segment, cleanup_policy=compacted, **settings | {"max_timestamp": NOW + 500})
    assert not rolls(segment, **settings), "without compaction nothing waits for it"
    assert rolls(segment, cleanup_policy=compacted, **settings | {"segment_ms": 100})


def test_the_first_timestamp_is_found_again_after_opening(tmp_path: Path):
    segment = new_segment(tmp_path)
    add(segment, 0, NOW + 7)
    add(segment, 1, NOW + 900)
    again = Segment(segment.file.directory, 0, segment.size_bytes, CONFIG, NOW)
    assert rolls(again, segment_ms=1000, max_timestamp=NOW + 1008)
    assert not rolls(again, segment_ms=1000, max_timestamp=NOW + 1007)


def test_jitter_makes_a_segment_roll_earlier(tmp_path: Path):
    storage = new_storage()
    limits = []

    def jitter(limit: int) -> int:
        limits.append(limit)
        return 400

    storage.jitter = jitter
    config = LogConfig(segment_ms=1000, segment_jitter_ms=5000)
    segment = Segment.create(Directory(storage, str(tmp_path)), 0, config, NOW)
    assert limits == [1000]
    add(segment, 0, NOW)
    assert not rolls(segment, segment_ms=1000, max_timestamp=NOW + 600)
    assert rolls(segment, segment_ms=1000, max_timestamp=NOW + 601)


def test_rolling_when_an_offset_is_out_of_reach_of_the_index(tmp_path: Path):
    segment = new_segment(tmp_path, 5)
    assert not rolls(segment, last_offset=5 + 2**31 - 1)
    assert rolls(segment, last_offset=5 + 2**31)


@pytest.mark.parametrize(("index_bytes", "entries"), [(24, 1), (35, 1), (36, 2), (48, 3)])
def test_rolling_when_an_index_is_full(tmp_path: Path, index_bytes: int, entries: int):
    # One slot of the time index is kept for the closing entry, so 12-byte entries are the limit here.
    config = LogConfig(segment_index_bytes=index_bytes, index_interval_bytes=0)
    segment = new_segment(tmp_path)
    for number in range(entries + 1):
        assert not segment.should_roll(config, NOW, 10, NOW, number)
        segment.add_to_indexes([(number, NOW + number, 10)], config)
    assert len(segment.time_index) == entries
    assert segment.should_roll(config, NOW, 10, NOW, 9)
    segment.add_to_indexes([(9, NOW + 9, 10)], config)
    assert len(segment.time_index) == entries
    segment.close_indexes()
    assert len(segment.time_index) == entries + 1


def test_an_index_may_also_be_full_of_offsets_alone(tmp_path: Path):
    config = LogConfig(segment_index_bytes=40, index_interval_bytes=0)
    segment = new_segment(tmp_path)
    for number in range(6):
        assert not segment.should_roll(config, NOW, 10, NOW, number)
        segment.add_to_indexes([(number, NOW, 10)], config)
    assert len(segment.offset_index) == 5
    assert segment.should_roll(config, NOW, 10, NOW, 9)


def filled(path: Path, *, base_offset: int = 100) -> Segment:
    """Ten batches of three records and 3,000 bytes, offsets 100 to 129."""
    segment = new_segment(path, base_offset)
    for number in range(10):
        add(segment, base_offset + number * 3, NOW + number, size_bytes=3000, count=3)
    return segment


@pytest.mark.parametrize("damage", ["none", "garbage", "shifted", "missing", "beyond the end"])
def test_batches_are_found_whatever_the_index_says(tmp_path: Path, damage: str):
    segment = filled(tmp_path)
    size = segment.size_bytes
    segment.close_indexes()
    segment.close()
    index = tmp_path / "00000000000000000100.index"
    sound = index.read_bytes()
    assert len(sound) > 24
    changed = {
        "none": sound,
        "garbage": b"\x00\x00\x00\x01\x00\x00\x11\x11" * 4,
        "shifted": sound[8:] + sound[-8:],
        "beyond the end": b"\x00\x00\x00\x01\x7f\xff\xff\xff",
    }
    if damage == "missing":
        index.unlink()
    else:
        index.write_bytes(changed[damage])
    again = Segment(segment.file.directory, 100, size, CONFIG, NOW)
    for offset in range(100, 130):
        found = again.find_batch(offset)
        assert found is not None
        assert found.base_offset <= offset <= found.last_offset
    assert again.find_batch(130) is None
    assert again.next_offset() == (130, size)


def test_the_end_of_an_empty_segment(tmp_path: Path):
    assert new_segment(tmp_path, 77).next_offset() == (77, 0)


def test_the_end_leaves_out_a_torn_batch(tmp_path: Path):
    segment = filled(tmp_path)
    segment.file.handle().truncate(segment.size_bytes - 1)
    again = Segment(segment.file.directory, 100, segment.size_bytes - 1, CONFIG, NOW)
    assert again.next_offset() == (127, 27_000)


@pytest.mark.parametrize(
    ("target", "end_offset", "batches"),
    [(130, 130, 10), (127, 127, 9), (128, 127, 9), (129, 127, 9), (103, 103, 1), (101, 100, 0), (100, 100, 0)],
)
def test_truncation_drops_whole_batches(tmp_path: Path, target: int, end_offset: int, batches: int):
    segment = filled(tmp_path)
    assert segment.truncate_to(target, NOW + 5) == end_offset
    assert segment.size_bytes == batches * 3000
    assert (tmp_path / "00000000000000000100.log").stat().st_size == batches * 3000
    assert all(100 + entry[0] < target for entry in segment.offset_index.entries())
    assert all(100 + entry[1] < target for entry in segment.time_index.entries())
    assert segment.max_timestamp() == (NOW + batches - 1 if batches else -1)
    assert segment.next_offset() == (end_offset, batches * 3000)
    # What is appended now is indexed as if nothing had been there.
    add(segment, 200, NOW + 50, size_bytes=5000)
    position = add(segment, 201, NOW + 51, size_bytes=5000)
    assert segment.offset_index.last_entry() == (101, position)
    assert segment.first_timestamp() == (NOW if batches else NOW + 50)


def test_truncation_into_a_hole_of_compaction(tmp_path: Path):
    segment = new_segment(tmp_path)
    add(segment, 0, NOW, count=5)
    add(segment, 20, NOW, count=5)
    assert segment.truncate_to(12, NOW) == 12
    assert segment.next_offset()[0] == 5


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("lost", [0, 1, 2, 99])
def test_whether_a_closed_segment_has_its_last_entries(tmp_path: Path, kind: str, lost: int):
    segment = filled(tmp_path)
    add(segment, 130, NOW - 5)
    segment.close_indexes()
    segment.close()
    path = tmp_path / f"00000000000000000100.{kind}"
    entry_bytes = 8 if kind == "index" else 12
    data = path.read_bytes()
    path.write_bytes(data[: max(len(data) - lost * entry_bytes, 0)])
    again = Segment(segment.file.directory, 100, segment.size_bytes, CONFIG, NOW)
    assert again.has_whole_indexes(CONFIG) is (lost == 0)


def test_a_segment_that_ends_in_damage_has_no_whole_indexes(tmp_path: Path):
    segment = filled(tmp_path)
    segment.close_indexes()
    segment.file.handle().write([bytes(100)], segment.size_bytes)
    again = Segment(segment.file.directory, 100, segment.size_bytes + 100, CONFIG, NOW)
    assert not again.has_whole_indexes(CONFIG)


def test_an_empty_segment_has_whole_indexes(tmp_path: Path):
    assert new_segment(tmp_path).has_whole_indexes(CONFIG)


def test_changing_the_state_renames_what_is_there(tmp_path: Path):
    segment = Segment.create(Directory(new_storage(), str(tmp_path)), 7, CONFIG, NOW, state=".cleaned")
    add(segment, 7, NOW)
    segment.close_indexes()
    segment.change_state(".swap")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00000000000000000007.index.swap",
        "00000000000000000007.log.swap",
        "00000000000000000007.timeindex.swap",
    ]
    segment.change_state("")
    assert segment.find_batch(7) is not None
    assert (tmp_path / "00000000000000000007.log").exists()


def test_files_of_an_earlier_life_are_emptied(tmp_path: Path):
    for suffix in ("log", "index", "timeindex", "txnindex"):
        (tmp_path / f"00000000000000000003.{suffix}").write_bytes(b"x" * 100)
    segment = new_segment(tmp_path, 3)
    assert segment.size_bytes == 0
    assert len(segment.txn_index) == 0
    assert {path.stat().st_size for path in tmp_path.iterdir()} == {0}


def test_when_the_log_was_written(tmp_path: Path):
    segment = new_segment(tmp_path)
    segment.file.directory.storage.disk.set_modified(segment.file.path, 123_456)
    assert segment.modified_ms() == 123_456
