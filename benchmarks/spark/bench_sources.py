"""Reading a topic with Spark: our sources and Spark's own connector in turn, in one session, on one broker.

    python -m benchmarks spark [--quick] [--rounds 5] [--only TEXT] [--broker ottla] [--records N] [--out FILE]

aggregate   sum(length(value)) and max(offset): all bytes are read, nothing is written
parquet     every column into Parquet files
catch-up    a stream from the first record to the last, into nothing (Trigger.AvailableNow)

Topics have four partitions: 5,000,000 values of 100 bytes and 500,000 of a KiB, plain and zstd. The first run of each
action is not counted: the JVM is three to four times slower then. Beside the rates stands how busy other programs kept
the machine; above a twentieth, only the ratios count. `ready-made` is the floor. Java and Maven are needed; Linux only.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks import runner
from benchmarks.runner import Size
from benchmarks.spark import windows
from benchmarks.spark.actions import ACTIONS, Source
from benchmarks.spark.filling import fill
from benchmarks.spark.windows import OURS, PACKAGES, THEIRS, Done, Setup
from ottla.client.blocking import BlockingClient
from ottla.client.offsets import LATEST, list_offsets

FILES, FLOOR = "ottla-log", "ready-made"
PARTITIONS = 4


class Load(NamedTuple):
    records: int
    value_bytes: int
    codec: str

    def __str__(self) -> str:
        return f"{self.records:,} x {self.value_bytes} B {self.codec}"


FULL = [
    Load(records, size, codec) for records, size in ((5_000_000, 100), (500_000, 1024)) for codec in ("none", "zstd")
]
LOADS = {
    Size.FULL: FULL,
    Size.QUICK: [load._replace(records=load.records // 10) for load in FULL],
    Size.SMOKE: [Load(4_000, 100, "zstd")],
}


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    return runner.read_options(windows.parser(__doc__), arguments, rounds=windows.ROUNDS, loads=LOADS)


def loads(options: argparse.Namespace) -> Iterator[Load]:
    for load in options.loads:
        chosen = load._replace(records=options.records or load.records)
        if any(options.only in name_of(action, chosen) for action in ACTIONS):
            yield chosen


def name_of(action: str, load: Load) -> str:
    return f"{action}, {load}"


# --- measuring --------------------------------------------------------------------------------------------------------


def measure_load(setup: Setup, load: Load, topic: str, options: argparse.Namespace) -> Iterator[Done]:
    print(f"filling: {load}", file=sys.stderr, flush=True)
    fill(setup.servers, topic, partitions=PARTITIONS, **load._asdict())
    records = _record_count(setup.servers, topic)
    for action, act in ACTIONS.items():
        name = name_of(action, load)
        if options.only in name:
            sources = _sources(setup, topic, load, records, is_stream=action == "catch-up")
            runs = {source.name: partial(act, setup.spark, source, records) for source in sources}
            yield windows.measure(name, runs, records, options.rounds)


def _sources(setup: Setup, topic: str, load: Load, records: int, *, is_stream: bool) -> list[Source]:
    options = {"kafka.bootstrap.servers": setup.servers, "subscribe": topic}
    files = {"path": str(setup.broker.data_dir), "topic": topic}
    made = {"records": str(records), "value_bytes": str(load.value_bytes)}
    found = [Source(OURS, "ottla", options), Source(THEIRS, "kafka", options)]
    return found if is_stream else [*found, Source(FILES, "ottla-log", files), Source(FLOOR, "ready-made", made)]


def _record_count(bootstrap_servers: str, topic: str) -> int:
    with BlockingClient(bootstrap_servers) as client:
        ends = client.call(list_offsets, {(topic, partition): LATEST for partition in range(PARTITIONS)})
    return sum(each.offset for each in ends.values())


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    with windows.running(options) as setup:
        done = [
            each
            for number, load in enumerate(loads(options))
            for each in measure_load(setup, load, f"load-{number}", options)
        ]
    runner.save("spark", done, options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
