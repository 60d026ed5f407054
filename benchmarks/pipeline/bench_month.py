"""`ottla pipeline run` over made-up months of growing size: time, memory, and whether both stay in proportion.

    python -m benchmarks.pipeline.bench_month [--sizes 1000000,10000000] [--groups 10000] [--skewed] [--cluster]
        [--out FILE]

Each month is written first (benchmarks/pipeline/month.py), then read by a process of its own, on two cores of this
machine or, with --cluster, on a standalone Spark cluster of a master and two workers. Memory is that of all processes
together, sampled twice a second. There is nobody to stand beside: what is compared are the sizes. With --skewed, one
group has half of all records of consumer groups. Linux only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import runner
from benchmarks.pipeline.month import Month, write_month
from benchmarks.pipeline.usage import children, proportional_bytes
from benchmarks.runner import Size
from tests.interop.spark.sessions import standalone_cluster

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "msgspec")
SIZES = {Size.FULL: "1000000,10000000,100000000", Size.QUICK: "1000000", Size.SMOKE: "20000"}
SAMPLE_S = 0.5
MEBIBYTE = 1 << 20


class Figures(NamedTuple):
    records: int
    segment_bytes: int
    seconds: float
    memory_bytes: int
    tables: dict[str, int]
    findings_as_planted: bool


class Watch:
    """The most memory that the processes below one had together. What they share is counted once."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.peak_bytes = 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, self._together())

    def _together(self) -> int:
        try:
            return sum(proportional_bytes(each) for each in children(self._pid) if each != self._pid)
        except OSError:  # one has ended meanwhile
            return 0


@contextmanager
def master(directory: Path, is_cluster: bool) -> Iterator[str]:
    """Where the work is done."""
    if not is_cluster:
        yield "local[2]"
        return
    directory.mkdir(parents=True)
    with standalone_cluster(directory) as url:
        yield url


def run_pipeline(month: Month, out: Path, url: str) -> tuple[float, int]:
    command = [sys.executable, "-m", "ottla", "pipeline", "run", "--from-log", str(month.directory)]
    command += [
        "--observations",
        str(month.observations),
        "--out",
        str(out),
        "--master",
        url,
        "--conf",
        f"spark.local.dir={out.parent}",
        "--json",
    ]
    began = time.perf_counter()
    with (out.parent / "run.log").open("wb") as log:
        # Workers of a cluster have this environment's packages by its interpreter.
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        with Watch(os.getpid()) as watch:  # a cluster's processes are ours as well
            status = process.wait()
    if status:
        raise SystemExit((out.parent / "run.log").read_text(encoding="utf-8")[-2_000:])
    return time.perf_counter() - began, watch.peak_bytes


def measure(size: int, options: Namespace, base: Path) -> Figures:
    directory = base / f"month-{size}"
    month = write_month(directory / "month", min(options.groups, size // 100), size, is_skewed=options.skewed)
    try:
        with master(directory / "cluster", options.cluster) as url:
            seconds, memory_bytes = run_pipeline(month, directory / "out", url)
        run = json.loads((directory / "out" / "run.json").read_text(encoding="utf-8"))
        tables = {each["name"]: each["rows"] for each in run["tables"]}
        report = json.loads((directory / "out" / "report.json").read_text(encoding="utf-8"))
        return Figures(month.records, month.size_bytes, seconds, memory_bytes, tables, planted(report, month))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def planted(report: dict[str, Any], month: Month) -> bool:
    """Whether the groups whose epochs climb are found, and those with poison records, and no others."""
    found = {(each["rule"], each["subject"]["name"]) for each in report["findings"]}
    expected = {("epochs-climb", name) for name in month.climbing} | {
        ("poison-records", name) for name in month.poisoned
    }
    return {each for each in found if each[0] in ("epochs-climb", "poison-records")} == expected


def line(figures: Figures) -> str:
    return (
        f"{figures.records:>13,} records  {figures.segment_bytes / MEBIBYTE:>8,.0f} MiB  {figures.seconds:>8,.1f} s  "
        f"{figures.records / figures.seconds:>9,.0f}/s  {figures.memory_bytes / MEBIBYTE:>7,.0f} MiB of memory  "
        f"{'as planted' if figures.findings_as_planted else 'FINDINGS DIFFER'}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = runner.parser(__doc__, needs_java=True)
    parser.add_argument("--sizes", help=f"records of each month ({SIZES[Size.FULL]})")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--skewed", action="store_true", help="one group has half of all records of groups")
    parser.add_argument("--cluster", action="store_true", help="a standalone Spark cluster of two workers")
    options = runner.read_options(parser, arguments, sizes=SIZES)
    found: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="ottla-month-") as base:
        for size in map(int, options.sizes.split(",")):
            found.append(measure(size, options, Path(base)))
            print(line(found[-1]), flush=True)
    where = "standalone cluster of two workers" if options.cluster else "local[2]"
    where += ", skewed" if options.skewed else ""
    path = runner.results_path("pipeline", options)
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    months = {"surroundings": runner.describe_surroundings(PACKAGES), "months": [each._asdict() for each in found]}
    runner.write(path, known | {where: months}, options)
    return 0 if all(each.findings_as_planted for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
