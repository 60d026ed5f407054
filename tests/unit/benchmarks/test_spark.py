"""The parts of Spark's benchmarks that need no Spark."""

import os

from benchmarks.spark import bench_growth, bench_latency, bench_sources, windows
from benchmarks.spark.filling import batches, values
from benchmarks.spark.machine import Busy, descendants
from ottla.wire.batch import split_batches


def test_batches_hold_records_of_the_wanted_size():
    made, count = batches(100, "zstd")
    assert len(set(made)) == len(made)
    (view,) = split_batches(made[0])
    records = view.records()
    assert len(records) == count
    assert {len(record.value or b"") for record in records} == {100}
    assert values(3, 1024, seed=1) == values(3, 1024, seed=1)


def test_a_part_can_be_chosen():
    options = bench_sources.read_options(["--only", "aggregate, 50,000 x 1024 B zstd", "--quick"])
    assert list(bench_sources.loads(options)) == [bench_sources.Load(50_000, 1024, "zstd")]
    assert len(list(bench_sources.loads(bench_sources.read_options([])))) == 4


def test_rates_stand_beside_those_of_sparks_connector():
    seen = windows.Windows()
    for name, seconds in (("ottla", 1.0), (windows.THEIRS, 2.0), ("ottla", 1.0), (windows.THEIRS, 4.0)):
        seen.add(name, seconds, 50 << 20, 0.02)
    lines = windows.table("aggregate", seen, 600)
    assert lines[0] == "aggregate (others took 2% of the machine)"
    assert lines[2].split() == ["ottla", "600", "600..600", "3.00x", "50", "MiB"]
    assert lines[3].split()[-4:] == ["150..300", "1.00x", "50", "MiB"]


def test_quarters_and_quantiles():
    assert bench_growth.quarters([0, 0, 1, 5, 2, 2, 9, 1, 3, 4]) == [5, 2, 9, 4]
    assert bench_latency.quantile(range(100), 0.5) == 50
    assert bench_latency.quantile([1.0], 0.99) == 1.0


def test_our_own_work_is_not_foreign():
    assert os.getpid() in descendants(os.getpid())
    with Busy() as busy:
        sum(range(100_000))
    assert 0 <= busy.share <= 1
