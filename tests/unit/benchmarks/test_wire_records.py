"""The benchmark of records: every way of reading finds the same records, and the results are written."""

import pytest

from benchmarks.runner import Measurement
from benchmarks.wire import bench_records
from ottla.wire.batch import Compression, split_batches

# kafka-python reads its schemas in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


def test_data_is_what_it_claims():
    (chunk,) = bench_records.chunks(500, 100)
    records = [record for batch in split_batches(chunk) for record in batch.records()]
    assert [record.offset for record in records] == list(range(500))
    assert {len(record.value or b"") for record in records} == {100}
    assert len({record.value for record in records}) == 500
    assert len(list(split_batches(chunk))) > 1


def test_every_way_reads_all_records():
    for one in bench_records.cases(200):
        assert one.facts is not None
        for subject in one.subjects:
            assert subject.call(*subject.arguments[0]) == one.facts["records"]


def test_a_reader_that_skips_records_is_found_out():
    with pytest.raises(AssertionError, match="reads 0 records of 10"):
        bench_records.subject("nobody", lambda _: 0, bench_records.chunks(10), 10)


@pytest.mark.parametrize("codec", list(Compression))
def test_chunks_of_every_codec(codec: Compression):
    assert bench_records.ours_positions(bench_records.chunks(50, 100, codec)) == 50


def test_rates_are_records_a_second():
    lines = bench_records.rates([Measurement("case", "x", 1, (0.5, 1.0))], 2_000_000)
    assert lines[1].split() == ["x", "4.00", "2.67"]
