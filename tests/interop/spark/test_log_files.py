"""Topics from the files of a broker: directories that ottla and Apache Kafka have written.

What is compared is always what the network source reads of the same topic.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as f

from ottla.spark import explain_error
from ottla.spark.log.options import LogOptions
from ottla.spark.log.readers import LogReader
from ottla.spark.options import read_options
from ottla.wire.batch import Compression
from tests.interop.spark.conftest import Broker
from tests.interop.spark.queries import Queries, Row, Stream, plain, until
from tests.interop.spark.topics import TIME_MS, Topics, batch, numbered
from tests.interop.spark.transactions import in_transaction

LOG = "ottla-log"
OFFSET = 4
# The tests' records are old.
FOR_EVER = {"retention_ms": -1}
SMALL_SEGMENTS = {"segment_bytes": 1 << 20, **FOR_EVER}


class Files:
    """Reads a directory with `ottla-log`."""

    def __init__(self, spark: Any, path: Path | str) -> None:
        self.spark = spark
        self.path = path

    def frame(self, topic: str = "", **options: object) -> Any:
        given = {"path": str(self.path), **({"topic": topic} if topic else {}), **options}
        return self.spark.read.format(LOG).options(**{name: str(value) for name, value in given.items()}).load()

    def rows(self, topic: str = "", **options: object) -> list[Row]:
        found = [plain(row) for row in self.frame(topic, **options).collect()]
        return sorted(found, key=lambda row: (row[2], row[3], row[4]))

    def offsets(self, topic: str = "", **options: object) -> list[int]:
        return [row[OFFSET] for row in self.rows(topic, **options)]

    def refusal(self, topic: str = "", **options: object) -> str:
        with pytest.raises(Exception) as raised:  # noqa: PT011  (any of Spark's)
            self.frame(topic, **options).collect()
        return explain_error(raised.value)

    def tasks(self, topic: str, **options: object) -> list[Any]:
        given = {"path": str(self.path), "topic": topic, **options}
        reader = LogReader(read_options(LogOptions, {name: str(value) for name, value in given.items()}))
        return [each.value for each in reader.partitions()]


@pytest.fixture
def files(spark: Any, broker: Broker) -> Files:
    return Files(spark, broker.data_dir)


def copied(files: Files, topic: str, directory: Path, *, partition: int = 0) -> tuple[Files, Path]:
    """The directory of a partition at another place, to be damaged there. The broker runs, and may replace files."""
    target = directory / f"{topic}-{partition}"
    shutil.copytree(Path(files.path) / target.name, target, ignore=shutil.ignore_patterns("*.tmp"))
    return Files(files.spark, directory), target


def segments(directory: Path, suffix: str = ".log") -> list[Path]:
    return sorted(directory.glob(f"*{suffix}"))


def many_segments(topics: Topics, count: int = 40, **settings: object) -> str:
    """A topic of one partition: batches of 100 KB with ten records each and rising times, in segments of 1 MiB."""
    name = topics.create(**SMALL_SEGMENTS, **settings)
    fill_segments(topics, name, count)
    return name


def fill_segments(topics: Topics, name: str, count: int) -> None:
    for number in range(count):
        topics.put(name, 0, numbered(10, first=number * 10, size=10_000))


# --- 62 ---------------------------------------------------------------------------------------------------------------


def test_rows_of_files_are_those_of_the_network(any_spark: Any, broker: Broker, topics: Topics, tmp_path: Path):
    queries, files = Queries(any_spark, broker.bootstrap_servers, tmp_path), Files(any_spark, broker.data_dir)
    name = topics.create(partitions=2)
    for codec in Compression:
        topics.put(name, 0, numbered(30, first=codec * 30, size=200, compression=codec))
    topics.put(name, 1, batch([(None, b"v"), (b"k", None), (b"h", b"", TIME_MS, [("a", b"1"), ("a", None)])]))
    extra = {"includeHeaders": True, "includeLeaderEpoch": True, "includeTopicId": True}
    assert files.frame(name, **extra).schema == queries.frame(name, **extra).schema
    rows = files.rows(name, **extra)
    assert len(rows) == 153
    assert rows == queries.rows(name, **extra)
    assert files.rows(f"{name},", startingOffsets=f'{{"{name}":{{"0":12,"1":-2}}}}') == rows_without(rows, 12)


def rows_without(rows: list[Row], offset: int) -> list[Row]:
    return [row[:7] for row in rows if row[3] != 0 or row[OFFSET] >= offset]


def test_rows_of_transactions_are_those_of_the_network(files: Files, queries: Queries, topics: Topics):
    name = topics.create()
    for end in ("committed", "aborted", "committed", "aborted"):
        in_transaction(topics, name, 20, end=end)
    still_open = in_transaction(topics, name, 7, end="open")
    for isolation, count in (("read_uncommitted", 87), ("read_committed", 40)):
        rows = files.rows(name, isolation=isolation)
        assert len(rows) == count
        assert rows == queries.rows(name, isolationLevel=isolation)
    still_open.abort_transaction(30)
    assert len(files.rows(name, isolation="read_committed")) == 40


def test_files_of_a_stopped_and_of_a_killed_broker(spark: Any, boot: Callable[..., Broker], tmp_path: Path):
    broker = boot()
    topics = Topics(broker.bootstrap_servers)
    name = topics.create(partitions=2)
    topics.fill(name, 0, 100)
    topics.fill(name, 1, 50)
    in_transaction(topics, name, 5, end="aborted")
    expected = Queries(spark, broker.bootstrap_servers, tmp_path).rows(name, isolationLevel="read_committed")
    topics.close()
    broker.stop()
    files = Files(spark, broker.data_dir)
    assert files.rows(name, isolation="read_committed") == expected
    broker.start()
    topics = Topics(broker.bootstrap_servers)
    topics.fill(name, 1, 7)
    topics.close()
    broker.kill()
    assert len(files.rows(name, isolation="read_committed")) == len(expected) + 7


def test_topics_by_path_pattern_and_id(files: Files, topics: Topics):
    name = topics.create(partitions=2)
    topics.fill(name, 0, 3)
    topics.fill(name, 1, 4)
    rows = files.rows(name)
    (topic_id,) = {row[-1] for row in files.rows(name, includeTopicId=True)}
    assert files.rows(topicId=topic_id) == rows
    assert files.rows(topicPattern=f"{name[:-2]}..") == rows
    assert files.rows(name, partitions=1) == rows[3:]
    assert Files(files.spark, f"{files.path}/{name}-1").rows() == rows[3:]
    assert Files(files.spark, f"file://{files.path}").rows(name) == rows
    assert files.frame(name).where(f.col("partition") == 0).count() == 3
    assert "does not exist" in files.refusal("no-such-topic")
    assert Files(files.spark, "/no/such/directory").refusal() == "option path: /no/such/directory does not exist"
    assert files.refusal(name, startingOffset="earliest").startswith("unknown option startingoffset: did you mean")


# --- 63 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tear", ["cut", "zeros", "checksum"])
def test_a_torn_end_ends_the_partition(files: Files, topics: Topics, tmp_path: Path, tear: str):
    name = many_segments(topics)
    copy, directory = copied(files, name, tmp_path)
    last = segments(directory)[-1]
    data = last.read_bytes()
    size = len(data)
    if tear == "cut":
        last.write_bytes(data[:-20])
    elif tear == "zeros":
        last.write_bytes(data[: size - 20] + bytes(500))
    else:
        last.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    assert copy.offsets(name) == list(range(390))


@pytest.mark.parametrize("on_corrupt", ["fail", "skipSegment", "stopPartition"])
def test_a_bad_checksum_in_the_middle(files: Files, topics: Topics, tmp_path: Path, on_corrupt: str):
    name = many_segments(topics)
    copy, directory = copied(files, name, tmp_path)
    damaged = segments(directory)[1]
    next_base = int(segments(directory)[2].stem)
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    if on_corrupt == "fail":
        said = copy.refusal(name)
        assert said.startswith(f"corrupt record batch in {damaged} at byte ")
        return
    found = copy.offsets(name, onCorrupt=on_corrupt)
    before = [offset for offset in found if offset < next_base]
    assert int(damaged.stem) < len(before) < next_base
    assert before == list(range(len(before)))
    assert found[len(before) :] == (list(range(next_base, 400)) if on_corrupt == "skipSegment" else [])


# --- 64 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["missing", "stale", "preallocated"])
def test_indexes_are_only_hints(files: Files, topics: Topics, tmp_path: Path, index: str):
    name = many_segments(topics)
    expected = files.rows(name)
    copy, directory = copied(files, name, tmp_path)
    for path in [*segments(directory, ".index"), *segments(directory, ".timeindex")]:
        entries = path.read_bytes().rstrip(b"\0")
        width = 8 if path.suffix == ".index" else 12
        whole = path.read_bytes()[: -(-len(entries) // width) * width]
        if index == "missing":
            path.unlink()
        else:
            path.write_bytes(whole[: len(whole) // width // 2 * width] if index == "stale" else whole + bytes(4800))
    assert copy.rows(name) == expected
    assert copy.rows(name, maxBytesPerPartition=300_000) == expected
    start = TIME_MS + 205 * 1000
    assert copy.offsets(name, startingTimestamp=start) == list(range(205, 400))


# --- 65 ---------------------------------------------------------------------------------------------------------------


def test_times_leave_out_segments(files: Files, queries: Queries, topics: Topics):
    name = many_segments(topics, 60)
    everything = files.tasks(name)
    start, end = TIME_MS + 250 * 1000, TIME_MS + 300 * 1000
    tasks = files.tasks(name, startingTimestamp=start, endingTimestamp=end)
    assert len(everything) > 4
    assert len(tasks) == 1
    assert [piece.from_offset for piece in tasks[0].pieces] == [250]
    assert files.rows(name, startingTimestamp=start, endingTimestamp=end) == queries.rows(
        name, startingTimestamp=start, endingTimestamp=end
    )
    later = f.col("timestamp") >= f.timestamp_millis(f.lit(start))
    assert files.frame(name).where(later).count() == 350
    assert files.frame(name, pushdown=False).where(later).count() == 350


# --- 66 ---------------------------------------------------------------------------------------------------------------


def test_an_abort_in_a_later_segment(files: Files, queries: Queries, topics: Topics):
    name = topics.create(**SMALL_SEGMENTS)
    producer = in_transaction(topics, name, 10, end="open")
    fill_segments(topics, name, 30)
    producer.abort_transaction(30)
    topics.fill(name, 0, 5)
    assert len(segments(Path(files.path) / f"{name}-0")) > 2
    rows = files.rows(name, isolation="read_committed")
    assert len(rows) == 305
    assert rows == queries.rows(name, isolationLevel="read_committed")
    first = files.frame(name, isolation="read_committed").where(f.col("offset") < 10)
    assert first.count() == 0


# --- 67 ---------------------------------------------------------------------------------------------------------------


def test_log_start_above_the_first_segment(spark: Any, boot: Callable[..., Broker], tmp_path: Path):
    broker = boot(log_flush_start_offset_checkpoint_interval_ms=100)
    topics = Topics(broker.bootstrap_servers)
    name = topics.create(**FOR_EVER)
    for number in range(4):
        topics.fill(name, 0, 25, first=number * 25)
    topics.cut(name, 0, 33)
    topics.close()
    broker.stop()
    assert Files(spark, broker.data_dir).offsets(name) == list(range(33, 100))


# --- streams ----------------------------------------------------------------------------------------------------------


def stream_of(files: Files, queries: Queries, topic: str, **options: object) -> Stream:
    given = {"path": files.path, "topic": topic, "startingOffsets": "earliest", **options}
    return Stream(queries, LOG, {name: str(value) for name, value in given.items()})


def test_a_stream_follows_the_files(files: Files, queries: Queries, topics: Topics):
    name = topics.create(partitions=2)
    topics.fill(name, 0, 20)
    stream = stream_of(files, queries, name, maxOffsetsPerTrigger=8)
    progress = stream.run()
    assert sum(batch["numInputRows"] for batch in progress) == 20
    assert len([batch for batch in progress if batch["numInputRows"]]) == 3
    query = stream.start()
    # Looking at rows is work for Spark, too, and may keep the source's process from starting in time.
    until(lambda: not query.status["message"].startswith("Initializing"), "the stream's start")
    topics.fill(name, 0, 5, first=20)
    topics.fill(name, 1, 4)
    rows = stream.await_rows(29, query)
    query.stop()
    assert rows == queries.rows(name)
    topics.fill(name, 1, 3, first=4)
    stream.run()
    assert stream.rows() == queries.rows(name)


def test_a_stream_notices_that_a_topic_was_made_anew(files: Files, queries: Queries, topics: Topics):
    name = topics.create()
    topics.fill(name, 0, 5)
    stream = stream_of(files, queries, name)
    stream.run()
    topics.delete(name)
    topics.create(name)
    topics.fill(name, 0, 9)
    assert stream.failure(stream.start(available_now=True)).startswith(f"data lost: topic {name} was recreated")
    stream.run(failOnDataLoss=False)
    assert len(stream.rows()) == 14


def test_compacted_logs_have_holes(files: Files, queries: Queries, topics: Topics):
    name = topics.create(cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, **SMALL_SEGMENTS)
    directory = Path(files.path) / f"{name}-0"
    for _ in range(40):
        topics.put(name, 0, batch([(b"k%d" % n, b"v" * 10_000, TIME_MS) for n in range(10)]))
    until(lambda: sum(path.stat().st_size for path in segments(directory)) < 3_000_000, "compaction", timeout_s=60)
    # Compaction may go on between two reads, until nothing is left to do.
    until(lambda: files.rows(name) == queries.rows(name), "both sources to give the same rows", timeout_s=60)
    assert 10 <= len(files.rows(name)) < 300
