"""Small batches of a stream are read while they are planned, and go to Spark with the plan."""

import io
import json
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import read_int, write_with_length
from pyspark.sql.streaming import python_streaming_source_runner as spark_runner
from pyspark.sql.types import StructType

from ottla.spark.offsets import SourceOffset, TopicPartition
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import JoinedTask, Task
from ottla.spark.topic.prefetch import MAX_BYTES, JoiningStreamReader, small_batch
from tests.unit.spark.fake_cluster import topic_options

SCHEMA = StructType().add("value", "binary")
ARROW_ROWS = 1000


def task(*sizes: int) -> JoinedTask:
    return JoinedTask(
        tuple(Task(TopicPartition("orders", number), None, 0, size, 1, 0) for number, size in enumerate(sizes))
    )


def rows(*values: bytes) -> Iterator[pa.RecordBatch]:
    for value in values:
        yield pa.record_batch({"value": pa.array([value], pa.binary())})


def found(tasks: list[JoinedTask], *values: bytes) -> list[bytes] | None:
    batches = small_batch(tasks, 10, lambda _: rows(*values))
    return None if batches is None else [each.column(0)[0].as_py() for each in batches]


def test_the_rows_of_one_small_task():
    assert found([task(2, 3)], b"a", b"b") == [b"a", b"b"]


@pytest.mark.parametrize("tasks", [[], [task(1), task(1)], [task(6, 5)]], ids=["none", "two tasks", "many records"])
def test_other_batches_are_left_to_tasks(tasks: list[JoinedTask]):
    assert found(tasks, b"a") is None


def test_large_records_are_left_to_a_task():
    half = bytes(MAX_BYTES // 2)
    assert found([task(2)], half, half) is None


def test_errors_are_left_to_a_task():
    def fail(_: JoinedTask) -> Iterator[pa.RecordBatch]:
        yield from rows(b"a")
        raise ConnectionError("the leader is away")

    assert small_batch([task(2)], 10, fail) is None


# --- what Spark makes of it -------------------------------------------------------------------------------------------


class Planned:
    """A plan with the same task for every batch."""

    def __init__(self, size: int) -> None:
        self.tasks = task(size).parts

    def tasks_between(self, start: SourceOffset, end: SourceOffset) -> Sequence[Task]:
        return self.tasks


class Reader(JoiningStreamReader[TopicOptions]):
    def __init__(self, size: int, *values: bytes) -> None:
        super().__init__(topic_options())
        self._made_plan = Planned(size)  # type: ignore[assignment]
        self.values = values

    def _rows(self, task: JoinedTask) -> Iterator[pa.RecordBatch]:
        return rows(*self.values)


def planned(reader: Reader) -> tuple[list[Any], int, bytes]:
    """What Spark's process on the driver sends to the JVM for a batch: partitions, and what it says of rows."""
    given, sent = io.BytesIO(), io.BytesIO()
    for offset in (0, 2):
        write_with_length(json.dumps({"orders": {"0": offset}}).encode(), given)
    given.seek(0)
    spark_runner.partitions_func(reader, None, SCHEMA, ARROW_ROWS, given, sent)  # type: ignore[arg-type]
    sent.seek(0)
    partitions = [pickle.loads(sent.read(read_int(sent))) for _ in range(read_int(sent))]
    return partitions, read_int(sent), sent.read()


def test_spark_sends_the_rows_with_the_plan():
    partitions, code, rest = planned(Reader(2, b"a", b"b"))
    assert [each.value for each in partitions] == [task(2)]
    assert code == spark_runner.NON_EMPTY_PYARROW_RECORD_BATCHES
    stream = pa.ipc.open_stream(rest[4:])  # after a marker
    assert [value.as_py() for batch in stream for value in batch.column(0)] == [b"a", b"b"]


def test_for_large_batches_spark_starts_tasks_in_python():
    _, code, rest = planned(Reader(5000, b"a"))
    assert (code, rest) == (spark_runner.PREFETCHED_RECORDS_NOT_FOUND, b"")


def test_between_batches_it_is_no_simple_reader():
    """Spark asks a simple reader neither for the ends of the logs nor for limits."""
    reader = Reader(1, b"a")
    planned(reader)
    assert reader.__class__ is Reader
