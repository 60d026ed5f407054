"""Options of the format `ottla-log`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.log.names import TopicPartition
from ottla.spark.cluster_options import RecordOptions
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.plan import DEFAULT_TASK_BYTES, OnCorrupt, UpTo
from ottla.spark.options import Check, bad_option, names, one_of, option
from ottla.spark.range_options import RangeOptions, pattern
from ottla.spark.schemas import RecordColumns
from ottla.wire import uuid_bytes
from ottla.wire.keyed import FAMILIES

if TYPE_CHECKING:
    from ottla.spark.log.read import ReadRules

__all__ = ["ISOLATIONS", "LogOptions", "PathOptions", "with_paths"]

ISOLATIONS: Final = ("read_uncommitted", "read_committed")
_SIZE: Final = re.compile(r"(\d+)\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_bytes(value: str) -> int:
    """`134217728`, `128m`, `128 MiB`."""
    found = _SIZE.fullmatch(value.strip())
    size = 0 if found is None else int(found[1]) * _UNITS[found[2].lower()]
    if size < 1:
        raise ValueError(f"{value!r} is not a size; write 134217728 or 128m")
    return size


def numbers(value: str) -> frozenset[int]:
    """`0,3,5-8`."""
    found: set[int] = set()
    for word in names(value):
        low, _, high = word.partition("-")
        if not low.isdecimal() or not (high or low).isdecimal():
            raise ValueError(f"{word!r} is not a partition number; write 0,3,5-8")
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


def topic_id(value: str) -> str:
    try:
        uuid_bytes(value.strip())
    except ValueError:
        raise ValueError(
            f"{value!r} is not a topic id; topic ids have 22 characters, such as MkTRz5GiTDi1pVuKTPP0yA"
        ) from None
    return value.strip()


def one_word(*choices: str) -> Check[str]:
    """One of these words, in any case."""

    def check(value: str) -> str:
        found = next((choice for choice in choices if choice.lower() == value.strip().lower()), None)
        if found is None:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return found

    return check


def with_paths(given: Mapping[str, str]) -> dict[str, str]:
    """The options with a path: `load([one, other])` gives several paths as a JSON list."""
    options = dict(given)
    paths = options.pop("paths", None)
    if paths is not None:
        options["path"] = ",".join(json.loads(paths))
    return options


@dataclass(frozen=True, repr=False)
class PathOptions(RangeOptions):
    """The paths of log directories, and how they are read."""

    paths: tuple[str, ...] = option("path", names, ())
    partitions: frozenset[int] | None = option("partitions", numbers, None)
    up_to: UpTo | None = option("upTo", cast("Check[UpTo | None]", one_of("end", "hw")), None)
    task_bytes: int = option("maxBytesPerPartition", size_bytes, DEFAULT_TASK_BYTES)
    on_corrupt: OnCorrupt = option(
        "onCorrupt", cast("Check[OnCorrupt]", one_word("fail", "skipSegment", "stopPartition")), "fail"
    )
    isolation: str = option("isolation", one_of(*ISOLATIONS), "read_uncommitted")

    @property
    def is_committed(self) -> bool:
        return self.isolation == "read_committed"

    @property
    def required_topics(self) -> tuple[str, ...]:
        """Topics that must exist."""
        return ()

    @property
    def required_id(self) -> str:
        """The id that topics must have; empty for any."""
        return ""

    def is_wanted(self, at: TopicPartition) -> bool:
        """Whether a partition is to be read, according to its name."""
        return self.partitions is None or at.partition in self.partitions

    def read_rules(self, *, include_control: bool = False) -> ReadRules:
        """How tasks read."""
        from ottla.spark.log.read import ReadRules

        return ReadRules(self.on_corrupt, self.fail_on_data_loss, self.is_committed, include_control)


@dataclass(frozen=True, repr=False)
class LogOptions(PathOptions, RecordOptions):
    topics: tuple[str, ...] = option("topic", names, ())
    topic_pattern: str = option("topicPattern", pattern, "")
    topic_id: str = option("topicId", topic_id, "")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.paths:
            raise bad_option("path", "it is required; name a log directory or the directory of a partition")
        if sum(map(bool, (self.topics, self.topic_pattern, self.topic_id))) > 1:
            raise OttlaSparkError("options topic, topicPattern, topicId: give at most one")

    @property
    def columns(self) -> RecordColumns:
        return RecordColumns(self.include_headers, self.include_leader_epoch, self.include_topic_id)

    @property
    def required_topics(self) -> tuple[str, ...]:
        return self.topics

    @property
    def required_id(self) -> str:
        return self.topic_id

    def is_wanted(self, at: TopicPartition) -> bool:
        if not super().is_wanted(at):
            return False
        if self.topics:
            return at.topic in self.topics
        # A user who names the directory of a partition wants that partition.
        is_named = any(path.rstrip("/").endswith(f"/{at}") for path in self.paths)
        if at.topic in FAMILIES and not is_named:
            return bool(self.topic_id)
        return not self.topic_pattern or _compiled(self.topic_pattern).fullmatch(at.topic) is not None


@cache
def _compiled(pattern_text: str) -> Any:
    import re2

    return re2.compile(pattern_text)
