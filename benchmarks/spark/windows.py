"""What the benchmarks of Spark share: options, a broker with a session, windows in turn, and their table."""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from benchmarks import runner
from benchmarks.runner import Case, Measurement, Size
from benchmarks.spark.floor import Floor
from benchmarks.spark.machine import Busy, WorkerMemory
from ottla.spark import session
from tests.interop.apache import ApacheKafka
from tests.interop.jars import SPARK_KAFKA, libraries
from tests.interop.serving import OttlaServe

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "cramjam")
OURS, THEIRS = "ottla", "Spark's connector"
MIB = 1024 * 1024
ROUNDS = {Size.FULL: 5, Size.QUICK: 2, Size.SMOKE: 1}

Done = tuple[Case, list[Measurement]]


class Setup(NamedTuple):
    """Where it happens."""

    spark: SparkSession
    broker: ApacheKafka | OttlaServe

    @property
    def servers(self) -> str:
        return self.broker.bootstrap_servers


def parser(description: str | None) -> argparse.ArgumentParser:
    made = runner.parser(description, needs_java=True)
    made.add_argument("--broker", default="apache", choices=("apache", "ottla"))
    made.add_argument("--records", type=int, help="so many records instead of the usual number")
    made.add_argument("--memory", default="4g", help="of the driver (%(default)s)")
    return made


@contextmanager
def running(options: argparse.Namespace, **settings: object) -> Iterator[Setup]:
    """A broker and a session on two cores."""
    kind = ApacheKafka if options.broker == "apache" else OttlaServe
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base, kind(Path(base) / "broker", **settings) as broker:
        spark = new_session(options.memory)
        try:
            yield Setup(spark, broker)
        finally:
            spark.stop()


def new_session(memory: str) -> SparkSession:
    jars = ",".join(str(path) for path in libraries(SPARK_KAFKA).glob("*.jar"))
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    spark = session("local[2]", conf=conf)
    spark.dataSource.register(Floor)
    return spark


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


def measure(name: str, runs: Mapping[str, Callable[[], float]], rows: int, rounds: int) -> Done:
    """So many windows of each run, in turn; the first of each is for the JVM and does not count."""
    windows = Windows()
    for number in range(rounds + 1):
        for each, run in runs.items():
            with Busy() as others, WorkerMemory() as workers:
                seconds = run()
            if number:
                windows.add(each, seconds, workers.peak_bytes, others.share)
    print("\n".join(table(name, windows, rows)), flush=True)
    facts: dict[str, int | str] = {"records": rows, "foreign_cpu": f"{windows.foreign:.0%}"}
    return Case(name, [], facts), measurements(name, windows.seconds)


def measurements(name: str, seconds: Mapping[str, Sequence[float]]) -> list[Measurement]:
    return [Measurement(name, each, 1, tuple(values)) for each, values in seconds.items()]


def table(name: str, windows: Windows, records: int) -> list[str]:
    medians = {each: statistics.median(values) for each, values in windows.seconds.items()}
    lines = [f"{name} (others took {windows.foreign:.0%} of the machine)"]
    lines.append(f"  {'':28}{'rows/s':>12}{'range':>25}{'of Spark':>10}{'workers':>10}")
    for each, values in windows.seconds.items():
        span = f"{records / max(values):,.0f}..{records / min(values):,.0f}"
        ratio = f"{medians[THEIRS] / medians[each]:.2f}x" if THEIRS in medians else ""
        rate = records / medians[each]
        lines.append(f"  {each:28}{rate:>12,.0f}{span:>25}{ratio:>10}{windows.memory[each] // MIB:>6} MiB")
    return lines
