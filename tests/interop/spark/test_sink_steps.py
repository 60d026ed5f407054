"""What tasks and the driver of an exactly-once sink do, step by step, without Spark.

`test_sink` has what needs Spark itself; transaction version 1 is in tests/unit/spark/test_sink.py.
"""

import time
from collections.abc import Callable

import pytest

from ottla.client.errors import ClientError
from ottla.client.group_offsets import delete_offsets
from ottla.client.transactions import end
from ottla.spark.errors import OttlaSparkError
from ottla.spark.sink.exactly_once import Prepared, marker_group
from ottla.spark.sink.transaction_end import abort_all
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe
from tests.interop.spark.topics import Topics
from tests.unit.spark.sinks import Sink

Broker = ApacheKafka | OttlaServe
Boot = Callable[..., Broker]
STEPS = 3
VISIBLE_S = 20


@pytest.fixture
def sink(topics: Topics) -> Sink:
    return Sink(topics.client, topics.bootstrap_servers, topics.create(partitions=2))


def batch(sink: Sink, batch_id: int = 0) -> list[Prepared]:
    """Three tasks of two rows each, prepared."""
    return [
        sink.task([f"{batch_id}{number}a", f"{batch_id}{number}b"], batch_id=batch_id, partition_id=number)
        for number in range(STEPS)
    ]


def values(*batch_ids: int) -> list[str]:
    return sorted(f"{each}{number}{letter}" for each in batch_ids for number in range(STEPS) for letter in "ab")


def check_committed(sink: Sink, expected: list[str]) -> None:
    """Apache Kafka answers a commit before its markers are written, so readers may need a moment."""
    until = time.monotonic() + VISIBLE_S
    while (found := sink.committed()) != expected and time.monotonic() < until:
        time.sleep(0.1)
    assert found == expected


def end_one(sink: Sink, prepared: Prepared) -> None:
    assert prepared.identity is not None
    sink.client.call(end, prepared.identity, commit=True)


def test_batch_by_batch(sink: Sink):
    for number in range(3):
        sink.commit(*batch(sink, number))
    check_committed(sink, values(0, 1, 2))


@pytest.mark.parametrize("ended", [1, 2])
def test_the_driver_dies_after_some_ends(sink: Sink, ended: int):
    sink.commit(*batch(sink, 0))
    for each in batch(sink, 1)[:ended]:
        end_one(sink, each)
    again = batch(sink, 1)
    assert [each.identity is None for each in again] == [number < ended for number in range(STEPS)]
    sink.commit(*again)
    check_committed(sink, values(0, 1))


def test_the_driver_dies_after_all_ends(sink: Sink):
    sink.commit(*batch(sink))
    again = batch(sink)
    assert [each.identity for each in again] == [None] * STEPS
    sink.commit(*again)
    check_committed(sink, values(0))


def test_a_commit_after_answers_that_were_lost(sink: Sink):
    prepared = batch(sink)
    for each in prepared:
        end_one(sink, each)
    sink.commit(*prepared)
    check_committed(sink, values(0))


def test_two_drivers_on_one_checkpoint(sink: Sink):
    first = batch(sink)
    second = batch(sink)
    with pytest.raises(OttlaSparkError, match="was ended by somebody else"):
        sink.commit(*first)
    sink.commit(*second)
    check_committed(sink, values(0))


def test_a_speculative_copy_never_writes_twice(sink: Sink):
    first = batch(sink)
    copy = sink.task(["00a", "00b"], partition_id=0)
    with pytest.raises(OttlaSparkError, match="a speculative copy"):
        sink.commit(*first)
    abort_all(sink.client, [*first, copy])
    check_committed(sink, [])
    sink.commit(*batch(sink))
    check_committed(sink, values(0))


def test_other_rows_after_a_partial_commit(sink: Sink):
    end_one(sink, batch(sink)[0])
    with pytest.raises(OttlaSparkError, match=r"batch 0 was partly committed with other rows: .* not deterministic"):
        sink.task(["00a", "other"], partition_id=0)


def test_another_number_of_tasks_after_a_partial_commit(sink: Sink):
    end_one(sink, batch(sink)[2])
    fewer = batch(sink)[:2]
    with pytest.raises(OttlaSparkError, match="batch 0 was partly committed with other tasks"):
        sink.commit(*fewer)
    abort_all(sink.client, fewer)
    check_committed(sink, ["02a", "02b"])


def test_a_batch_longer_than_its_transaction(boot: Boot):
    node = boot(**{"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
    made = Topics(node.bootstrap_servers)
    sink = Sink(made.client, node.bootstrap_servers, made.create(), transactionTimeoutMs="500")
    prepared = sink.task(["a"])
    time.sleep(3)  # on purpose: the broker's own clock has to run
    with pytest.raises(
        OttlaSparkError, match=r"took longer than transactionTimeoutMs=500 .*transaction.max.timeout.ms"
    ):
        sink.commit(prepared)
    sink.commit(sink.task(["a"]))
    check_committed(sink, ["a"])
    made.close()


def test_a_marker_that_has_expired(sink: Sink):
    prepared = batch(sink, 0)
    sink.commit(*prepared)
    task = prepared[0].task
    group = marker_group(task.query_id, sink.options)
    sink.client.call(delete_offsets, group, [task.marker_at(sink.options)])
    with pytest.raises(OttlaSparkError, match=f"the marker of task 0 is gone from group {group}"):
        sink.task(["x"], batch_id=1)


def test_the_broker_is_killed_between_prepare_and_commit(boot: Boot):
    node = boot()
    made = Topics(node.bootstrap_servers)
    sink = Sink(made.client, node.bootstrap_servers, made.create(partitions=2))
    prepared = batch(sink)
    node.kill()
    node.start()
    try:
        sink.commit(*prepared)
    except (ClientError, OttlaSparkError):  # the batch runs again
        sink.commit(*batch(sink))
    check_committed(sink, values(0))
    made.close()


def test_abort_after_a_failed_commit(sink: Sink):
    prepared = batch(sink)
    end_one(sink, prepared[0])
    abort_all(sink.client, prepared)
    check_committed(sink, ["00a", "00b"])
    sink.commit(*batch(sink))
    check_committed(sink, values(0))
