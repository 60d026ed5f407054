"""The sink in Spark, and drivers and workers that are killed while they write."""

from pathlib import Path
from typing import Any

import pytest

from ottla.spark import explain_error
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe
from tests.interop.spark.drivers import Drivers
from tests.interop.spark.queries import Queries, until
from tests.interop.spark.topics import Topics

Broker = ApacheKafka | OttlaServe
PER_BATCH = 300
COMMITTED = {"isolationLevel": "read_committed"}


def frame(spark: Any, count: int) -> Any:
    return spark.range(count, numPartitions=3).selectExpr(
        "cast(id as string) as key",
        "case when id % 7 = 0 then null else concat('v', id) end as value",
        "array(struct('h' as key, cast(cast(id as string) as binary) as value)) as headers",
    )


def write(rows: Any, servers: str, topic: str, source: str = "ottla", **options: object) -> None:
    given = {"kafka.bootstrap.servers": servers, "topic": topic, **{key: str(value) for key, value in options.items()}}
    rows.write.format(source).options(**given).mode("append").save()


def test_rows_are_where_spark_would_have_put_them(any_spark: Any, broker: Broker, topics: Topics, tmp_path: Path):
    """Keys, values, headers and the partitions of keys, beside Spark's own sink, whose producer is Java's."""
    ours, theirs = topics.create(partitions=3), topics.create(partitions=3)
    rows = frame(any_spark, 200)
    write(rows, broker.bootstrap_servers, ours, includeHeaders="true")
    write(rows, broker.bootstrap_servers, theirs, "kafka", includeHeaders="true")
    queries = Queries(any_spark, broker.bootstrap_servers, tmp_path)
    found = [
        sorted((key, str(value), partition, str(headers)) for key, value, _, partition, _, _, _, headers in each)
        for each in (queries.rows(name, includeHeaders="true") for name in (ours, theirs))
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 200


def test_a_batch_write_that_is_repeated(spark: Any, broker: Broker, queries: Queries, topics: Topics):
    topic = topics.create(partitions=2)
    for _ in range(2):
        write(frame(spark, 100).drop("headers"), broker.bootstrap_servers, topic, exactlyOnce="true", writeId="w")
    assert len(queries.rows(topic, **COMMITTED)) == 100


@pytest.fixture
def numbers(any_spark: Any) -> Any:
    options = {"rowsPerBatch": str(PER_BATCH), "numPartitions": "3", "startTimestamp": "1000"}
    stream = any_spark.readStream.format("rate-micro-batch").options(**options).load()
    return stream.selectExpr("cast(value as string) as value")


def test_a_stream_that_is_stopped_again_and_again(
    any_spark: Any, numbers: Any, broker: Broker, topics: Topics, tmp_path: Path
):
    topic = topics.create(partitions=2)
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "exactlyOnce": "true"}
    writer = numbers.writeStream.format("ottla").options(**given).option("checkpointLocation", str(tmp_path / "c"))
    queries = Queries(any_spark, broker.bootstrap_servers, tmp_path)
    for batch_id in (1, 3):
        run_until(writer, tmp_path / "c" / "commits" / str(batch_id))
    check_each_once(queries, topic)


def run_until(writer: Any, committed: Path) -> None:
    query = writer.start()
    until(lambda: committed.exists() or not query.isActive, "the batches")
    query.stop()  # in the middle of some batch
    assert query.exception() is None, explain_error(query.exception())


def check_each_once(queries: Queries, topic: str, least: int = PER_BATCH) -> None:
    values = sorted(int(row[1]) for row in queries.rows(topic, **COMMITTED))
    assert values == list(range(len(values)))
    assert len(values) >= least
    assert len(values) % PER_BATCH == 0


@pytest.mark.parametrize("place", ["prepared", "one-ended", "all-ended", "commits"])
def test_the_driver_is_killed(broker: Broker, queries: Queries, topics: Topics, tmp_path: Path, place: str):
    """Before all ends of transactions, after one of three, after all, and after Spark's own commit."""
    topic = topics.create(partitions=2)
    drivers = Drivers(tmp_path, "sink", sink_options(broker, topic))
    drivers.run(batches=3, die=place, at=1)
    drivers.run(batches=3)
    check_each_once(queries, topic, 3 * PER_BATCH)


def test_a_worker_is_killed(broker: Broker, queries: Queries, topics: Topics, tmp_path: Path):
    topic, mark = topics.create(partitions=2), tmp_path / "crashed"
    drivers = Drivers(tmp_path, "sink", sink_options(broker, topic))
    drivers.run(batches=2, master="local[2,3]", crash_mark=str(mark))
    assert mark.exists()
    check_each_once(queries, topic, 2 * PER_BATCH)


def sink_options(broker: Broker, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic, "exactlyOnce": "true"}
