"""Writing to a topic with Spark, plain and exactly once, beside Spark's own sink; and reading a share group.

    python -m benchmarks.spark.bench_writing [--quick] [--rounds 5] [--only TEXT] [--broker ottla] [--out FILE]

write   rows of 100 bytes from memory into four partitions, as a batch
share   a share group from the first record to the last, into nothing (Trigger.AvailableNow), acknowledged. A batch has
        as many records as the group may lock: 2,000 in each of four partitions, as is usual with Kafka; the same in
        each of sixteen, of which a task reads several; or the most that can be set in each of four. Beside it our share
        consumer alone, with the usual locks in four partitions
"""

import sys
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks import runner
from benchmarks.runner import Size
from benchmarks.share.loads import with_ottla
from benchmarks.spark import windows
from benchmarks.spark.actions import Source, drain
from benchmarks.spark.filling import fill
from benchmarks.spark.windows import OURS, PACKAGES, THEIRS, Setup
from ottla.client import topics
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.share.offsets import describe_offsets

EXACTLY, SHARE, CONSUMER = f"{OURS}, exactly once", "ottla-share", "share consumer"
LOCKS_MAX = 10_000
"""The largest value that brokers allow for a partition of a share group."""
ROWS = {
    Size.FULL: {"write": 1_000_000, "share": 1_000_000},
    Size.QUICK: {"write": 100_000, "share": 100_000},
    Size.SMOKE: {"write": 1_000, "share": 1_000},
}
VALUE_BYTES = 100
PARTITIONS = 4
MANY_PARTITIONS, TASK_RECORDS = 16, 10_000
Run = Callable[[Setup, int], float]


def write(form: str, **options: str) -> Run:
    """So many rows into a new topic."""

    def run(setup: Setup, rows: int) -> float:
        topic = _new_topic(setup.servers)
        frame = setup.spark.range(rows, numPartitions=PARTITIONS).selectExpr(
            f"lpad(cast(id as string), {VALUE_BYTES}) as value"
        )
        given = {"kafka.bootstrap.servers": setup.servers, "topic": topic, **options}
        if "exactlyOnce" in options:
            given["writeId"] = topic
        began_s = time.perf_counter()
        frame.write.format(form).options(**given).mode("append").save()
        return time.perf_counter() - began_s

    return run


def share(*, partitions: int = PARTITIONS, locks: int | None = None, **options: str) -> Run:
    """A new group from the first record to the last, until all are acknowledged."""

    def run(setup: Setup, rows: int) -> float:
        topic, group = _share_group(setup, rows, partitions, locks)
        given = {"kafka.bootstrap.servers": setup.servers, "subscribe": topic, "group": group, **options}
        seconds, _ = drain(Source(SHARE, "ottla-share", given).stream(setup.spark))
        with BlockingClient(setup.servers) as client:
            left = sum(each.lag or 0 for each in client.call(describe_offsets, group).values())
        assert left == 0, f"{left} records are not acknowledged"
        return seconds

    return run


def consume(setup: Setup, rows: int) -> float:
    """The same by our share consumer, without Spark."""
    topic, group = _share_group(setup, rows, PARTITIONS, None)
    times = with_ottla(setup.servers, group, topic, consumers=1, records=rows)
    return times.to_first_s + times.first_to_last_s


def _share_group(setup: Setup, rows: int, partitions: int, locks: int | None) -> tuple[str, str]:
    """A topic with records, and a group that begins with the first of them."""
    topic, group = f"share-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    fill(setup.servers, topic, records=rows, value_bytes=VALUE_BYTES, partitions=partitions, codec="none")
    changes = [Change(Operation.SET, "share.auto.offset.reset", "earliest")]
    if locks is not None:
        changes.append(Change(Operation.SET, "share.partition.max.record.locks", str(locks)))
    with BlockingClient(setup.servers) as client:
        client.call(alter, Resource(ResourceType.GROUP, group), changes)
    return topic, group


def _new_topic(servers: str) -> str:
    name = f"write-{uuid.uuid4().hex[:8]}"
    with BlockingClient(servers) as client:
        client.call(topics.create, topics.NewTopic(name, partitions=PARTITIONS))
    return name


ACTIONS: dict[str, dict[str, Run]] = {
    "write": {OURS: write("ottla"), EXACTLY: write("ottla", exactlyOnce="true"), THEIRS: write("kafka")},
    "share": {
        SHARE: share(),
        f"{SHARE}, {MANY_PARTITIONS} partitions": share(
            partitions=MANY_PARTITIONS, minRecordsPerPartition=str(TASK_RECORDS)
        ),
        f"{SHARE}, {LOCKS_MAX:,} locks": share(locks=LOCKS_MAX),
        CONSUMER: consume,
    },
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_options(windows.parser(__doc__), arguments, rounds=windows.ROUNDS, rows=ROWS)
    done = []
    with windows.running(options, group_share_max_partition_max_record_locks=LOCKS_MAX) as setup:
        for action, runs in ACTIONS.items():
            rows = options.records or options.rows[action]
            name = f"{action}, {rows:,} x {VALUE_BYTES} B"
            if options.only in name:
                ready = {each: partial(run, setup, rows) for each, run in runs.items()}
                done.append(windows.measure(name, ready, rows, options.rounds))
    runner.save("spark-writing", done, options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
