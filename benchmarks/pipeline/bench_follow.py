"""`ottla pipeline follow`, a thousand steps of a growing cluster: does the last step cost as much as the first?

    python -m benchmarks.pipeline.bench_follow [--quick] [--steps 1000] [--note TEXT] [--out FILE]

Each step finds half a minute of a cluster that was not there before: commits, rebalances, deliveries of a share group
and samples. Every tenth step has a group more. The steps are those of one process on two cores of this machine. Seconds
include reading, archiving, all tables and the report. Processor time and bytes are those of all processes of the
pipeline; bytes that pass pipes between them count as read and written. Linux only.

The figures of an hour are medians of its 120 steps. Steps of the first hour have less to do than others: rows of
consumer_lag are computed from the hour before them, too.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import runner
from benchmarks.pipeline.usage import Usage
from benchmarks.runner import Size
from ottla.health.samples import OBSERVATIONS
from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.pipeline.follow import Follower
from ottla.spark.pipeline.options import RunOptions
from ottla.spark.pipeline.origins import directory_origin
from ottla.spark.pipeline.session import pipeline_session
from tests.unit.spark.pipeline.cluster_files import NOON, ClusterFiles

PACKAGES = ("pyspark", "pyarrow", "numpy", "msgspec")
STEPS = {Size.FULL: 1_000, Size.QUICK: 60, Size.SMOKE: 4}
STEP_MS = 30_000
STEPS_PER_HOUR = HOUR_MS // STEP_MS
GROUPS = 20
"""So many groups commit and are sampled in each step, whichever there are."""
EDGE = 50
"""So many steps at the beginning and at the end are compared; of few steps, the first and the last third."""
SHOWN = 20
"""The medians of so many steps are shown at a time."""
WARM = 10
"""So many steps are left out at the beginning, in which Java compiles."""


class StepFigures(NamedTuple):
    seconds: float
    cpu_seconds: float
    read_bytes: int
    written_bytes: int


def grow(cluster: ClusterFiles, step: int) -> None:
    """Half a minute of the cluster."""
    start = NOON + step * STEP_MS
    newest = step // 10
    groups = [f"group-{(newest - number) % (newest + 1)}" for number in range(GROUPS)]
    if step % 10 == 0:
        cluster.rebalance(start, f"group-{newest}", 1, "one")
    cluster.rebalance(start + 1_000, f"group-{step % (newest + 1)}", 2 + step, f"member-{step}")
    for second in range(0, STEP_MS // 1_000, 5):
        ts = start + second * 1_000
        cluster.share(ts, "risk", [(6 * step + second // 5, 6 * step + second // 5, 2, 1)], start=6 * step)
        cluster.quorum(ts, epoch=1 + step // 100)
        for number, group in enumerate(groups):
            cluster.commit(ts + number, group, 6 * step + second // 5)
            cluster.lag(ts + number, group, committed=6 * step, end=6 * step + second)


def measure(steps: int, base: Path) -> list[StepFigures]:
    log, out = base / "cluster", base / "out"
    (out / "work").mkdir(parents=True)
    spark = pipeline_session("local[2]", log=base / "spark.log")
    follower = Follower(
        lambda: directory_origin([str(log)], OBSERVATIONS), RunOptions(out=out), out / "work", lambda _: None
    )
    found: list[StepFigures] = []
    usage = Usage()
    try:
        for step in range(steps):
            with ClusterFiles(log) as cluster:
                cluster._seq = step * 10_000
                grow(cluster, step)
            before, began = usage.now(), time.perf_counter()
            follower.step(spark)
            seconds, used = time.perf_counter() - began, usage.now().minus(before)
            found.append(
                StepFigures(round(seconds, 3), round(used.cpu_seconds, 2), used.read_bytes, used.written_bytes)
            )
            if (step + 1) % SHOWN == 0:
                print(line(f"steps to {step + 1:>5}", found[-SHOWN:]), flush=True)
    finally:
        follower.close()
        spark.stop()
    return found


def middle(steps: Sequence[StepFigures]) -> StepFigures:
    seconds, cpu, read, written = (statistics.median(each) for each in zip(*steps, strict=True))
    return StepFigures(round(seconds, 3), round(cpu, 3), int(read), int(written))


def line(name: str, steps: Sequence[StepFigures]) -> str:
    found = middle(steps)
    traffic = f"read {found.read_bytes:>11,} B  written {found.written_bytes:>11,} B"
    return f"{name}  {found.seconds:>7.2f} s  {found.cpu_seconds:>7.2f} s of processor  {traffic}"


def by_hour(steps: Sequence[StepFigures]) -> list[dict[str, float]]:
    starts = range(0, len(steps), STEPS_PER_HOUR)
    return [middle(steps[start : start + STEPS_PER_HOUR])._asdict() for start in starts]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = runner.parser(__doc__, needs_java=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--note", default="", help="kept with the results: what else the machine was doing")
    options = runner.read_options(parser, arguments, steps=STEPS)
    with tempfile.TemporaryDirectory(prefix="ottla-follow-") as base:
        found = measure(options.steps, Path(base))
    steady = found[WARM:] if len(found) > WARM else found
    edge = max(1, min(EDGE, len(steady) // 3))
    first, last = middle(steady[:edge]), middle(steady[-edge:])
    print(line("first", steady[:edge]), line("last ", steady[-edge:]), sep="\n")
    content = {
        "surroundings": runner.describe_surroundings(PACKAGES),
        "note": options.note,
        "step_ms": STEP_MS,
        "first": first._asdict(),
        "last": last._asdict(),
        "last_over_first": round(last.cpu_seconds / first.cpu_seconds, 3),
        "hours": by_hour(found),
        "steps": [each._asdict() for each in found],
    }
    runner.write(runner.results_path("pipeline-follow", options), content, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
