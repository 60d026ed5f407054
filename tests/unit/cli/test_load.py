"""When the records of a load are due, and how its result is drawn."""

from __future__ import annotations

import pytest

from ottla.cli.latencies import Latencies
from ottla.cli.load.pace import Due, Pace
from ottla.cli.load.plot import latency_bars, over_time
from ottla.cli.load.run import Measured

MS_NS = 1_000_000


def test_at_a_rate_records_wait_for_others_but_not_for_longer_than_linger():
    pace = Pace(1000.0, total=None, seconds=1.0, batch_max=50)
    assert pace.wait_s(0.0, 0.005) == pytest.approx(0.005)
    assert pace.take(0.005) == Due(0, 6)
    assert pace.wait_s(0.005, 0.005) == pytest.approx(0.006)
    assert pace.due_at_s(6) == pytest.approx(0.006)


def test_a_full_batch_does_not_wait():
    pace = Pace(1000.0, total=None, seconds=1.0, batch_max=3)
    assert pace.wait_s(0.0, 0.005) == pytest.approx(0.002)
    assert pace.take(0.002) == Due(0, 3)


def test_what_could_not_be_sent_in_time_is_sent_later():
    pace = Pace(1000.0, total=None, seconds=1.0, batch_max=50)
    assert pace.wait_s(0.9, 0.005) == 0.0
    taken = [pace.take(0.9) for _ in range(3)]
    assert taken == [Due(0, 50), Due(50, 50), Due(100, 50)]


def test_a_rate_and_a_time_are_a_number_of_records():
    pace = Pace(100.0, total=None, seconds=0.1, batch_max=50)
    assert pace.take(5.0) == Due(0, 10)
    assert pace.is_over(0.0), "they are all taken"


def test_without_a_rate_batches_are_full_until_the_time_is_over():
    pace = Pace(None, total=None, seconds=2.0, batch_max=7)
    assert pace.wait_s(0.0, 1.0) == 0.0
    assert [pace.take(1.0), pace.take(1.9)] == [Due(0, 7), Due(7, 7)]
    assert not pace.is_over(1.99)
    assert pace.is_over(2.0)


def test_the_number_of_records_is_kept():
    pace = Pace(None, total=10, seconds=None, batch_max=7)
    assert [pace.take(0.0), pace.take(0.0)] == [Due(0, 7), Due(7, 3)]
    assert pace.is_over(0.0)


def test_bars_show_the_ranges_that_have_some():
    latencies = Latencies()
    for each_ms in (0.5, 0.5, 0.5, 4):
        latencies.add(round(each_ms * MS_NS))
    assert list(latency_bars(latencies)) == [
        "",
        f"   ≤ 1 ms  {'█' * 30:<40}  75.00%",
        f"   ≤ 2 ms  {'':<40}   0.00%",
        f"   ≤ 5 ms  {'█' * 10:<40}  25.00%",
    ]
    assert list(latency_bars(Latencies())) == []


def test_a_long_run_fits_into_a_line():
    measured = Measured()
    for second in range(600):
        measured.second(second).writes.add(second * MS_NS)
    _, records, late = over_time(measured)
    assert records == f"records/s  {'█' * 60}  up to 1"
    assert late.startswith("p99 in ms  ▁")
    assert late.split("  up to ")[0].endswith("█")
    assert float(late.split()[-1]) == pytest.approx(599, rel=0.006)
