"""Ten times the records in the same memory: what a Python worker holds while a task reads on and on.

    python -m benchmarks.spark.bench_growth [--records 50000000] [--broker ottla] [--out FILE]

One partition, so that one worker reads all of it; aggregated, so that nothing else grows. The memory of the worker is
sampled ten times a second; what counts is the most it held in each quarter of the run.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import runner
from benchmarks.runner import Case, Measurement
from benchmarks.spark.actions import Source, aggregate
from benchmarks.spark.bench_sources import MIB, OURS, PACKAGES, new_session
from benchmarks.spark.filling import fill
from benchmarks.spark.machine import WorkerMemory
from ottla.client.blocking import BlockingClient
from ottla.client.offsets import LATEST, list_offsets
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe

QUARTERS = 4


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--broker", default="apache", choices=("apache", "ottla"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    options.window = 0.0
    if options.quick:
        options.records //= 10
    seconds, records, peaks = measure(options)
    shown = ", ".join(f"{each // MIB} MiB" for each in peaks)
    print(f"{records:,} rows in {seconds:.0f} s; the worker held at most, quarter by quarter: {shown}", flush=True)
    case = Case("growth", [], {"records": records, "peak_bytes_of_quarters": str(peaks)})
    runner.save("spark-growth", [(case, [Measurement(case.name, OURS, 1, (seconds,))])], options, PACKAGES)
    return 0


def measure(options: argparse.Namespace) -> tuple[float, int, list[int]]:
    kind = ApacheKafka if options.broker == "apache" else OttlaServe
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base, kind(Path(base) / "broker") as broker:
        servers = broker.bootstrap_servers
        fill(servers, "growth", records=options.records, value_bytes=100, partitions=1, codec="zstd")
        with BlockingClient(servers) as client:
            records = client.call(list_offsets, {("growth", 0): LATEST})[("growth", 0)].offset  # type: ignore[index]
        spark = new_session("2g")
        try:
            with WorkerMemory() as worker:
                source = Source(OURS, "ottla", {"kafka.bootstrap.servers": servers, "subscribe": "growth"})
                seconds = aggregate(spark, source, records)
        finally:
            spark.stop()
    return seconds, records, quarters(worker.samples)


def quarters(samples: list[int]) -> list[int]:
    """The most in each quarter, of the samples with a worker."""
    held = [each for each in samples if each]
    size = max(1, -(-len(held) // QUARTERS))
    return [max(held[start : start + size]) for start in range(0, len(held), size)]


if __name__ == "__main__":
    sys.exit(main())
