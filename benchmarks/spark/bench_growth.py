"""Ten times the records in the same memory: what a Python worker holds while a task reads on and on.

    python -m benchmarks.spark.bench_growth [--records 50000000] [--quick] [--broker ottla] [--out FILE]

One partition, so that one worker reads all of it; aggregated, so that nothing else grows. The memory of the worker is
sampled ten times a second; what counts is the most it held in each quarter of the run.
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import runner
from benchmarks.runner import Case, Size, quarters
from benchmarks.spark import windows
from benchmarks.spark.actions import Source, aggregate
from benchmarks.spark.filling import fill
from benchmarks.spark.machine import WorkerMemory
from benchmarks.spark.windows import MIB, OURS, PACKAGES
from ottla.client.blocking import BlockingClient
from ottla.client.offsets import LATEST, list_offsets

RECORDS = {Size.FULL: 50_000_000, Size.QUICK: 5_000_000, Size.SMOKE: 4_000}


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_options(windows.parser(__doc__), arguments, rounds=dict.fromkeys(Size, 1), records=RECORDS)
    seconds, records, peaks = measure(options)
    shown = ", ".join(f"{each // MIB} MiB" for each in peaks)
    print(f"{records:,} rows in {seconds:.0f} s; the worker held at most, quarter by quarter: {shown}", flush=True)
    case = Case("growth", [], {"records": records, "peak_bytes_of_quarters": str(peaks)})
    runner.save("spark-growth", [(case, windows.measurements(case.name, {OURS: [seconds]}))], options, PACKAGES)
    return 0


def measure(options: argparse.Namespace) -> tuple[float, int, list[int]]:
    with windows.running(options) as setup:
        fill(setup.servers, "growth", records=options.records, value_bytes=100, partitions=1, codec="zstd")
        with BlockingClient(setup.servers) as client:
            records = client.call(list_offsets, {("growth", 0): LATEST})[("growth", 0)].offset  # type: ignore[index]
        with WorkerMemory() as worker:
            source = Source(OURS, "ottla", {"kafka.bootstrap.servers": setup.servers, "subscribe": "growth"})
            seconds = aggregate(setup.spark, source, records)
    return seconds, records, quarters(worker.samples)


if __name__ == "__main__":
    sys.exit(main())
