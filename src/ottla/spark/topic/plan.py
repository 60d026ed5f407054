"""Plans the ranges that a batch query or a micro-batch reads, from its options and the state of the cluster.

Nothing here connects or uses pyspark: `Cluster` is the port to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.offsets import EARLIEST, LATEST
from ottla.spark.errors import OttlaSparkError
from ottla.spark.filters import EVERYTHING, Bounds
from ottla.spark.offsets import Offsets, TopicPartition, named
from ottla.spark.options import bad_option
from ottla.spark.range_options import RangeBound, RangeOptions
from ottla.spark.topic.cluster import Assigned, Cluster
from ottla.spark.topic.loss import Loss
from ottla.spark.topic.ranges import Range, join_parts, split_ranges

__all__ = ["JoinedTask", "Task", "join_tasks", "plan_batch", "require_all", "resolve", "tasks_of"]


class Task(NamedTuple):
    """The work of one task. It is sent to an executor, so it is small."""

    at: TopicPartition
    topic_id: str | None
    start: int
    until: int
    leader: int
    """The leader at planning."""
    log_start: int

    @property
    def size(self) -> int:
        return self.until - self.start


class JoinedTask(NamedTuple):
    """Ranges that one task reads, one after the other."""

    parts: tuple[Task, ...]


def join_tasks(tasks: Iterable[Task], min_records: int = 1) -> list[JoinedTask]:
    """Tasks of at least so many offsets, except for the last. Tasks keep their order."""
    return [JoinedTask(parts) for parts in join_parts(tasks, min_records)]


def plan_batch(cluster: Cluster, options: RangeOptions, bounds: Bounds = EVERYTHING) -> list[Task]:
    """The tasks of a batch query: everything between start and end that the filters may accept."""
    assigned = cluster.assigned()
    require_all(assigned)
    start = resolve(cluster, options.starting(is_stream=False), assigned, options.strategy)
    until = resolve(cluster, options.ending(), assigned, "latest")
    log_starts = cluster.earliest(assigned.leaders)
    ends = cluster.latest(assigned.leaders)
    loss = Loss(options.fail_on_data_loss)
    wanted = {at: (start[at], until[at]) for at in assigned.leaders}
    ranges = [Range(at, *_inside(at, *each, log_starts[at], ends[at], loss)) for at, each in wanted.items()]
    narrow = [Range(each.at, *bounds.clip(each.start, each.until)) for each in ranges if bounds.has(*each.at)]
    return tasks_of(_since(cluster, bounds.time_from_ms, narrow), options, assigned, log_starts)


def _inside(at: TopicPartition, start: int, until: int, log_start: int, end: int, loss: Loss) -> tuple[int, int]:
    """The part of a range that is in the log; the rest was lost."""
    if start > end:
        loss.report(at, f"the log ends at offset {end}, before {start}")
    if start >= until:
        return start, start
    start = loss.start_in_log(at, start, until, log_start)
    if until > end:
        loss.report(at, f"the log ends at offset {end}, before {until}")
    return start, min(until, end)


def _since(cluster: Cluster, time_ms: int | None, ranges: list[Range]) -> list[Range]:
    """The ranges without records before a time."""
    wanted = [each for each in ranges if each.size > 0]
    if time_ms is None or time_ms < 0 or not wanted:
        return wanted  # records without a timestamp have -1, and no broker looks for that
    first = cluster.at_time(dict.fromkeys((each.at for each in wanted), time_ms))
    starts = {at: offset for at, offset in first.items() if offset is not None}
    return [each._replace(start=max(each.start, starts[each.at])) for each in wanted if each.at in starts]


def tasks_of(
    ranges: Iterable[Range], options: RangeOptions, assigned: Assigned, log_starts: Mapping[TopicPartition, int]
) -> list[Task]:
    parts = split_ranges(ranges, options.min_partitions, options.max_records_per_partition)
    return [
        Task(
            each.at,
            assigned.ids.get(each.at.topic),
            each.start,
            each.until,
            assigned.leaders.get(each.at, -1),
            log_starts[each.at],
        )
        for each in parts
    ]


# --- where to begin and to end ----------------------------------------------------------------------------------------


def require_all(assigned: Assigned) -> None:
    if assigned.missing:
        raise OttlaSparkError(f"{assigned.missing[0]} does not exist")


def resolve(cluster: Cluster, place: RangeBound, assigned: Assigned, strategy: str) -> dict[TopicPartition, int]:
    """An offset for each partition. Resolved once, so that all tasks of a query have the same end."""
    partitions = list(assigned.leaders)
    if place.timestamp is not None:
        return _by_time(cluster, place, dict.fromkeys(partitions, place.timestamp), strategy)
    if isinstance(place.where, str):
        return cluster.earliest(partitions) if place.where == "earliest" else cluster.latest(partitions)
    _check_partitions(place.option, place.where, partitions)
    if place.is_time:
        return _by_time(cluster, place, place.where, strategy)
    earliest = cluster.earliest([at for at, offset in place.where.items() if offset == EARLIEST])
    latest = cluster.latest([at for at, offset in place.where.items() if offset == LATEST])
    return {**place.where, **earliest, **latest}


def _check_partitions(option: str, given: Offsets, partitions: list[TopicPartition]) -> None:
    missing = sorted(set(partitions) - set(given))
    surplus = sorted(set(given) - set(partitions))
    if missing:
        raise bad_option(option, f"{named(missing[0])} is missing; name every partition to read")
    if surplus:
        raise bad_option(option, f"{named(surplus[0])} is not among the partitions to read")


def _by_time(cluster: Cluster, place: RangeBound, timestamps: Offsets, strategy: str) -> dict[TopicPartition, int]:
    found = cluster.at_time(timestamps)
    late = [at for at, offset in found.items() if offset is None]
    if late and strategy == "error":
        at = min(late)
        reason = f"{named(at)} has no record at or after {timestamps[at]}"
        raise bad_option(place.option, f"{reason}; startingOffsetsByTimestampStrategy=latest starts at the end instead")
    return {**{at: offset for at, offset in found.items() if offset is not None}, **cluster.latest(late)}
