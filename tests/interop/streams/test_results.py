"""Real Kafka Streams applications give the same results on ottla and on Apache Kafka."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.interop.streams.conftest import MakeApp
from tests.interop.streams.feeding import create, feed, wait_for

LINES = [("1", "tea milk tea"), ("2", "bread"), ("3", "milk tea"), ("4", "jam bread"), ("5", "tea")]
LEFT = [("a", "A1"), ("b", "B1"), ("c", "C1"), ("a", "A2")]
RIGHT = [("a", "x"), ("b", "y"), ("d", "z")]


def counts(lines: list[tuple[str, str]]) -> dict[str, str]:
    return {word: str(number) for word, number in Counter(word for _, line in lines for word in line.split()).items()}


def test_stateless(servers: str, prefix: str, start: MakeApp):
    create(servers, f"{prefix}-words", f"{prefix}-out")
    feed(servers, f"{prefix}-words", [("1", "tea"), ("2", ""), ("3", "milk")])
    app = start("stateless", prefix, servers)
    wait_for(servers, f"{prefix}-out", {"1": "TEA", "3": "MILK"})
    app.close()


def test_aggregation_with_repartition_and_changelog(servers: str, prefix: str, start: MakeApp):
    create(servers, f"{prefix}-words", f"{prefix}-out")
    feed(servers, f"{prefix}-words", LINES)
    app = start("count", prefix, servers, num_stream_threads=2)
    wait_for(servers, f"{prefix}-out", counts(LINES))
    app.close()
    # What was counted is found again: by committed offsets and the changelog.
    feed(servers, f"{prefix}-words", LINES)
    again = start("count", prefix, servers)
    wait_for(servers, f"{prefix}-out", counts(LINES + LINES))
    again.close()


@pytest.mark.parametrize("topology", ["table-table", "stream-table", "global"])
def test_joins(servers: str, prefix: str, start: MakeApp, topology: str):
    create(servers, f"{prefix}-left", f"{prefix}-right", f"{prefix}-out")
    feed(servers, f"{prefix}-right", RIGHT, timestamp_ms=1_700_000_000_000)
    feed(servers, f"{prefix}-left", LEFT, timestamp_ms=1_700_000_001_000)
    app = start(topology, prefix, servers)
    wait_for(servers, f"{prefix}-out", {"a": "A2+x", "b": "B1+y"})
    app.close()


def test_windowed_join(servers: str, prefix: str, start: MakeApp):
    """Within ten seconds of each other: c is too far away."""
    create(servers, f"{prefix}-left", f"{prefix}-right", f"{prefix}-out", partitions=1)
    base_ms = 1_700_000_000_000
    for at_ms, (key, value) in ((0, ("a", "A")), (1_000, ("b", "B")), (2_000, ("c", "C"))):
        feed(servers, f"{prefix}-left", [(key, value)], timestamp_ms=base_ms + at_ms)
    for at_ms, (key, value) in ((5_000, ("a", "x")), (6_000, ("b", "y")), (60_000, ("c", "z"))):
        feed(servers, f"{prefix}-right", [(key, value)], timestamp_ms=base_ms + at_ms)
    app = start("windowed", prefix, servers)
    wait_for(servers, f"{prefix}-out", {"a": "A+x", "b": "B+y"}, 1)
    app.close()
