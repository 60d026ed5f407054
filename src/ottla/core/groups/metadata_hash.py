"""A number that changes with the topics that a group depends on: Kafka's own, so that a group taken over from another
broker does not rebalance for nothing.

A topic's hash is XXH3 over a magic byte, the two halves of its id, its name, its partition count and, for each
partition, its index and the racks of its replicas; a group's is XXH3 over the hashes of its topics in the order of
their names. Numbers are little-endian. A text is its UTF-16 units followed by how many they are; a rack has that number
in front too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final

import xxhash

from ottla.core.coordinator.contract import Topic

__all__ = ["combined_hash", "group_hash", "topic_hash"]

_MAGIC: Final = b"\x00"
_INT32: Final = Struct("<i")
_INT64: Final = Struct("<q")


def topic_hash(topic: Topic) -> int:
    parts = [
        _MAGIC,
        topic.topic_id[7::-1],
        topic.topic_id[:7:-1],
        _text(topic.name),
        _INT32.pack(topic.partition_count),
    ]
    for partition in range(topic.partition_count):
        parts.append(_INT32.pack(partition))
        for rack in sorted(topic.racks(partition)):
            parts.append(_INT32.pack(len(rack.encode("utf-16-le")) // 2))
            parts.append(_text(rack))
    return _signed(xxhash.xxh3_64_intdigest(b"".join(parts)))


def group_hash(topics: Iterable[Topic]) -> int:
    """0 if there are none."""
    return combined_hash({topic.name: topic_hash(topic) for topic in topics})


def combined_hash(hashes: Mapping[str, int]) -> int:
    """The hash of a group from those of its topics by name; 0 if there are none."""
    parts = [_INT64.pack(hashes[name]) for name in sorted(hashes)]
    return _signed(xxhash.xxh3_64_intdigest(b"".join(parts))) if parts else 0


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT32.pack(len(units) // 2)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
