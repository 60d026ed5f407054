"""Offsets in checkpoints: in the format of Spark's own Kafka source, with some additions.

    {"__ottla":{"ids":{"orders":"MkTRz5GiTDi1pVuKTPP0yA"},"v":1},"orders":{"0":123,"1":7}}

Topics and partitions are sorted, because Spark compares texts. The additions are under a key that is not a valid topic:
the topics' ids, which tell a topic that was deleted and created again, and in the first batch the start of the query:
Spark asks for the start again when it repeats that batch, and `latest` is another offset by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.metadata import TopicPartition
from ottla.spark.errors import OttlaSparkError

__all__ = ["RESERVED", "Offsets", "SourceOffset", "TopicPartition", "named"]

RESERVED: Final = "__ottla"
VERSION: Final = 1
Offsets = Mapping[TopicPartition, int]


def named(at: TopicPartition) -> str:
    return f"topic {at.topic} partition {at.partition}"


class SourceOffset(NamedTuple):
    """An offset in each partition."""

    offsets: Offsets
    ids: Mapping[str, str] = {}
    """The topics' ids in Kafka's text form."""
    start: Offsets | None = None
    """The start of the query; only at the end of its first batch."""

    def to_json(self) -> dict[str, Any]:
        """The form that Spark stores; equal offsets have equal texts."""
        found: dict[str, Any] = _by_topic(self.offsets)
        if self.ids or self.start is not None:
            more: dict[str, Any] = {"ids": dict(sorted(self.ids.items())), "v": VERSION}
            if self.start is not None:
                more["start"] = _by_topic(self.start)
            found[RESERVED] = dict(sorted(more.items()))
        return dict(sorted(found.items()))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SourceOffset:
        """A stored offset, of ours or of Spark's own source. Raises OttlaSparkError if it is neither."""
        more = stored.get(RESERVED, {})
        version = more.get("v", VERSION)
        if version != VERSION:
            raise OttlaSparkError(f"the checkpoint has offsets of version {version}; this ottla reads {VERSION}")
        start = more.get("start")
        try:
            offsets = _flat((name, each) for name, each in stored.items() if name != RESERVED)
            return cls(offsets, more.get("ids", {}), None if start is None else _flat(start.items()))
        except (AttributeError, TypeError, ValueError):
            raise OttlaSparkError(
                f"the checkpoint has offsets that cannot be read: {json.dumps(stored)[:200]}"
            ) from None


def _by_topic(offsets: Offsets) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for at, offset in sorted(offsets.items()):
        found.setdefault(at.topic, {})[str(at.partition)] = offset
    return found


def _flat(topics: Iterable[tuple[str, Mapping[str, int]]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(name, int(partition)): int(offset)
        for name, partitions in topics
        for partition, offset in partitions.items()
    }
