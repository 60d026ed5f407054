"""Partitions of names, as Java's String.hashCode gives them."""

from __future__ import annotations

import pytest

from ottla.core.coordinator.partitioner import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("console-consumer-12345", 158455506),
        ("größe", 98762257),
        ("polygenelubricants", -(1 << 31)),  # well known for this
        ("\U0001f600", 1772899),  # two units of UTF-16
    ],
)
def test_hashes_are_javas(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed


def test_the_smallest_number_has_no_opposite() -> None:
    assert partition_for("polygenelubricants", 50) == 0


@pytest.mark.parametrize("count", [1, 3, 50])
def test_partitions_lie_within_the_topic(count: int) -> None:
    found = {partition_for(f"group-{number}", count) for number in range(1000)}
    assert found == set(range(count))
