"""A share group as a stream; `test_share_crashes` has what is killed meanwhile."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.producer import Producer, ProducerRecord
from ottla.client.transactions import begin, end
from ottla.spark import explain_error
from ottla.spark.share import reject, release
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe
from tests.interop.spark.conftest import new_broker
from tests.interop.spark.queries import Queries, until
from tests.interop.spark.share_groups import ShareGroup, stream
from tests.interop.spark.topics import Topics

Broker = ApacheKafka | OttlaServe
Boot = Callable[..., Broker]
Seen = list[tuple[int, int]]
SHORT_LOCKS = {"group.share.min.record.lock.duration.ms": "1000", "group.share.record.lock.duration.ms": "2000"}


class Query:
    """One query with foreachBatch; `seen` has offset and delivery count of each row, batch by batch."""

    def __init__(self, spark: Any, options: dict[str, str], directory: Path) -> None:
        self._spark = spark
        self._options = options
        self.checkpoint = directory / "checkpoint"
        self.seen: dict[int, Seen] = {}

    def start(self, then: Callable[[list[Any], int], None] = lambda rows, batch_id: None, **trigger: Any) -> Any:
        def write(frame: Any, batch_id: int) -> None:
            rows = frame.collect()
            self.seen[batch_id] = sorted((row["offset"], row["deliveryCount"]) for row in rows)
            then(rows, batch_id)

        writer = stream(self._spark, self._options).writeStream.foreachBatch(write)
        how = trigger or {"processingTime": "100 milliseconds"}
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(**how).start()

    @property
    def all(self) -> Seen:
        return sorted(row for rows in self.seen.values() for row in rows)


@pytest.fixture
def new_query(spark: Any, broker: Broker, topics: Topics, tmp_path: Path) -> Callable[..., tuple[Query, ShareGroup]]:
    def make(records: int, *, configs: dict[str, object] | None = None, **options: object) -> tuple[Query, ShareGroup]:
        topic = topics.create()
        topics.fill(topic, 0, records)
        group = ShareGroup(broker.bootstrap_servers, **(configs or {}))
        return Query(spark, group.options(topic, **options), tmp_path), group

    return make


def stop(query: Any) -> None:
    query.stop()
    assert query.exception() is None, explain_error(query.exception())


def await_lag(group: ShareGroup, lag: int = 0) -> None:
    until(lambda: group.lag() == lag, f"a lag of {lag}", timeout_s=60)


def test_two_queries_in_one_group(any_spark: Any, broker: Broker, topics: Topics, tmp_path: Path):
    topic = topics.create(partitions=2)
    for partition in range(2):
        topics.fill(topic, partition, 5_000)
    group = ShareGroup(broker.bootstrap_servers)
    options = {"group": group.name, "maxRecordsPerTrigger": "1000"}
    streams = [
        Queries(any_spark, broker.bootstrap_servers, tmp_path).stream(topic, "ottla-share", **options) for _ in range(2)
    ]
    for query in [each.start(available_now=True) for each in streams]:
        assert query.awaitTermination(180)
    found = [{(row[3], row[4]) for row in each.rows()} for each in streams]
    assert not found[0] & found[1]
    assert found[0] | found[1] == {(partition, offset) for partition in range(2) for offset in range(5_000)}
    assert sum(len(each.rows()) for each in streams) == 10_000
    await_lag(group)


def test_the_last_batch_is_acknowledged_though_nothing_comes(new_query: Any):
    query, group = new_query(50)
    running = query.start()
    until(lambda: len(query.all) == 50, "the rows")
    await_lag(group)
    stop(running)
    assert not (query.checkpoint / "offsets" / "1").exists()


def test_rows_are_rejected_and_released(new_query: Any):
    query, group = new_query(50)

    def judge(rows: list[Any], batch_id: int) -> None:
        reject([row for row in rows if row["offset"] == 7], batch_id, group=group.name)
        release([row for row in rows if row["offset"] == 9 and row["deliveryCount"] == 1], batch_id, group=group.name)

    running = query.start(judge)
    until(lambda: (9, 2) in query.all, "the released row")
    await_lag(group)
    stop(running)
    assert query.all == sorted([(offset, 1) for offset in range(50)] + [(9, 2)])


def test_a_group_that_reads_committed_records(new_query: Any, topics: Topics):
    query, group = new_query(5, configs={"share_isolation_level": "read_committed"})
    topic = query._options["subscribe"]
    for number, commit in enumerate((True, False, True)):
        topics.client.call(_transaction, topic, f"{group.name}-{number}", commit)
    running = query.start(availableNow=True)
    assert running.awaitTermination(90)
    await_lag(group)
    assert len(query.all) == 5 + 2 * 3


async def _transaction(client: Any, topic: str, transactional_id: str, commit: bool) -> None:
    identity = await begin(client, transactional_id, timeout_ms=60_000)
    producer = Producer(client, identity=identity, idempotent=False)
    await producer.send_all([ProducerRecord(topic, b"x", partition=0) for _ in range(3)])
    await end(client, identity, commit=commit)


def test_the_offset_log_says_what_a_batch_has(new_query: Any):
    query, _ = new_query(50, maxRecordsPerTrigger=20)
    assert query.start(availableNow=True).awaitTermination(90)
    for number in range(3):
        logged = json.loads((query.checkpoint / "offsets" / str(number)).read_text().splitlines()[2])
        ((ranges,),) = (each.values() for each in logged["acq"].values())
        rows = [(offset, count) for first, last, count in ranges for offset in range(first, last + 1)]
        assert rows == query.seen[number]


@pytest.mark.parametrize("fails", [True, False])
def test_the_topic_is_deleted(new_query: Any, topics: Topics, fails: bool):
    query, _ = new_query(50, failOnDataLoss=str(fails).lower())
    running = query.start()
    until((query.checkpoint / "commits" / "0").exists, "the first batch")
    stop(running)
    topics.delete(query._options["subscribe"])
    again = query.start()
    if fails:
        until(lambda: not again.isActive, "the end of the query")
        assert "does not exist" in explain_error(again.exception())
    else:
        until(lambda: again.lastProgress is not None, "progress")
        stop(again)


# --- nodes of their own -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short_locks(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A node whose locks last for two seconds."""
    with new_broker(kind, tmp_path_factory.mktemp("short"), **SHORT_LOCKS) as node:
        yield node


@pytest.mark.parametrize("renews", [True, False])
def test_a_batch_longer_than_its_locks(spark: Any, short_locks: Broker, tmp_path: Path, renews: bool):
    made = Topics(short_locks.bootstrap_servers)
    topic = made.create()
    made.fill(topic, 0, 20)
    group = ShareGroup(short_locks.bootstrap_servers, share_renew_acknowledge_enable=str(renews).lower())
    query = Query(spark, group.options(topic), tmp_path)
    running = query.start(lambda rows, batch_id: time.sleep(7))
    until(lambda: len(query.all) >= 20, "the rows")
    await_lag(group)
    stop(running)
    assert query.all == [(offset, 1) for offset in range(20)], "what came again was accepted without being shown"
    made.close()


def test_the_broker_restarts_while_a_batch_runs(spark: Any, boot: Boot, tmp_path: Path):
    node = boot()
    made = Topics(node.bootstrap_servers)
    topic = made.create()
    made.fill(topic, 0, 50)
    group = ShareGroup(node.bootstrap_servers)
    query = Query(spark, group.options(topic, maxRecordsPerTrigger=20), tmp_path)

    def restart(rows: list[Any], batch_id: int) -> None:
        if batch_id == 1:
            node.kill()
            node.start()

    running = query.start(restart)
    until(lambda: len({offset for offset, _ in query.all}) == 50, "the rows", timeout_s=120)
    await_lag(group)
    stop(running)
    assert [offset for offset, _ in query.all] == list(range(50))
    made.close()
