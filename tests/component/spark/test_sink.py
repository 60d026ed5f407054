"""The sink without Spark: tasks and the driver's part, against a broker in this process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import ottla.testing
from ottla.client.blocking import BlockingClient
from ottla.client.partitioner import partition_of_key
from ottla.client.topics import NewTopic, create
from ottla.client.transactions import end
from ottla.spark.errors import OttlaSparkError
from ottla.spark.sink.exactly_once import read_markers
from ottla.spark.sink.record_writer import Records, write_all
from ottla.spark.sink.transaction_end import abort_all
from tests.unit.spark.sinks import VALUE_ONLY, Sink


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
    write_all(client, one.options, Records([batch], VALUE_ONLY, one.topic), None)
    assert one.committed() == ["a", "b"]


def test_keys_go_where_java_sends_them(sink: MakeSink, client: BlockingClient) -> None:
    one = sink(exactlyOnce="false")
    keys = [b"alice", b"bob", b"carol", b"dave"]
    batch = pa.RecordBatch.from_pydict({"value": [key.decode() for key in keys], "key": pa.array(keys, pa.binary())})
    write_all(client, one.options, Records([batch], VALUE_ONLY._replace(key=True), one.topic), None)
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
    monkeypatch.setattr("ottla.spark.sink.record_writer.ROUND_RECORDS", 7)
    one = sink()
    values = [f"{number:03}" for number in range(50)]
    one.commit(one.task(values))
    assert one.committed() == values
