"""The format `ottla-log` without a JVM: its options, which partitions they choose, plans, streams and rows."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual

from ottla.log.names import CLEAN_SHUTDOWN_FILE, TopicPartition
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.options import LogOptions, with_paths
from ottla.spark.log.readers import LogPushdownReader, LogReader, LogStreamReader
from ottla.spark.log.source import LogDataSource
from ottla.spark.options import read_options
from ottla.wire import uuid_text
from tests.unit.log.logs import NOW, TOPIC_ID, open_partition
from tests.unit.spark.log_directories import append, close_cleanly, filled, flip, new_directory, segment_file

INTERNAL = "__consumer_offsets"


def options(path: Path | str, **given: object) -> LogOptions:
    return read_options(LogOptions, {"path": str(path), **{name.lower(): str(value) for name, value in given.items()}})


def offsets(reader: Any, partitions: list[Any] | None = None) -> list[int]:
    # Reading happens in another process, so the reader travels.
    travelled = pickle.loads(pickle.dumps(reader))
    found: list[int] = []
    for partition in reader.partitions() if partitions is None else partitions:
        for batch in travelled.read(pickle.loads(pickle.dumps(partition))):
            found += batch.column("offset").to_pylist()
    return found


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"path": ""}, "option path: it is empty"),
        ({"topic": "a", "topicId": "AAECAwQFBgcICQoLDA0ODw"}, "options topic, topicPattern, topicId: give at most one"),
        ({"topicId": "short"}, "option topicId: 'short' is not a topic id; topic ids have 22 characters, such as"),
        ({"topicPattern": "("}, "option topicPattern: '(' is not an RE2 pattern: "),
        ({"partitions": "1,x"}, "option partitions: 'x' is not a partition number; write 0,3,5-8"),
        ({"maxBytesPerPartition": "0"}, "option maxBytesPerPartition: '0' is not a size; write 134217728 or 128m"),
        ({"onCorrupt": "ignore"}, "option onCorrupt: 'ignore' is not one of fail, skipSegment, stopPartition"),
        ({"upTo": "lso"}, "option upTo: 'lso' is not one of end, hw"),
        ({"isolation": "committed"}, "option isolation: 'committed' is not one of read_uncommitted, read_committed"),
        ({"isolationLevel": "read_committed"}, "unknown option isolationLevel: did you mean isolation?"),
    ],
)
def test_a_bad_option_is_named(given: dict[str, str], reason: str):
    with pytest.raises(OttlaSparkError) as error:
        read_options(LogOptions, {"path": "/somewhere", **given})
    assert str(error.value).startswith(reason)


def test_a_path_is_required():
    with pytest.raises(OttlaSparkError, match=r"^option path: it is required"):
        read_options(LogOptions, {})


@pytest.mark.parametrize(("text", "size"), [("1024", 1024), ("64k", 65536), ("128m", 128 << 20), ("2 GiB", 2 << 30)])
def test_sizes_may_have_units(text: str, size: int):
    assert options("/x", maxBytesPerPartition=text).task_bytes == size


def test_lists_of_paths_and_partitions():
    assert options("/a,/b").paths == ("/a", "/b")
    assert read_options(LogOptions, with_paths({"paths": json.dumps(["/a", "/b"])})).paths == ("/a", "/b")
    assert options("/a", partitions="0,3,5-7").partitions == {0, 3, 5, 6, 7}


def test_words_are_taken_in_any_case():
    assert options("/x", onCorrupt="STOPPARTITION").on_corrupt == "stopPartition"


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({}, ["a", "b"]),
        ({"topic": "a"}, ["a"]),
        ({"topic": INTERNAL}, [INTERNAL]),
        ({"topicPattern": "[b_].*"}, ["b"]),
        ({"partitions": "1"}, []),
    ],
)
def test_which_topics_are_read(given: dict[str, str], chosen: list[str]):
    wanted = options("/logs", **given)
    assert [topic for topic in ("a", "b", INTERNAL) if wanted.is_wanted(TopicPartition(topic, 0))] == chosen


def test_an_internal_topic_is_read_if_its_directory_is_named():
    assert options(f"/logs/{INTERNAL}-0").is_wanted(TopicPartition(INTERNAL, 0))


# --- batches ----------------------------------------------------------------------------------------------------------


def test_the_columns_are_those_of_the_topic_source(tmp_path: Path):
    source = LogDataSource({"path": str(tmp_path), "includeheaders": "true"})
    assert source.name() == "ottla-log"
    assert source.schema().endswith("`timestampType` int, `headers` array<struct<key: string, value: binary>>")
    assert type(source.reader(None)) is LogPushdownReader  # type: ignore[arg-type]
    plain = LogDataSource({"path": str(tmp_path), "pushdown": "false"})
    assert type(plain.reader(None)) is LogReader  # type: ignore[arg-type]


def test_a_batch_reads_everything_between_its_ends(tmp_path: Path):
    filled(tmp_path)
    assert offsets(LogReader(options(tmp_path))) == list(range(20))
    start, end = '{"orders":{"0":4}}', '{"orders":{"0":9}}'
    assert offsets(LogReader(options(tmp_path, startingOffsets=start, endingOffsets=end))) == [4, 5, 6, 7, 8]
    times = LogReader(options(tmp_path, startingTimestamp=NOW + 50, endingTimestamp=NOW + 80))
    assert offsets(times) == [5, 6, 7]


def test_filters_narrow_the_plan(tmp_path: Path):
    filled(tmp_path)
    reader = LogPushdownReader(options(tmp_path))
    filters = [GreaterThanOrEqual(("offset",), 16), EqualTo(("partition",), 0)]
    assert list(reader.pushFilters(filters)) == filters
    assert offsets(reader) == [16, 17, 18, 19]


def test_an_empty_plan_has_no_rows(tmp_path: Path):
    from pyspark.sql.datasource import InputPartition

    filled(tmp_path, batches=0)
    reader = LogReader(options(tmp_path))
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_a_topic_that_is_not_there(tmp_path: Path):
    filled(tmp_path)
    with pytest.raises(OttlaSparkError, match=rf"^in {tmp_path} topic nothing does not exist$"):
        LogReader(options(tmp_path, topic="nothing")).partitions()
    missing = "B" * 22
    with pytest.raises(OttlaSparkError, match=f"a topic with the id {missing} does not exist$"):
        LogReader(options(tmp_path, topicId=missing)).partitions()


def test_offsets_that_were_deleted_are_data_loss(tmp_path: Path):
    filled(tmp_path, batches=9)
    segment_file(tmp_path, 0).unlink()
    given = {"startingOffsets": '{"orders":{"0":1}}'}
    with pytest.raises(OttlaSparkError, match=r"^data lost: topic orders partition 0: offsets 1\.\.2 were deleted"):
        LogReader(options(tmp_path, **given)).partitions()
    assert offsets(LogReader(options(tmp_path, failOnDataLoss="false", **given))) == [3, 4, 5, 6, 7, 8]


def test_of_replicas_the_longest_is_read(tmp_path: Path):
    filled(tmp_path / "one", batches=5)
    filled(tmp_path / "two", batches=8)
    assert offsets(LogReader(options(f"{tmp_path}/one,{tmp_path}/two"))) == list(range(8))


def test_two_topics_of_one_name_have_to_be_chosen_from(tmp_path: Path):
    filled(tmp_path / "one", batches=5)
    filled(tmp_path / "two", batches=8)
    other = bytes(15) + b"\x01"
    (tmp_path / "two" / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(other)}")
    paths = f"{tmp_path}/one,{tmp_path}/two"
    with pytest.raises(
        OttlaSparkError, match="contain different topics of the same name: choose one with the option topicId"
    ):
        LogReader(options(paths)).partitions()
    assert offsets(LogReader(options(paths, topicId=uuid_text(TOPIC_ID)))) == list(range(5))


def test_damage_is_one_sentence_in_the_task(tmp_path: Path):
    filled(tmp_path, batches=9)
    flip(segment_file(tmp_path, 3), 1500)
    with pytest.raises(OttlaSparkError, match=rf"^corrupt record batch in {tmp_path}/orders-0/0+3\.log at byte 1000: "):
        offsets(LogReader(options(tmp_path)))
    assert offsets(LogReader(options(tmp_path, onCorrupt="skipSegment"))) == [0, 1, 2, 3, 6, 7, 8]
    assert offsets(LogReader(options(tmp_path, onCorrupt="stopPartition"))) == [0, 1, 2, 3]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    filled(tmp_path, batches=3)
    reader = LogReader(options(tmp_path))
    partitions = reader.partitions()

    def refuse(path: str, *_flags: int) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(OttlaSparkError) as error:
        list(reader.read(partitions[0]))
    monkeypatch.undo()
    assert str(error.value) == f"{segment_file(tmp_path, 0)}: Permission denied"


# --- streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_takes_what_is_new(tmp_path: Path):
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    log = filled(tmp_path, batches=6, close=False)
    reader = LogStreamReader(options(tmp_path, startingOffsets="earliest"))
    start = reader.initialOffset()
    assert start["orders"] == {"0": 0}
    first = reader.latestOffset(start, ReadMaxRows(4))
    assert first["orders"] == {"0": 4}
    assert reader.reportLatestOffset() == {**start, "orders": {"0": 6}}
    assert offsets(reader, reader.partitions(start, first)) == [0, 1, 2, 3]
    append(log, 3)
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second["orders"] == {"0": 9}
    assert offsets(reader, reader.partitions(first, second)) == [4, 5, 6, 7, 8]
    assert reader.latestOffset(second, ReadAllAvailable()) == second
    # Another process repeats a batch after a restart.
    again = LogStreamReader(options(tmp_path, startingOffsets="earliest"))
    append(log, 2)
    assert offsets(again, again.partitions(first, second)) == [4, 5, 6, 7, 8]
    log.close()


def test_a_stream_finds_partitions_that_come_later(tmp_path: Path):
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    filled(tmp_path, batches=2)
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    reader = LogStreamReader(options(tmp_path))
    start = reader.initialOffset()
    assert start["orders"] == {"0": 2}
    new_directory(tmp_path)
    log = open_partition(tmp_path / "orders-1")
    append(log, 3)
    close_cleanly(tmp_path / "orders-1", log)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end["orders"] == {"0": 2, "1": 3}
    assert offsets(reader, reader.partitions(start, end)) == [0, 1, 2]
