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
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from benchmarks import runner
from benchmarks.runner import Case, Measurement
from benchmarks.spark.actions import ACTIONS, Action, Source
from benchmarks.spark.filling import fill
from benchmarks.spark.floor import Floor
from benchmarks.spark.machine import Busy, WorkerMemory
from ottla.client.blocking import BlockingClient
from ottla.client.offsets import LATEST, list_offsets
from ottla.spark import session
from tests.interop.apache import ApacheKafka
from tests.interop.jars import SPARK_KAFKA, libraries
from tests.interop.serving import OttlaServe

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "cramjam")
OURS, FILES, THEIRS, FLOOR = "ottla", "ottla-log", "Spark's connector", "ready-made"
PARTITIONS = 4
MIB = 1024 * 1024


class Load(NamedTuple):
    records: int
    value_bytes: int
    codec: str

    def __str__(self) -> str:
        return f"{self.records:,} x {self.value_bytes} B {self.codec}"


LOADS = [
    Load(records, size, codec) for records, size in ((5_000_000, 100), (500_000, 1024)) for codec in ("none", "zstd")
]
QUICK = 10
"""A look takes a tenth of the records."""


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="windows that count, of each source and action (5; 2 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer records: a look, not a claim")
    parser.add_argument("--only", default="", help="run the cases whose name contains this text")
    parser.add_argument("--broker", default="apache", choices=("apache", "ottla"))
    parser.add_argument("--records", type=int, default=0, help="so many records instead of each load's own number")
    parser.add_argument("--memory", default="4g", help="of the driver (%(default)s)")
    parser.add_argument("--out", type=Path, help="file for the results (benchmarks/results/spark.json)")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.window = 0.0
    return options


def loads(options: argparse.Namespace) -> Iterator[Load]:
    for load in LOADS:
        records = options.records or (load.records // QUICK if options.quick else load.records)
        chosen = load._replace(records=records)
        if any(options.only in name_of(action, chosen) for action in ACTIONS):
            yield chosen


def name_of(action: str, load: Load) -> str:
    return f"{action}, {load}"


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass
class Windows:
    """What was seen of each source at one action."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    """The largest Python worker."""
    busy: list[float] = field(default_factory=list)
    """Which part of the machine others took."""

    def add(self, name: str, seconds: float, memory: int, busy: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)
        self.memory[name] = max(self.memory.get(name, 0), memory)
        self.busy.append(busy)

    @property
    def foreign(self) -> float:
        return statistics.median(self.busy)


def measure(options: argparse.Namespace) -> list[tuple[Case, list[Measurement]]]:
    done = []
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base:
        kind = ApacheKafka if options.broker == "apache" else OttlaServe
        with kind(Path(base) / "broker") as broker:
            spark = new_session(options.memory)
            try:
                for number, load in enumerate(loads(options)):
                    done += _measure_load(spark, broker, load, f"load-{number}", options)
            finally:
                spark.stop()
    return done


def new_session(memory: str) -> SparkSession:
    jars = ",".join(str(path) for path in libraries(SPARK_KAFKA).glob("*.jar"))
    conf = {
        "spark.driver.memory": memory,
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    spark = session("local[2]", conf=conf)
    spark.dataSource.register(Floor)
    return spark


def _measure_load(
    spark: SparkSession, broker: ApacheKafka | OttlaServe, load: Load, topic: str, options: argparse.Namespace
) -> list[tuple[Case, list[Measurement]]]:
    print(f"filling: {load}", file=sys.stderr, flush=True)
    fill(broker.bootstrap_servers, topic, partitions=PARTITIONS, **load._asdict())
    records = _record_count(broker.bootstrap_servers, topic)
    found = []
    for action in ACTIONS:
        name = name_of(action, load)
        if options.only in name:
            sources = _sources(broker, topic, load, records, is_stream=action == "catch-up")
            windows = _measure_action(spark, ACTIONS[action], sources, records, options.rounds)
            print("\n".join(table(name, windows, records)), flush=True)
            facts: dict[str, int | str] = {"records": records, "foreign_cpu": f"{windows.foreign:.0%}"}
            measured = [Measurement(name, each, 1, tuple(values)) for each, values in windows.seconds.items()]
            found.append((Case(name, [], facts), measured))
    return found


def _measure_action(spark: SparkSession, run: Action, sources: list[Source], records: int, rounds: int) -> Windows:
    windows = Windows()
    for number in range(rounds + 1):
        for source in sources:
            with Busy() as others, WorkerMemory() as workers:
                seconds = run(spark, source, records)
            if number:  # the first is for the JVM
                windows.add(source.name, seconds, workers.peak_bytes, others.share)
    return windows


def _sources(
    broker: ApacheKafka | OttlaServe, topic: str, load: Load, records: int, *, is_stream: bool
) -> list[Source]:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    files = {"path": str(broker.data_dir), "topic": topic}
    made = {"records": str(records), "value_bytes": str(load.value_bytes)}
    found = [Source(OURS, "ottla", options), Source(THEIRS, "kafka", options)]
    return found if is_stream else [*found, Source(FILES, "ottla-log", files), Source(FLOOR, "ready-made", made)]


def _record_count(bootstrap_servers: str, topic: str) -> int:
    with BlockingClient(bootstrap_servers) as client:
        ends = client.call(list_offsets, {(topic, partition): LATEST for partition in range(PARTITIONS)})
    return sum(each.offset for each in ends.values())


def table(name: str, windows: Windows, records: int) -> list[str]:
    medians = {each: statistics.median(values) for each, values in windows.seconds.items()}
    lines = [f"{name} (others took {windows.foreign:.0%} of the machine)"]
    lines.append(f"  {'':20}{'rows/s':>12}{'range':>25}{'of Spark':>10}{'workers':>10}")
    for each, values in windows.seconds.items():
        rate, ratio = records / medians[each], medians.get(THEIRS, medians[each]) / medians[each]
        span = f"{records / max(values):,.0f}..{records / min(values):,.0f}"
        lines.append(f"  {each:20}{rate:>12,.0f}{span:>25}{ratio:>9.2f}x{windows.memory[each] // MIB:>6} MiB")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    runner.save("spark", measure(options), options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
