"""The sink without Spark: tasks and the driver's part, against a broker in this process."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ottla.testing
from ottla.client.blocking import BlockingClient
from ottla.client.errors import ResponseError
from ottla.client.partitioner import partition_of_key
from ottla.client.row_batches import UNNAMED
from ottla.client.topics import NewTopic, create
from ottla.client.transactions import end
from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import read_options
from ottla.spark.sink import row_writer, writers
from ottla.spark.sink.columns import HEADERS, Columns, piece_of
from ottla.spark.sink.digest import Digest
from ottla.spark.sink.exactly_once import Task, read_markers
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.row_writer import TaskRows, write_all
from ottla.spark.sink.transaction_end import abort_all
from ottla.spark.sink.writers import StreamWriter
from tests.unit.spark.sinks import VALUE_ONLY, Sink

# --- columns and options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "sentence"),
    [
        ({"key": "string"}, "column value: it is required"),
        ({"value": "int"}, "column value: its type is int, but must be string or binary"),
        ({"value": "string", "offset": "bigint"}, "column offset: unknown"),
        ({"value": "string", "partition": "bigint"}, "column partition: its type is bigint, but must be int"),
        ({"value": "string", "headers": HEADERS}, "column headers: it needs includeHeaders=true"),
    ],
)
def test_columns_that_cannot_be_written(types: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaSparkError) as caught:
        Columns.of(types, has_topic_option=True, include_headers=False)
    assert str(caught.value).startswith(sentence)


def test_a_topic_has_to_come_from_somewhere() -> None:
    with pytest.raises(OttlaSparkError, match="option topic: set it, or add a column topic to the query"):
        Columns.of({"value": "string"}, has_topic_option=False, include_headers=False)
    assert Columns.of({"value": "string", "topic": "string"}, has_topic_option=False, include_headers=False).topic


HEADER_LISTS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ALL = Columns(key=True, topic=True, partition=True, headers=True)


def table(**changes: Any) -> pa.RecordBatch:
    """Two rows with all columns, or others."""
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(["v", None], pa.string()),
            "key": pa.array([b"k", None], pa.binary()),
            "topic": pa.array(["b", "a"]),
            "partition": pa.array([3, None], pa.int32()),
            "headers": pa.array([[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None], HEADER_LISTS),
            **changes,
        }
    )


def test_rows_have_what_their_columns_say() -> None:
    piece = piece_of(table(), ALL, "")
    assert piece.partitions is not None
    (keys, values, headers), named = piece.rows, piece.partitions.tolist()
    assert [(keys.cell(row), values.cell(row), headers.cell(row)) for row in (0, 1)] == [
        (b"k", b"v", [("h", b"x"), ("h", None)]),
        (None, None, []),
    ]
    assert named == [3, UNNAMED]
    assert {name: places.tolist() for name, places in piece.topics} == {"b": [0], "a": [1]}
    assert [(name, places.tolist()) for name, places in piece_of(table(), ALL, "other").topics] == [("other", [0, 1])]


def test_rows_of_large_types() -> None:
    rows = piece_of(
        table(value=pa.array(["v", None], pa.large_string()), key=pa.array([b"k", b""], pa.large_binary())), ALL, "t"
    ).rows
    assert [(rows.keys.cell(row), rows.values.cell(row)) for row in (0, 1)] == [(b"k", b"v"), (b"", None)]


def test_a_row_without_a_topic() -> None:
    with pytest.raises(OttlaSparkError, match="column topic: it is null in a row"):
        piece_of(table(topic=pa.array(["a", None], pa.string())), ALL, "")


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"x"}])
def test_a_header_without_a_key(header: Any) -> None:
    with pytest.raises(OttlaSparkError, match="column headers: a header has no key"):
        piece_of(table(headers=pa.array([None, [header]], HEADER_LISTS)), ALL, "t")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kafka.acks": "2"}, "option kafka.acks: '2' is not one of all, -1, 1, 0"),
        ({"kafka.acks": "1", "exactlyOnce": "true"}, "option kafka.acks: exactlyOnce needs all"),
        ({"kafka.compression.type": "rar"}, "option kafka.compression.type: 'rar' is not one of"),
        ({"writeId": "w"}, "option writeId: it needs exactlyOnce=true"),
        ({"kafka.key.serializer": "x"}, "option kafka.key.serializer: cast the key"),
        ({"exactlyonce.onahed": "skip"}, "unknown option exactlyonce.onahed: did you mean exactlyOnce.onAhead?"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaSparkError) as caught:
        read_options(SinkOptions, {"kafka.bootstrap.servers": "h:1", **options})
    assert str(caught.value).startswith(sentence)


def test_batches_and_streams_are_known_by_different_names() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "exactlyOnce": "true"}
    with pytest.raises(OttlaSparkError, match="option exactlyOnce: a batch query needs writeId"):
        read_options(SinkOptions, given).for_batch()
    with pytest.raises(OttlaSparkError, match="option writeId: it is for batch queries"):
        read_options(SinkOptions, {**given, "writeId": "w"}).for_stream()


# --- writing ----------------------------------------------------------------------------------------------------------


def format_with_version_1(directory: Path) -> None:
    """A cluster of transaction version 1, in which the coordinator is told of partitions first."""
    command = [sys.executable, "-m", "ottla", "storage", "format", "--data", str(directory)]
    subprocess.run([*command, "--feature", "transaction.version=1"], check=True, capture_output=True)


@pytest.fixture(scope="module", params=[2, 1], ids=["tv2", "tv1"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("data")
    if request.param == 1:
        format_with_version_1(directory)
    with ottla.testing.broker(directory=directory) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def client(servers: str) -> Iterator[BlockingClient]:
    with BlockingClient(servers, allow_auto_create_topics=True) as client:
        yield client


@pytest.fixture
def topic(client: BlockingClient, request: pytest.FixtureRequest) -> str:
    name = request.node.name.translate(str.maketrans("[]", "--"))
    client.call(create, NewTopic(name, 3))
    return str(name)


MakeSink = Callable[..., Sink]


@pytest.fixture
def sink(client: BlockingClient, servers: str, topic: str) -> MakeSink:
    def make(**options: str) -> Sink:
        return Sink(client, servers, topic, **options)

    return make


def test_at_least_once(sink: MakeSink, client: BlockingClient) -> None:
    one = sink(exactlyOnce="false")
    batch = pa.RecordBatch.from_pydict({"value": ["a", "b"]})
    write_all(client, one.options, TaskRows([batch], VALUE_ONLY, one.topic), None)
    assert one.committed() == ["a", "b"]


def test_keys_go_where_java_sends_them(sink: MakeSink, client: BlockingClient) -> None:
    one = sink(exactlyOnce="false")
    keys = [b"alice", b"bob", b"carol", b"dave"]
    batch = pa.RecordBatch.from_pydict({"value": [key.decode() for key in keys], "key": pa.array(keys, pa.binary())})
    write_all(client, one.options, TaskRows([batch], VALUE_ONLY._replace(key=True), one.topic), None)
    placed = {row["key"]: row["partition"] for row in one.rows()}
    assert placed == {key: partition_of_key(key, 3) for key in keys}


def test_nothing_is_seen_before_the_driver_commits(sink: MakeSink) -> None:
    one = sink()
    prepared = [one.task(["a"]), one.task(["b", "c"], partition_id=1)]
    assert one.committed() == []
    one.commit(*prepared)
    assert one.committed() == ["a", "b", "c"]


def test_tasks_of_later_batches_do_not_wait_for_each_other(sink: MakeSink) -> None:
    one = sink()
    for batch_id in range(3):
        one.commit(*(one.task([f"{batch_id}{part}"], batch_id=batch_id, partition_id=part) for part in range(2)))
    assert one.committed() == ["00", "01", "10", "11", "20", "21"]


def test_fewer_tasks_after_a_partial_commit(sink: MakeSink, client: BlockingClient) -> None:
    one = sink()
    prepared = [one.task([value], partition_id=number) for number, value in enumerate(["a", "", "b"])]
    assert prepared[2].identity is not None
    client.call(end, prepared[2].identity, commit=True)  # and then the driver dies
    again = [one.task(["a"]), one.task(["b"], partition_id=1)]
    with pytest.raises(OttlaSparkError, match="batch 0 was partly committed with other tasks: task 2 has written"):
        one.commit(*again)
    abort_all(client, again)
    assert one.committed() == ["b"]


def test_a_failed_task_is_written_by_its_next_attempt_alone(sink: MakeSink) -> None:
    one = sink()
    one.task(["a", "b"])
    again = one.task(["a", "b"])
    one.commit(again)
    assert one.committed() == ["a", "b"]


def test_the_driver_dies_between_two_commits(sink: MakeSink) -> None:
    one = sink()
    first, second = one.task(["a"], batch_id=3), one.task(["b"], batch_id=3, partition_id=1)
    one.commit(first)
    del second  # the driver is gone with it
    again = [one.task(["a"], batch_id=3), one.task(["b"], batch_id=3, partition_id=1)]
    assert [each.identity is None for each in again] == [True, False]
    one.commit(*again)
    assert one.committed() == ["a", "b"]


def test_the_driver_dies_after_all_commits(sink: MakeSink) -> None:
    one = sink()
    one.commit(one.task(["a"], batch_id=7))
    again = one.task(["a"], batch_id=7)
    assert again.identity is None
    assert again.rows == 1
    one.commit(again)
    assert one.committed() == ["a"]


def test_a_commit_whose_answer_was_lost(sink: MakeSink) -> None:
    one = sink()
    prepared = one.task(["a"])
    one.commit(prepared)
    one.commit(prepared)
    assert one.committed() == ["a"]


def test_abort_after_a_failed_commit(sink: MakeSink, client: BlockingClient) -> None:
    one = sink()
    first, second = one.task(["a"]), one.task(["b"], partition_id=1)
    one.commit(first)
    abort_all(client, [first, second])
    assert one.committed() == ["a"]


def test_two_drivers_on_one_checkpoint(sink: MakeSink) -> None:
    one, other = sink(), sink()
    prepared = one.task(["a"])
    rival = other.task(["a"])
    with pytest.raises(OttlaSparkError, match="the transaction of task 0 in batch 0 was ended by somebody else"):
        one.commit(prepared)
    other.commit(rival)
    assert one.committed() == ["a"]


def test_input_that_is_not_deterministic(sink: MakeSink) -> None:
    one = sink()
    one.commit(one.task(["a"]))
    with pytest.raises(OttlaSparkError, match="batch 0 was partly committed with other rows: task 0 has written 1"):
        one.task(["A"])
    with pytest.raises(OttlaSparkError, match="and now has 2 rows or others"):
        one.task(["a", "b"])


def test_a_sink_that_is_ahead_of_its_checkpoint(sink: MakeSink) -> None:
    one = sink()
    one.commit(one.task(["a"], batch_id=5))
    with pytest.raises(OttlaSparkError, match="ahead of the checkpoint: task 0 has written batch 5 already"):
        one.task(["a"], batch_id=3)
    assert sink(**{"exactlyOnce.onAhead": "skip"}).task(["old"], batch_id=3).identity is None
    assert one.committed() == ["a"]


def test_a_marker_that_has_expired(sink: MakeSink) -> None:
    one = sink()
    one.commit(one.task(["b"], batch_id=4, partition_id=1))
    with pytest.raises(OttlaSparkError, match="the marker of task 0 is gone from group ottla-sink-"):
        one.task(["a"], batch_id=5)
    assert sink(onMissingMarker="warn").task(["a"], batch_id=5).identity is not None


def test_a_task_that_is_new_needs_no_marker(sink: MakeSink) -> None:
    one = sink()
    one.commit(one.task(["a"], batch_id=4))
    assert one.task(["b"], batch_id=5, partition_id=1).identity is not None


def test_an_empty_task_leaves_a_marker(sink: MakeSink, client: BlockingClient) -> None:
    one = sink()
    one.commit(one.task([], batch_id=2))
    markers = read_markers(client, one.options, f"q-{one.topic}")
    assert {number: each.offset for number, each in markers.items()} == {0: 3}


def test_more_tasks_than_the_marker_topic_has_partitions(sink: MakeSink) -> None:
    one = sink(markerTopic=f"markers-{sink().topic}")
    one.commit(one.task(["a"]), one.task(["b"], partition_id=70))
    assert one.committed() == ["a", "b"]


def test_many_rows_are_written_in_rounds(sink: MakeSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writer, "ROUND_BYTES", 100)
    one = sink()
    values = [f"{number:03}" for number in range(50)]
    one.commit(one.task(values))
    assert one.committed() == values


def test_rows_are_read_while_others_are_on_their_way(
    sink: MakeSink, client: BlockingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_reading = threading.Event()
    send = row_writer._send

    async def send_later(*arguments: Any) -> None:
        assert is_reading.wait(timeout=30), "nobody reads on before the first rows are acknowledged"
        await send(*arguments)

    def batches() -> Iterator[pa.RecordBatch]:
        yield values("a")
        is_reading.set()
        yield values("b")

    monkeypatch.setattr(row_writer, "_send", send_later)
    monkeypatch.setattr(row_writer, "ROUND_BYTES", 1)
    one = sink(exactlyOnce="false")
    write_all(client, one.options, TaskRows(batches(), VALUE_ONLY, one.topic), None)
    assert one.committed() == ["a", "b"]


def test_bytes_bound_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["x" * 6] * 5})
    monkeypatch.setattr(row_writer, "ROUND_BYTES", batch.nbytes // 2)
    sizes = [len(piece.rows.values.length) for piece in TaskRows([batch], VALUE_ONLY, "t")]
    assert sizes == [2, 2, 1]


def test_all_columns_are_written(sink: MakeSink, client: BlockingClient) -> None:
    one = sink(exactlyOnce="false")
    rows = table(topic=pa.array([one.topic] * 2), partition=pa.array([2, None], pa.int32()))
    write_all(client, one.options, TaskRows([rows], ALL, ""), None)
    found = {row["key"]: (row["value"], row["partition"]) for row in one.rows()}
    assert found[b"k"] == (b"v", 2)
    assert found[None][0] is None


def test_a_partition_that_is_not_there(sink: MakeSink, client: BlockingClient) -> None:
    one = sink(exactlyOnce="false")
    rows = TaskRows([table(partition=pa.array([-1, None], pa.int32()))], ALL, one.topic)
    with pytest.raises(ResponseError, match=r"UNKNOWN_TOPIC_OR_PARTITION .*the topic has 3 partitions"):
        write_all(client, one.options, rows, None)


def test_rows_without_a_key_are_spread_evenly(sink: MakeSink, client: BlockingClient) -> None:
    one = sink(exactlyOnce="false", **{"kafka.batch.size": "500"})
    batches = [pa.RecordBatch.from_pydict({"value": ["x" * 49] * 30})] * 4
    write_all(client, one.options, TaskRows(batches, VALUE_ONLY, one.topic), None)
    assert Counter(row["partition"] for row in one.rows()) == {0: 40, 1: 40, 2: 40}


def digest(*batches: pa.RecordBatch, columns: Columns = ALL, topic: str = "") -> Digest:
    return TaskRows(batches, columns, topic).read_on()


def values(*given: str | None) -> pa.RecordBatch:
    return one_column(pa.array(given, pa.string()))


def one_column(values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": values})


@pytest.mark.parametrize(
    "other",
    [
        table(value=pa.array(["w", None], pa.string())),
        table(value=pa.array(["v", ""], pa.string())),
        table(key=pa.array([None, b"k"], pa.binary())),
        table(topic=pa.array(["a", "b"])),
        table(partition=pa.array([3, 0], pa.int32())),
        table(headers=pa.array([[{"key": "h", "value": b"x"}], None], HEADER_LISTS)),
        table(value=pa.array([None, "v"], pa.string())),
    ],
)
def test_digests_tell_rows_apart(other: pa.RecordBatch) -> None:
    assert digest(table()) == digest(table())
    assert digest(table()) != digest(other)
    assert digest(table()).rows == digest(other).rows == 2


def test_digests_tell_where_values_and_topics_end() -> None:
    def of(*given: str, topic: str = "t") -> Digest:
        return digest(values(*given), columns=VALUE_ONLY, topic=topic)

    assert of("ab", "c") != of("a", "bc")
    assert of("a", topic="t") != of("a", topic="u")


def test_it_does_not_matter_how_rows_are_cut_into_batches() -> None:
    rows = pa.Table.from_batches([table(), table()]).combine_chunks().to_batches()[0]
    assert digest(rows) == digest(table(), table()) == digest(rows.slice(0, 1), rows.slice(1, 0), rows.slice(1))


def test_bytes_under_a_null_do_not_count() -> None:
    hidden = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 3, 4], np.int32)), pa.py_buffer(b"xyzv")]
    )
    assert hidden.to_pylist() == [None, "v"]
    both = [digest(each, columns=VALUE_ONLY, topic="t") for each in (one_column(hidden), values(None, "v"))]
    assert both[0] == both[1]


# --- what Spark tells its tasks ---------------------------------------------------------------------------------------


class FakeContext:
    """A task of Spark's, by its properties."""

    def __init__(self, **properties: str) -> None:
        self._properties = {name.replace("_", "."): value for name, value in properties.items()}

    def getLocalProperty(self, key: str) -> str | None:
        return self._properties.get(key)

    def partitionId(self) -> int:
        return 2


def exact_task(monkeypatch: pytest.MonkeyPatch, context: FakeContext, **options: str) -> Task:
    monkeypatch.setattr(writers, "_task_context", lambda: context)
    given = {"kafka.bootstrap.servers": "h:1", "topic": "t", "exactlyOnce": "true", **options}
    return StreamWriter(read_options(SinkOptions, given), VALUE_ONLY)._exact_task()


IN_QUERY = {"sql_streaming_queryId": "q", "streaming_sql_batchId": "7"}


def test_a_task_knows_its_query_and_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exact_task(monkeypatch, FakeContext(**IN_QUERY)) == Task("q", 7, 2)


def test_a_task_without_a_query_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OttlaSparkError, match="Spark does not provide the query and batch of a task"):
        exact_task(monkeypatch, FakeContext(sql_streaming_queryId="q"))


def test_speculation_is_refused_unless_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    context = FakeContext(**IN_QUERY, spark_speculation="true")
    with pytest.raises(OttlaSparkError, match=r"option exactlyOnce: spark\.speculation is on"):
        exact_task(monkeypatch, context)
    assert exact_task(monkeypatch, context, allowSpeculation="true") == Task("q", 7, 2)
    assert exact_task(monkeypatch, FakeContext(**IN_QUERY, spark_speculation="false")) == Task("q", 7, 2)
