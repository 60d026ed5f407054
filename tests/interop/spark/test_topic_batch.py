"""Topics as a batch; each test says what it is compared with."""

import time
from pathlib import Path
from typing import Any

import pytest

from ottla.client.blocking import BlockingClient
from ottla.client.metadata import TopicPartition
from ottla.spark.errors import OttlaSparkError
from ottla.spark.options import read_options
from ottla.spark.sessions import PUSHDOWN
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import Task
from ottla.spark.topic.task_reader import read_task
from ottla.wire.batch import Compression
from tests.interop.apache import free_ports
from tests.interop.spark.queries import OURS, SPARKS, Queries, until
from tests.interop.spark.topics import TIME_MS, Topics, batch, new_name
from tests.interop.spark.transactions import in_transaction

VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP, KIND, HEADERS = range(1, 8)


def test_all_columns_of_four_partitions(any_spark: Any, topics: Topics, tmp_path: Path):
    queries = Queries(any_spark, topics.bootstrap_servers, tmp_path)
    name = topics.create(partitions=4)
    for partition in range(4):
        topics.fill(name, partition, 50 + partition)
    assert queries.frame(name).schema == queries.frame(name, SPARKS).schema
    rows = queries.same_rows(name)
    assert len(rows) == 206
    assert rows[0][:KIND] == (b"k0", b"v0", name, 0, 0, rows[0][TIMESTAMP])


def test_headers_are_those_of_sparks_own_source(queries: Queries, topics: Topics):
    name = topics.create()
    topics.put(
        name,
        0,
        batch(
            [
                (b"none", b"", TIME_MS),
                (b"one", b"", TIME_MS, [("a", b"1")]),
                (b"twice", b"", TIME_MS, [("a", b"1"), ("a", b"2"), ("b", None), ("", b"")]),
            ]
        ),
    )
    frames = [queries.frame(name, source, includeHeaders=True) for source in (OURS, SPARKS)]
    assert frames[0].schema == frames[1].schema
    rows = queries.same_rows(name, includeHeaders=True)
    assert rows[0][HEADERS] is None
    assert rows[2][HEADERS] == [("a", b"1"), ("a", b"2"), ("b", None), ("", b"")]


def test_null_keys_and_values(queries: Queries, topics: Topics):
    name = topics.create()
    topics.put(name, 0, batch([(None, b"v"), (b"k", None), (None, None), (b"", b"")]))
    assert [row[:2] for row in queries.same_rows(name)] == [(None, b"v"), (b"k", None), (None, None), (b"", b"")]


@pytest.mark.parametrize("by", [0, 1])
def test_timestamps_of_both_types(queries: Queries, topics: Topics, by: int):
    name = topics.create(message_timestamp_type=("CreateTime", "LogAppendTime")[by])
    topics.put(name, 0, batch([(b"old", b"", 0), (b"usual", b"", TIME_MS), (b"without", b"", -1)]))
    rows = queries.same_rows(name)
    assert [row[KIND] for row in rows] == [by] * 3
    assert rows[1][TIMESTAMP].timestamp() * 1000 == TIME_MS or by == 1


def test_codecs_mixed_in_one_partition(queries: Queries, topics: Topics):
    name = topics.create()
    for number, codec in enumerate([*Compression, Compression.NONE]):
        topics.fill(name, 0, 40, first=number * 40, compression=codec)
    rows = queries.same_rows(name)
    assert [row[VALUE] for row in rows] == [b"v%d" % number for number in range(240)]


def test_starting_and_ending_offsets(queries: Queries, topics: Topics):
    name = topics.create(partitions=2)
    topics.fill(name, 0, 10)
    topics.fill(name, 1, 10)
    text = f'{{"{name}":{{"0":4,"1":-2}}}}'
    rows = queries.same_rows(name, startingOffsets=text, endingOffsets=f'{{"{name}":{{"0":-1,"1":3}}}}')
    assert [(row[PARTITION], row[OFFSET]) for row in rows] == [
        *((0, each) for each in range(4, 10)),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    missing = queries.refusal(name, startingOffsets=f'{{"{name}":{{"0":4}}}}')
    assert missing == f"option startingOffsets: topic {name} partition 1 is missing; name every partition to read"
    surplus = queries.refusal(name, startingOffsets=f'{{"{name}":{{"0":4,"1":4,"2":4}}}}')
    assert surplus == f"option startingOffsets: topic {name} partition 2 is not among the partitions to read"


@pytest.mark.parametrize(("option", "value"), [("startingOffsets", "latest"), ("endingOffsets", "earliest")])
def test_batches_do_not_begin_at_the_end(queries: Queries, topics: Topics, option: str, value: str):
    name = topics.create()
    verb = "start" if option == "startingOffsets" else "end"
    text = queries.refusal(name, **{option: value})
    assert text == f"option {option}: a batch query cannot {verb} at the {value} offset"


def test_starts_and_ends_by_timestamp(queries: Queries, topics: Topics):
    name = topics.create(partitions=2)
    topics.fill(name, 0, 10)
    topics.fill(name, 1, 10, time_ms=TIME_MS + 100_000)
    in_the_middle = TIME_MS + 4_500
    both = f'{{"{name}":{{"0":{in_the_middle},"1":{TIME_MS + 103_000}}}}}'
    for options in (
        {"startingTimestamp": in_the_middle},
        {"startingOffsetsByTimestamp": both},
        {"endingTimestamp": in_the_middle},
        {"endingOffsetsByTimestamp": both},
        {"startingTimestamp": TIME_MS + 50_000, "startingOffsetsByTimestampStrategy": "latest"},
        {"startingTimestamp": in_the_middle, "startingOffsetsByTimestamp": both, "startingOffsets": "earliest"},
    ):
        assert queries.same_rows(name, **options), options
    text = queries.refusal(name, startingTimestamp=TIME_MS + 50_000)
    assert text.startswith(f"option startingTimestamp: topic {name} partition 0 has no record at or after")


def test_a_pattern_leaves_internal_topics_out(queries: Queries, topics: Topics):
    first, second = topics.create(new_name("shop")), topics.create(new_name("shop"))
    audit = topics.create(new_name("__audit"))
    for name in (first, second, audit):
        topics.fill(name, 0, 3)
    assert {row[TOPIC] for row in queries.same_rows(subscribePattern="shop-.*")} >= {first, second}
    found = {row[TOPIC] for row in queries.same_rows(subscribePattern="__.*")}
    assert audit in found
    assert not any(name.startswith(("__consumer", "__transaction")) for name in found)
    assert queries.rows(subscribePattern="sho") == [], "a pattern matches whole names"


def test_an_unknown_partition_is_refused(queries: Queries, topics: Topics):
    name = topics.create()
    topics.fill(name, 0, 3)
    assert len(queries.same_rows(assign=f'{{"{name}":[0]}}')) == 3
    assert queries.refusal(assign=f'{{"{name}":[0,7]}}') == f"topic {name} partition 7 does not exist"
    assert queries.refusal("no-such-topic") == "topic no-such-topic does not exist"


def test_an_unknown_option_is_refused(queries: Queries, topics: Topics):
    text = queries.refusal("whatever", maxOffsetPerTrigger=1)
    assert text == "unknown option maxoffsetpertrigger: did you mean maxOffsetsPerTrigger?"


def test_a_server_that_does_not_answer_is_named(queries: Queries):
    began_s = time.monotonic()
    (port,) = free_ports(1)
    text = queries.refusal("t", **{"kafka.bootstrap.servers": f"127.0.0.1:{port}"})
    assert text == f"cannot connect to 127.0.0.1:{port}: connection refused"
    assert time.monotonic() - began_s < 15


def test_tasks_are_cut_alike(queries: Queries, topics: Topics):
    name = topics.create(partitions=3)
    for partition, count in enumerate((200, 25, 3)):
        topics.fill(name, partition, count)
    for options in ({"minPartitions": 7}, {"minPartitions": 12, "maxRecordsPerPartition": 60}):
        assert cuts(queries.frame(name, **options)) == cuts(queries.frame(name, SPARKS, **options))
    # Spark's own source passes over the second option in batches that do not have the first one; ours does not.
    sizes = sorted(last - first + 1 for _, first, last in cuts(queries.frame(name, maxRecordsPerPartition=30)))
    assert sizes == [3, 25, 28, 28, 28, 29, 29, 29, 29]


def cuts(frame: Any) -> set[tuple[int, int, int]]:
    found = frame.selectExpr("spark_partition_id() task", "partition", "offset").groupBy("task", "partition")
    rows = found.agg({"offset": "min"}).collect(), found.agg({"offset": "max"}).collect()
    firsts, lasts = ({(row[0], row[1]): row[2] for row in each} for each in rows)
    return {(key[1], first, lasts[key]) for key, first in firsts.items()}


def test_a_partition_with_most_of_the_data_is_cut(queries: Queries, topics: Topics):
    name = topics.create(partitions=4)
    for partition, count in enumerate((900, 33, 33, 34)):
        topics.fill(name, partition, count)
    sizes = sorted(last - first + 1 for _, first, last in cuts(queries.frame(name, minPartitions=10)))
    assert len(sizes) == 10
    assert max(sizes) <= 130


def test_filters_narrow_the_plan(queries: Queries, topics: Topics):
    name = topics.create(partitions=3)
    for partition in range(3):
        topics.fill(name, partition, 100)
    moment = "timestamp '2023-11-14 22:14:10 UTC'"  # 50 s after the first record
    for condition, tasks, reads in (
        ("partition = 1", 1, 100),
        ("partition in (0, 2) and offset >= 90", 2, 20),
        ("offset > 10 and offset <= 12", 3, 6),
        (f"timestamp >= {moment}", 3, 150),
        (f"timestamp >= {moment} and partition = 0 and offset < 60", 1, 10),
        ("topic = 'another'", 1, 0),
    ):
        narrow = queries.frame(name).where(condition)
        wide = queries.frame(name, pushdown=False).where(condition)
        assert sorted(map(str, narrow.collect())) == sorted(map(str, wide.collect())), condition
        assert narrow.count() == reads, condition
        assert narrow.rdd.getNumPartitions() == tasks, condition
        assert wide.rdd.getNumPartitions() == 3


def test_pushdown_can_be_off(queries: Queries, topics: Topics):
    name = topics.create()
    topics.fill(name, 0, 5)
    queries.spark.conf.set(PUSHDOWN, "false")
    try:
        assert len(queries.rows(name, pushdown=False)) == 5
        assert "filterPushdown" in queries.refusal(name)
    finally:
        queries.spark.conf.set(PUSHDOWN, "true")


# --- what is not there ------------------------------------------------------------------------------------------------


def test_an_empty_topic(queries: Queries, topics: Topics):
    assert queries.same_rows(topics.create(partitions=2)) == []


def test_retention_passes_the_start_in_planning(queries: Queries, topics: Topics):
    name = topics.create()
    topics.fill(name, 0, 100)
    topics.cut(name, 0, 30)
    start = f'{{"{name}":{{"0":10}}}}'
    text = queries.refusal(name, startingOffsets=start)
    assert text.startswith(f"data lost: topic {name} partition 0: offsets 10..29 were deleted")
    rows = queries.same_rows(name, startingOffsets=start, failOnDataLoss=False)
    assert [row[OFFSET] for row in rows] == list(range(30, 100))


@pytest.mark.parametrize("is_fatal", [True, False])
def test_retention_passes_a_running_task(topics: Topics, is_fatal: bool):
    name = topics.create()
    for number in range(20):
        topics.fill(name, 0, 10, first=number * 10, size=200)
    options = read_options(
        TopicOptions,
        {
            "kafka.bootstrap.servers": topics.bootstrap_servers,
            "subscribe": name,
            "failOnDataLoss": str(is_fatal),
            "kafka.max.partition.fetch.bytes": "3000",
        },
    )
    with BlockingClient(topics.bootstrap_servers) as client:
        batches = read_task(lambda: client, Task(TopicPartition(name, 0), None, 0, 200, 1, 0), options)
        first = next(batches).column("offset").to_pylist()
        topics.cut(name, 0, 150)
        if is_fatal:
            with pytest.raises(OttlaSparkError, match=r"data lost: .*offsets \d+\.\.149 were deleted"):
                list(batches)
            return
        rest = [offset for each in batches for offset in each.column("offset").to_pylist()]
    assert first[0] == 0
    assert rest[-50:] == list(range(150, 200))
    assert len(rest) < 150


def test_compaction_leaves_gaps(queries: Queries, topics: Topics):
    config = {"cleanup_policy": "compact", "segment_ms": 200, "min_cleanable_dirty_ratio": 0.01}
    name = topics.create(**config, min_compaction_lag_ms=0, delete_retention_ms=0)
    for _ in range(3):
        topics.put(name, 0, batch([(b"k%d" % (number % 5), b"v") for number in range(50)]))
    topics.put(name, 0, batch([(b"last", b"v")]))

    def is_compacted() -> bool:
        time.sleep(0.3)
        # Segments end when a record comes that is late enough by its own timestamp.
        topics.put(name, 0, batch([(b"roll", b"v", round(time.time() * 1000))]))
        return len(queries.rows(name, endingOffsets=f'{{"{name}":{{"0":150}}}}')) <= 5

    until(is_compacted, "a compacted log", 60)
    for end in (120, 147, 150):
        rows = queries.same_rows(name, endingOffsets=f'{{"{name}":{{"0":{end}}}}}')
        assert all(row[OFFSET] < end for row in rows)


# --- transactions -----------------------------------------------------------------------------------------------------


def test_isolation_levels_beside_sparks_own_source(queries: Queries, topics: Topics):
    name = topics.create()
    for end in ("committed", "aborted", "committed", "aborted"):
        in_transaction(topics, name, 20, end=end)
    topics.fill(name, 0, 5)
    still_open = in_transaction(topics, name, 7, end="open")
    everything = queries.same_rows(name)
    committed = queries.same_rows(name, kafka__isolation__level="read_committed")
    assert len(everything) == 92
    assert len(committed) == 45
    assert not any(row[VALUE].startswith((b"aborted", b"open")) for row in committed)
    assert queries.rows(name, isolationLevel="read_committed") == committed
    still_open.abort_transaction(30)


def test_a_range_of_markers_alone(queries: Queries, topics: Topics):
    name = topics.create()
    in_transaction(topics, name, 3, end="committed")
    assert queries.same_rows(name, startingOffsets=f'{{"{name}":{{"0":3}}}}') == []
    assert len(queries.same_rows(name, startingOffsets=f'{{"{name}":{{"0":2}}}}')) == 1
