"""Plans a stream, without Spark: its start, the end of the next batch, and the tasks of a batch.

`ranges_between` depends only on its arguments and on the logs, not on the state of this object: after a restart,
another process repeats a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn
from ottla.spark.offsets import Offsets, SourceOffset, TopicPartition
from ottla.spark.range_options import RangeOptions
from ottla.spark.topic.cluster import Assigned, Cluster
from ottla.spark.topic.limits import Patience, limited
from ottla.spark.topic.loss import Loss
from ottla.spark.topic.plan import Task, require_all, resolve, tasks_of
from ottla.spark.topic.ranges import Range

__all__ = ["StreamPlan"]

SECOND_MS: Final = 1000
GONE: Final = "it no longer exists"


def _now_ms() -> float:
    return time.monotonic() * SECOND_MS


class StreamPlan:
    def __init__(
        self,
        cluster: Cluster,
        options: RangeOptions,
        *,
        now_ms: Callable[[], float] = _now_ms,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._sleep = sleep
        self._loss = Loss(options.fail_on_data_loss)
        self._initial: SourceOffset | None = None
        self._target: SourceOffset | None = None
        self._reported: SourceOffset | None = None
        self._is_available_now = False
        wanted = options.min_offsets_per_trigger
        self._patience = None if wanted is None else Patience(wanted, options.max_trigger_delay_ms, now_ms)

    # --- where the stream begins and what there is --------------------------------------------------------------------

    def initial(self) -> SourceOffset:
        """The start of a new query; every call returns the same."""
        if self._initial is None:
            assigned = self._cluster.assigned()
            require_all(assigned)
            start = resolve(self._cluster, self._options.starting(is_stream=True), assigned, self._options.strategy)
            self._initial = SourceOffset(start, assigned.ids)
        return self._initial

    def stop_at_what_is_there(self) -> None:
        """The query ends at the end offsets that it finds first (Trigger.AvailableNow)."""
        self._is_available_now = True

    @property
    def reported(self) -> SourceOffset | None:
        """The last known end offsets of the logs, without the limit of a batch."""
        return self._reported

    # --- how far a batch goes -----------------------------------------------------------------------------------------

    def next_end(self, start: SourceOffset, limit: int | None) -> SourceOffset:
        """The end of the next batch: `start` itself if there is nothing new. Without a limit, it takes everything."""
        latest = self._latest(start)
        self._reported = latest
        if not self._is_enough(start, latest):
            return start
        end = latest
        if limit is not None:
            end = latest._replace(offsets=limited(limit, self._known_start(start, latest), latest.offsets))
        if end.offsets == start.offsets and end.ids == start.ids:
            end = start
        # If the start is "latest", Spark repeats the first batch with another start.
        return end._replace(start=start.offsets) if self._is_first(start) else end

    def _is_enough(self, start: SourceOffset, latest: SourceOffset) -> bool:
        if self._patience is None or self._is_available_now:
            return True
        return self._patience.is_enough(start.offsets, latest.offsets)

    def _is_first(self, start: SourceOffset) -> bool:
        return self._initial is not None and start == self._initial

    def _known_start(self, start: SourceOffset, latest: SourceOffset) -> dict[TopicPartition, int]:
        """The start of each partition in the next batch: for new partitions and recreated topics, the log start."""
        anew = _made_anew(start, latest)
        known = {at: offset for at, offset in start.offsets.items() if at in latest.offsets and at.topic not in anew}
        return known | self._cluster.earliest([at for at in latest.offsets if at not in known])

    def _latest(self, start: SourceOffset) -> SourceOffset:
        if self._is_available_now and self._target is not None:
            return self._target
        assigned = self._cluster.assigned()
        if not start.offsets and self._options.fail_on_data_loss:  # else all that it had may have been deleted
            require_all(assigned)
        self._report_gone(start, assigned)
        found = SourceOffset(self._ends(start, assigned), assigned.ids)
        self._report_anew(start, found)
        if self._is_available_now:
            self._target = found
        return found

    def _ends(self, start: SourceOffset, assigned: Assigned) -> dict[TopicPartition, int]:
        """The end offsets of the logs. After an election a broker may report an old one for a moment, so an end before
        the start is requested once more."""
        ends = self._cluster.latest(assigned.leaders)
        for _ in range(self._options.offset_retries):
            if not self._shrunk(start, ends, assigned.ids):
                break
            self._sleep(self._options.offset_retry_interval_ms / SECOND_MS)
            ends = self._cluster.latest(assigned.leaders)
        for at in self._shrunk(start, ends, assigned.ids):
            self._loss.report(at, f"the log ends at offset {ends[at]}, before {start.offsets[at]}")
        return ends

    def _shrunk(self, start: SourceOffset, ends: Offsets, ids: Mapping[str, str]) -> list[TopicPartition]:
        same = {name for name in ids if start.ids.get(name, ids[name]) == ids[name]}
        return [at for at, end in ends.items() if at.topic in same and end < start.offsets.get(at, end)]

    def _report_gone(self, start: SourceOffset, assigned: Assigned) -> None:
        for at in sorted(start.offsets):
            if at not in assigned.leaders:
                self._loss.report(at, GONE)

    def _report_anew(self, start: SourceOffset, found: SourceOffset) -> None:
        for name in sorted(_made_anew(start, found)):
            text = f"data lost: topic {name} was recreated"
            if self._options.fail_on_data_loss:
                raise OttlaSparkError(f"{text}; set failOnDataLoss=false to read the new topic from its beginning")
            warn(text)

    # --- what the tasks read ------------------------------------------------------------------------------------------

    def tasks_between(self, start: SourceOffset, end: SourceOffset) -> list[Task]:
        """The tasks of a batch."""
        if end.start is not None:
            start = SourceOffset(end.start, start.ids)
        assigned = self._cluster.assigned()
        readable = self._readable(start, end, assigned)
        log_starts = self._cluster.earliest(readable)
        anew = _made_anew(start, end)
        ranges = [
            Range(at, self._start_of(at, start, end, log_starts[at], at.topic in anew), end.offsets[at])
            for at in readable
        ]
        return tasks_of(ranges, self._options, assigned, log_starts)

    def _readable(self, start: SourceOffset, end: SourceOffset, assigned: Assigned) -> list[TopicPartition]:
        """The partitions of a batch that still exist and were not recreated."""
        now = SourceOffset({}, assigned.ids)
        self._report_anew(end, now)
        found = [at for at in end.offsets if at in assigned.leaders]
        for at in sorted({*start.offsets, *end.offsets} - set(found)):
            self._loss.report(at, GONE)
        anew = _made_anew(end, now)
        return [at for at in found if at.topic not in anew]

    def _start_of(
        self, at: TopicPartition, start: SourceOffset, end: SourceOffset, log_start: int, is_anew: bool
    ) -> int:
        until = end.offsets[at]
        known = start.offsets.get(at)
        if is_anew:
            return log_start
        if known is None:
            if log_start > 0:
                self._loss.report(at, f"it is new and starts at offset {log_start} instead of 0")
            return log_start
        if until < known:
            self._loss.report(at, f"the log ends at offset {until}, before {known}")
            return log_start
        return self._loss.start_in_log(at, known, until, log_start)


def _made_anew(before: SourceOffset, now: SourceOffset) -> set[str]:
    """Topics with another id than before."""
    return {name for name, known in before.ids.items() if now.ids.get(name, known) != known}
