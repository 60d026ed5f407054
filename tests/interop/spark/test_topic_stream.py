"""Topics as a stream."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.client.errors import ResponseError
from ottla.client.group_offsets import committed
from ottla.client.metadata import TopicPartition
from ottla.spark.offsets import SourceOffset
from ottla.spark.options import read_options
from ottla.spark.topic.cluster import LiveCluster
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.stream_plan import StreamPlan
from ottla.wire.errors import ErrorCode
from tests.interop.apache import ApacheKafka, tool
from tests.interop.serving import OttlaServe
from tests.interop.spark.queries import SPARKS, Queries, Stream, progress_of, until
from tests.interop.spark.topics import Topics, new_name

Broker = ApacheKafka | OttlaServe
VALUE, TOPIC, PARTITION, OFFSET = range(1, 5)
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def offsets_of(progress: list[dict[str, Any]], which: str) -> list[dict[str, int]]:
    """Offsets by partition in each batch, without what only we note there."""
    found = [each["sources"][0][which] for each in progress if each["numInputRows"]]
    return [
        {f"{at.topic}-{at.partition}": n for at, n in SourceOffset.from_json(each).offsets.items()} for each in found
    ]


# --- topics come, grow and go -----------------------------------------------------------------------------------------


def test_topics_and_partitions_that_come_later_are_read_from_their_start(queries: Queries, topics: Topics):
    prefix = new_name("shop")
    first = topics.create(f"{prefix}-a")
    stream = queries.stream(subscribePattern=f"{prefix}-.*", startingOffsets="latest")
    query = stream.start()
    until(lambda: bool(query.lastProgress), "the first batch")
    topics.fill(first, 0, 3)
    stream.await_rows(3, query)
    second = topics.create(f"{prefix}-b")
    topics.fill(second, 0, 4)
    topics.grow(first, 2)
    topics.fill(first, 1, 5)
    rows = stream.await_rows(12, query)
    query.stop()
    assert [(row[TOPIC], row[PARTITION], row[OFFSET]) for row in rows] == [
        *((first, 0, each) for each in range(3)),
        *((first, 1, each) for each in range(5)),
        *((second, 0, each) for each in range(4)),
    ]


def gone_while_read(queries: Queries, topics: Topics, prefix: str, is_fatal: bool) -> tuple[str, Stream, Any]:
    """A stream over two topics of which the first was deleted."""
    lost, kept = topics.create(f"{prefix}-lost"), topics.create(f"{prefix}-kept")
    for name in (lost, kept):
        topics.fill(name, 0, 5)
    stream = queries.stream(subscribePattern=f"{prefix}-.*", startingOffsets="earliest", failOnDataLoss=is_fatal)
    stream.run()
    topics.delete(lost)
    topics.fill(kept, 0, 5)
    return lost, stream, stream.start(available_now=True)


def test_a_topic_is_deleted(queries: Queries, topics: Topics):
    lost, stream, query = gone_while_read(queries, topics, new_name("gone"), is_fatal=True)
    assert stream.failure(query).startswith(f"data lost: topic {lost} partition 0: it no longer exists")


def test_a_topic_is_deleted_and_that_is_allowed(queries: Queries, topics: Topics):
    _, stream, query = gone_while_read(queries, topics, new_name("gone"), is_fatal=False)
    assert query.awaitTermination(60)
    assert len(stream.rows()) == 15


@pytest.mark.parametrize("is_fatal", [True, False])
def test_a_topic_is_made_anew_with_more_records(queries: Queries, topics: Topics, is_fatal: bool):
    name = topics.create()
    topics.fill(name, 0, 5)
    stream = queries.stream(name, startingOffsets="earliest", failOnDataLoss=is_fatal)
    stream.run()
    topics.delete(name)
    until(lambda: _created_again(topics, name), "the topic")
    topics.fill(name, 0, 9, first=100)
    query = stream.start(available_now=True)
    if is_fatal:
        assert stream.failure(query).startswith(f"data lost: topic {name} was recreated")
        return
    assert query.awaitTermination(60)
    assert sorted(row[VALUE] for row in stream.rows()) == sorted(b"v%d" % n for n in [*range(5), *range(100, 109)])


def _created_again(topics: Topics, name: str) -> bool:
    try:
        topics.create(name)
    except ResponseError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # which is still being deleted
            raise
        return False
    return True


# --- checkpoints and limits -------------------------------------------------------------------------------------------


def test_a_restart_goes_on_where_it_was(any_spark: Any, topics: Topics, tmp_path: Path):
    queries = Queries(any_spark, topics.bootstrap_servers, tmp_path)
    name = topics.create(partitions=2)
    stream = queries.stream(name, startingOffsets="earliest", maxOffsetsPerTrigger=7)
    expected = []
    for turn in range(3):
        for partition in range(2):
            topics.fill(name, partition, 10, first=turn * 10)
            expected += [(partition, turn * 10 + each) for each in range(10)]
        stream.run()
        assert [(row[PARTITION], row[OFFSET]) for row in stream.rows()] == sorted(expected)


def test_a_batch_that_was_not_committed_is_repeated(queries: Queries, topics: Topics):
    """The same rows again, although the query began at the end and the end has moved."""
    name = topics.create()
    topics.fill(name, 0, 5)
    stream = queries.stream(name, startingOffsets="latest")
    query = stream.start()
    until(lambda: bool(query.lastProgress), "the first batch")
    topics.fill(name, 0, 5)
    stream.await_rows(5, query)
    query.stop()
    for path in (stream.checkpoint / "commits").iterdir():
        path.unlink()  # as if the driver had died before it noted them
    for path in (stream.checkpoint / "offsets").iterdir():
        if path.name not in ("0", ".0.crc"):
            path.unlink()
    shutil.rmtree(stream.rows_path)  # which knows the batches that it has
    topics.fill(name, 0, 3)
    stream.run()
    assert [row[OFFSET] for row in stream.rows()] == list(range(5, 13))


def test_a_limit_is_shared_as_by_sparks_own_source(queries: Queries, topics: Topics):
    name = topics.create(partitions=3)
    for partition, count in enumerate((500, 61, 7)):
        topics.fill(name, partition, count)
    runs = [
        queries.stream(name, source, startingOffsets="earliest", maxOffsetsPerTrigger=100).run()
        for source in ("ottla", SPARKS)
    ]
    ours, theirs = (offsets_of(run, "endOffset") for run in runs)
    assert ours == theirs
    assert len(ours) > 4


def test_little_is_waited_for(topics: Topics):
    """With a clock of our own, on a real topic."""
    name = topics.create()
    now = [0.0]
    given = {"kafka.bootstrap.servers": topics.bootstrap_servers, "subscribe": name}
    options = read_options(TopicOptions, {**given, "minOffsetsPerTrigger": "10", "maxTriggerDelay": "1m"})
    plan = StreamPlan(LiveCluster(lambda: topics.client, options), options, now_ms=lambda: now[0])
    topics.fill(name, 0, 1)
    place = plan.next_end(plan.initial(), None)
    topics.fill(name, 0, 4)
    now[0] = 59_999
    assert plan.next_end(place, None) == place
    now[0] = 60_000
    place = plan.next_end(place, None)
    assert place.offsets == {TopicPartition(name, 0): 5}
    topics.fill(name, 0, 10)
    assert plan.next_end(place, None).offsets == {TopicPartition(name, 0): 15}


def test_available_now_ends_though_more_comes(queries: Queries, topics: Topics):
    name = topics.create()
    topics.fill(name, 0, 30)
    stream = queries.stream(name, startingOffsets="earliest", maxOffsetsPerTrigger=5)
    query = stream.start(available_now=True)
    until(lambda: bool(query.recentProgress), "the first batch")
    for number in range(5):
        topics.fill(name, 0, 10, first=30 + number * 10)
    assert query.awaitTermination(90)
    assert len(stream.rows()) == 30
    stream.run(maxOffsetsPerTrigger=1000)
    assert [row[OFFSET] for row in stream.rows()] == list(range(80))


@pytest.mark.parametrize(("least", "tasks"), [({}, 1), ({"minRecordsPerPartition": 1}, 3)])
def test_one_task_reads_several_small_partitions(queries: Queries, topics: Topics, least: dict[str, int], tasks: int):
    name = topics.create(partitions=3)
    for partition in range(3):
        topics.fill(name, partition, 10 + partition)
    stream = queries.stream(name, startingOffsets="earliest", **least)
    stream.run()
    assert len(list(stream.rows_path.glob("part-*"))) == tasks
    found = [(row[PARTITION], row[OFFSET]) for row in stream.rows()]
    assert found == [(partition, offset) for partition in range(3) for offset in range(10 + partition)]


def test_spark_gives_real_time_mode_to_no_python_source(queries: Queries, topics: Topics):
    """The day that this fails, there is something to offer."""
    frame = queries.spark.readStream.format("ottla").options(**queries.stream(topics.create()).options).load()
    writer = frame.select("value").writeStream.format("console").outputMode("update")
    query = (
        writer.option("checkpointLocation", str(queries.directory / "real-time")).trigger(realTime="5 minutes").start()
    )
    until(lambda: not query.isActive, "the end of the query")
    assert "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED" in str(query.exception())


def test_progress_shows_offsets(queries: Queries, topics: Topics):
    name = topics.create()
    topics.fill(name, 0, 10)
    progress = queries.stream(name, startingOffsets="earliest", maxOffsetsPerTrigger=4).run()
    at = f"{name}-0"
    assert offsets_of(progress, "endOffset") == [{at: 4}, {at: 8}, {at: 10}]
    assert offsets_of(progress, "latestOffset") == [{at: 10}] * 3
    assert offsets_of(progress[1:], "startOffset") == [{at: 4}, {at: 8}]
    assert [each["numInputRows"] for each in progress if each["numInputRows"]] == [4, 4, 2]


# --- groups -----------------------------------------------------------------------------------------------------------


def test_offsets_are_committed_to_a_group(queries: Queries, topics: Topics):
    name, group = topics.create(), new_name("g")
    topics.fill(name, 0, 10)
    stream = queries.stream(name, startingOffsets="earliest", commitOffsetsToGroup=group)
    stream.run()
    assert topics.client.call(committed, group)[TopicPartition(name, 0)].offset == 10
    topics.fill(name, 0, 3)
    shown = tool(GROUPS, "--bootstrap-server", topics.bootstrap_servers, "--describe", "--group", group)
    (line,) = [each.split() for each in shown.splitlines() if name in each]
    assert line[1:6] == [name, "0", "10", "13", "3"]


def test_a_group_that_others_use_is_left_alone(queries: Queries, topics: Topics):
    from confluent_kafka import Consumer

    name, group = topics.create(), new_name("g")
    topics.fill(name, 0, 10)
    consumer = Consumer({"bootstrap.servers": topics.bootstrap_servers, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([name])
    until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "an assignment")
    stream = queries.stream(name, startingOffsets="earliest", commitOffsetsToGroup=group)
    query = stream.start(available_now=True)
    deadline = time.monotonic() + 90
    while query.isActive:
        consumer.poll(0.1)
        assert time.monotonic() < deadline
    assert query.exception() is None
    assert len(stream.rows()) == 10
    assert topics.client.call(committed, group) == {}
    consumer.close()


# --- brokers --------------------------------------------------------------------------------------------------------


def test_the_broker_is_killed_and_comes_back(boot: Callable[..., Broker], spark: Any, tmp_path: Path):
    node = boot()
    topics = Topics(node.bootstrap_servers)
    name = topics.create(partitions=2)
    stream = Queries(spark, node.bootstrap_servers, tmp_path).stream(name, startingOffsets="earliest")
    query = stream.start()
    for turn in range(2):
        for partition in range(2):
            topics.fill(name, partition, 10, first=turn * 10)
        stream.await_rows(20 * (turn + 1), query)
        if turn == 0:
            node.kill()
            node.start()
    query.stop()
    topics.close()
    found = [(row[PARTITION], row[OFFSET]) for row in stream.rows()]
    assert found == [(partition, offset) for partition in range(2) for offset in range(20)]
    assert progress_of(query)
