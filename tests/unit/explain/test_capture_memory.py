"""A capture of any size is read in the same memory."""

import tracemalloc
from pathlib import Path

import pytest

from benchmarks.explain.traffic import write_capture
from ottla.explain.capture import Capture, Seen
from ottla.explain.capture_file import read_packets
from ottla.explain.exchanges import Exchange
from ottla.explain.facts import TopicNames, exchange_facts

PEAK_BYTES_MAX = 6_000_000
SEGMENT_BYTES = 8_000  # as interfaces hand them up that put segments together


def peak_of(path: Path) -> tuple[int, int]:
    """The most memory in use while reading, and the number of exchanges."""
    names = TopicNames()
    count = 0
    tracemalloc.start()
    with path.open("rb") as file:
        for seen in Capture().read(read_packets(file)):
            if isinstance(seen, Seen) and isinstance(seen.event, Exchange):
                exchange_facts(seen.event, names)
                count += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, count


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


def test_twenty_megabytes_take_no_more_memory_than_two(folder: Path):
    small, large = folder / "small.pcap", folder / "large.pcap"
    write_capture(small, 2_000_000, SEGMENT_BYTES)
    write_capture(large, 20_000_000, SEGMENT_BYTES)
    peak_of(small)  # codecs are compiled and modules loaded once
    small_peak, small_count = peak_of(small)
    large_peak, large_count = peak_of(large)
    assert large_count > 9 * small_count > 0
    assert large_peak < small_peak + 500_000
    assert large_peak < PEAK_BYTES_MAX
