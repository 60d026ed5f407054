"""Writing to a topic with Spark, plain and exactly once, beside Spark's own sink; and reading a share group.

    python -m benchmarks.spark.bench_writing [--quick] [--rounds 5] [--only TEXT] [--broker ottla] [--out FILE]

write   rows of 100 bytes from memory into four partitions, as a batch
share   a share group from the first record to the last, into nothing (Trigger.AvailableNow), acknowledged
"""

import sys
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks import runner
from benchmarks.runner import Size
from benchmarks.spark import windows
from benchmarks.spark.actions import Source, drain
from benchmarks.spark.filling import fill
from benchmarks.spark.windows import OURS, PACKAGES, THEIRS, Setup
from ottla.client import topics
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.share.offsets import describe_offsets

EXACTLY, SHARE = f"{OURS}, exactly once", "ottla-share"
ROWS = {
    Size.FULL: {"write": 1_000_000, "share": 200_000},
    Size.QUICK: {"write": 100_000, "share": 20_000},
    Size.SMOKE: {"write": 1_000, "share": 1_000},
}
VALUE_BYTES = 100
PARTITIONS = 4
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


def share(setup: Setup, rows: int) -> float:
    """A new group from the first record to the last, until all are acknowledged."""
    topic, group = f"share-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    fill(setup.servers, topic, records=rows, value_bytes=VALUE_BYTES, partitions=PARTITIONS, codec="none")
    given = {"kafka.bootstrap.servers": setup.servers, "subscribe": topic, "group": group}
    with BlockingClient(setup.servers) as client:
        first = [Change(Operation.SET, "share.auto.offset.reset", "earliest")]
        client.call(alter, Resource(ResourceType.GROUP, group), first)
        seconds, _ = drain(Source(SHARE, "ottla-share", given).stream(setup.spark))
        left = sum(each.lag or 0 for each in client.call(describe_offsets, group).values())
    assert left == 0, f"{left} records are not acknowledged"
    return seconds


def _new_topic(servers: str) -> str:
    name = f"write-{uuid.uuid4().hex[:8]}"
    with BlockingClient(servers) as client:
        client.call(topics.create, topics.NewTopic(name, partitions=PARTITIONS))
    return name


ACTIONS: dict[str, dict[str, Run]] = {
    "write": {OURS: write("ottla"), EXACTLY: write("ottla", exactlyOnce="true"), THEIRS: write("kafka")},
    "share": {SHARE: share},
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_options(windows.parser(__doc__), arguments, rounds=windows.ROUNDS, rows=ROWS)
    done = []
    with windows.running(options) as setup:
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
