"""Offsets as ranges, for journals: `["orders", 2, 10, 24]` means the records 10 to 24 of orders-2."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client import TopicPartition

__all__ = ["Range", "ranges_of"]

Range = tuple[str, int, int, int]
"""Topic, partition, first and last offset."""


def ranges_of(offsets: Iterable[tuple[TopicPartition, int]]) -> list[Range]:
    """The ranges of some offsets; consecutive ones become one range."""
    found: list[Range] = []
    for at, offset in sorted(offsets):
        if found and found[-1][:2] == (at.topic, at.partition) and found[-1][3] + 1 == offset:
            found[-1] = (*found[-1][:3], offset)
        else:
            found.append((at.topic, at.partition, offset, offset))
    return found
