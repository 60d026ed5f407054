"""The offset of a share group in Spark's log: the ranges of the batch that ends with it, and the owed ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.spark.errors import OttlaSparkError
from ottla.spark.share.ranges import Range

__all__ = ["Acquisition", "ShareOffset", "TopicIdPartition"]

VERSION: Final = 1


class TopicIdPartition(NamedTuple):
    """A partition, by the id of its topic in Kafka's text form."""

    topic_id: str
    partition: int


class Acquisition(NamedTuple):
    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class ShareOffset:
    seq: int
    """The number of the batch that ends here; 0 before the first."""
    group: str
    acquired: Mapping[TopicIdPartition, tuple[Acquisition, ...]] = field(default_factory=dict)
    """The ranges of that batch."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of its topics, by id."""
    owed: Mapping[TopicIdPartition, tuple[Range, ...]] = field(default_factory=dict)
    """Ranges of earlier batches whose acceptance is not known to be stored."""

    def to_json(self) -> dict[str, Any]:
        """Equal offsets give equal texts, because Spark compares texts."""
        return {
            "v": VERSION,
            "seq": self.seq,
            "group": self.group,
            "acq": _by_topic(self.acquired),
            "names": dict(sorted(self.names.items())),
            "owed": _by_topic(self.owed),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any], group: str) -> ShareOffset:
        if found.get("v") != VERSION or "seq" not in found:
            raise OttlaSparkError(
                "the checkpoint was not written by the format ottla-share; use another checkpointLocation"
            )
        if found["group"] != group:
            raise OttlaSparkError(f"option group: the checkpoint belongs to group {found['group']}, not to {group}")
        return cls(
            found["seq"],
            found["group"],
            {tp: tuple(Acquisition(*each) for each in ranges) for tp, ranges in _places(found["acq"])},
            dict(found["names"]),
            {tp: tuple((first, last) for first, last in ranges) for tp, ranges in _places(found["owed"])},
        )


def _by_topic(ranges: Mapping[TopicIdPartition, tuple[Any, ...]]) -> dict[str, dict[str, list[list[int]]]]:
    topics: dict[str, dict[str, list[list[int]]]] = {}
    for tp in sorted(ranges):
        if ranges[tp]:
            topics.setdefault(tp.topic_id, {})[str(tp.partition)] = [list(each) for each in ranges[tp]]
    return topics


def _places(topics: Mapping[str, Mapping[str, Any]]) -> list[tuple[TopicIdPartition, Any]]:
    return [
        (TopicIdPartition(topic_id, int(partition)), ranges)
        for topic_id, partitions in topics.items()
        for partition, ranges in partitions.items()
    ]
