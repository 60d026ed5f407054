"""How ranges are cut into tasks."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.topic.ranges import Range, split_ranges
from tests.unit.spark.fake_cluster import at

RECORDED = json.loads((Path(__file__).parent / "recorded_ranges.json").read_text())
"""What KafkaOffsetRangeCalculator of Spark 4.2.0 has answered; see tests/interop/spark/record_ranges.py."""


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['min']}-{case['max']}-{len(case['ranges'])}")
def test_cuts_are_those_of_sparks_own_source(case: dict[str, object]):
    ranges = [Range(at(partition), start, until) for partition, start, until in case["ranges"]]  # type: ignore[attr-defined]
    found = split_ranges(ranges, case["min"], case["max"])  # type: ignore[arg-type]
    assert [[each.at.partition, each.start, each.until] for each in found] == case["parts"]


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5000)), max_size=8),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 500),
)
def test_every_offset_is_read_once(sizes: list[tuple[int, int]], wanted: int | None, most: int | None):
    ranges = [Range(at(index), start, start + size) for index, (start, size) in enumerate(sizes)]
    found = split_ranges(ranges, wanted, most)
    assert all(each.size > 0 for each in found)
    assert found == sorted(found)
    for whole in ranges:
        parts = [each for each in found if each.at == whole.at]
        assert sum(each.size for each in parts) == whole.size
        assert all(one.until == other.start for one, other in pairwise(parts))
        assert most is None or all(each.size <= most for each in parts)


def test_a_skewed_partition_gets_most_tasks():
    ranges = [Range(at(0), 0, 90_000), *(Range(at(index), 0, 2_500) for index in range(1, 5))]
    found = split_ranges(ranges, min_partitions=20)
    assert [sum(each.at.partition == index for each in found) for index in range(5)] == [16, 1, 1, 1, 1]
    assert max(each.size for each in found) == 5625
