"""The events that `follow` has read, in numbered steps. They are kept for good, because brokers compact and delete
records, and all tables can be computed from them again.

A step is a directory below `events`. It is written elsewhere and renamed, together with `_step.json`, which says how
far the step has read: a step that was interrupted leaves nothing, and is read again. Rows that came too late for a
window wait in `late_<table>` for the next run, which joins all steps into one.
"""

from __future__ import annotations

import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.health.facts import FACTS
from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.offsets import SourceOffset
from ottla.spark.pipeline.end_offsets import LogPosition
from ottla.spark.pipeline.event_decoder import SAMPLES
from ottla.spark.pipeline.events import INPUTS
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.pipeline.ingest import EventFiles, Positions, describe_events
from ottla.spark.pipeline.observations import FilePosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CHECKPOINT", "STEP", "Archive", "Step", "distinct_events"]

STEP: Final = "step"
CHECKPOINT: Final = "checkpoint"
"""The directory with the state of a stream over the steps."""
STEP_FILE: Final = "_step.json"
LAST_FILE: Final = "_last"
"""The number of the last step. If it is missing or old, opening the archive writes it again."""
LATE: Final = "late_"
LATE_KINDS: Final = {
    "group_timeline": ("group", "gone"),
    "share_delivery": (*STATE_TYPES, "share_state", "share_offsets", "share_metrics"),
    "quorum_lag": ("quorum",),
    "consumer_lag": ("OffsetCommit", "lag"),
    "findings": tuple(
        sorted({*FACTS} - {"group", "gone", "share_state", "share_offsets", "share_metrics", "quorum", "lag"})
    ),
}
"""Tables, and the types of records and kinds of samples that come too late for them when the watermark has passed their
time. Records of groups are never late: their offsets give the order. Nor are end offsets: a producer may be behind."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a step has read, and how far it came."""

    number: int
    offsets: dict[str, Any] | None = None
    """The end offsets of all topics."""
    files: dict[str, FilePosition] = {}
    """The positions in files of observers that this step has moved."""
    logs: dict[str, LogPosition] = {}
    """The positions in logs of topics that this step has moved."""
    rows: dict[str, int]
    late: int = 0
    """How many rows came too late for a window."""
    from_ms: int | None = None
    to_ms: int | None = None
    ends_from_ms: int | None = None
    """The oldest time of its end offsets; the other times are those of other events."""
    newest_ms: int = 0
    """The newest time of this step and all before it."""
    dropped: int = 0
    topic_names: dict[str, str] = {}
    """Topic id -> name, where this step was the first to learn it."""
    is_joined: bool = False
    """Whether it holds everything that earlier steps held."""


@dataclass
class _Totals:
    """What all steps have together."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(INPUTS, 0))
    late: int = 0
    dropped: int = 0
    from_ms: int | None = None
    to_ms: int | None = None

    def add(self, step: Step) -> None:
        for name in self.rows:
            self.rows[name] += step.rows.get(name, 0)
        self.late += step.late
        self.dropped += step.dropped
        self.from_ms = min((each for each in (self.from_ms, step.from_ms) if each is not None), default=None)
        self.to_ms = max((each for each in (self.to_ms, step.to_ms) if each is not None), default=None)


def distinct_events(events: DataFrame) -> DataFrame:
    """Each record and each sample once."""
    from pyspark.sql import functions as F

    place = ["cluster", "topic", "partition", "offset", "share_topic_id", "ts"]  # an end offset may have several times
    records = events.where(F.col(INPUT) != SAMPLES).dropDuplicates(place)
    samples = events.where(F.col(INPUT) == SAMPLES).dropDuplicates(["cluster", "observer", "seq"])
    return records.unionByName(samples)


class Archive:
    """`events` and `late_<table>` below an output directory. Only one process may have it open."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.path = out / "events"
        self._steps: list[Step] = []
        """All steps, but without the positions of those before the last."""
        self._all = _Totals()
        self._files: dict[str, FilePosition] = {}
        self._logs: dict[str, LogPosition] = {}
        self.topic_names: dict[str, str] = {}
        """Topic id -> name, as far as the steps have learned."""

    def open(self) -> None:
        """Read what is known of its steps, and remove what an interrupted process has left. OttlaSparkError if an
        earlier version of ottla has written it."""
        if any(self.path.glob(f"{INPUT}=*")):
            raise OttlaSparkError(
                f"{self.path} was written by an earlier version of ottla: choose another --out, or delete this "
                "directory to begin with what the origin still has"
            )
        found = sorted((_read_step(each) for each in self.path.glob(f"{STEP}=*")), key=lambda each: each.number)
        joined = max((each.number for each in found if each.is_joined), default=0)
        for each in found:
            if each.number < joined:
                shutil.rmtree(self.step_path(each.number))
            else:
                self._take(each)
        self._note_last()

    def _note_last(self) -> None:
        if self.last is not None:
            new = self.path / f".{LAST_FILE}"
            new.write_text(str(self.last.number))
            new.rename(self.path / LAST_FILE)

    def last_number(self) -> int:
        """The number of the last step, as other processes see it; -1 if there is none."""
        try:
            return int((self.path / LAST_FILE).read_text())
        except FileNotFoundError:
            return -1

    def _take(self, step: Step) -> None:
        if step.is_joined:
            self._steps.clear()
            self._all = _Totals()
        if self._steps:
            self._steps[-1] = msgspec.structs.replace(self._steps[-1], offsets=None, files={}, logs={})
        self._steps.append(step)
        self._all.add(step)
        self._files |= step.files
        self._logs |= step.logs
        self.topic_names |= step.topic_names

    def step_path(self, number: int) -> Path:
        return self.path / f"{STEP}={number:08d}"

    # --- what is known ------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return bool(self._steps)

    @property
    def last(self) -> Step | None:
        return self._steps[-1] if self._steps else None

    @property
    def positions(self) -> Positions:
        """How far the steps have read."""
        return Positions(self.last.offsets if self.last else None, self._files, self._logs)

    def step(self, number: int) -> Step:
        """A step, as it is on disk."""
        return _read_step(self.step_path(number))

    def after(self, number: int) -> list[Step]:
        return self._steps[self._place_after(number) :]

    def before(self, number: int) -> Step | None:
        """The last step before this one."""
        place = self._place_after(number - 1)
        return self._steps[place - 1] if place else None

    def _place_after(self, number: int) -> int:
        return bisect_right(self._steps, number, key=lambda each: each.number)

    def since(self, from_ms: int) -> list[Step]:
        """The steps that may have events from this time on."""
        # The newest time only grows, so steps that are sure to be older are all at the beginning.
        place = bisect_left(self._steps, from_ms, key=lambda each: each.newest_ms)
        return [each for each in self._steps[place:] if each.to_ms is not None and each.to_ms >= from_ms]

    @property
    def late(self) -> int:
        """How many rows came too late for a table and wait for the next run."""
        return self._all.late

    def describe(self) -> EventFiles:
        """All events, as the steps describe them."""
        found = self._all
        return EventFiles(self.path, dict(found.rows), found.from_ms, found.to_ms, found.dropped)

    # --- steps --------------------------------------------------------------------------------------------------------

    def add(
        self, event_files: EventFiles, positions: Positions, topic_names: Mapping[str, str], lateness_ms: int
    ) -> Step:
        """Make events the next step. Their directory becomes part of the archive."""
        last = self.last
        number = 0 if last is None else last.number + 1
        newest_ms = 0 if last is None else last.newest_ms
        late = self._set_late_apart(event_files, number, newest_ms - lateness_ms)
        if late:
            event_files = describe_events(event_files.path)
        step = Step(
            number=number,
            offsets=positions.offsets,
            files={name: each for name, each in positions.files.items() if self._files.get(name) != each},
            logs={name: each for name, each in positions.logs.items() if self._logs.get(name) != each},
            rows=event_files.rows,
            late=late,
            from_ms=event_files.from_ms,
            to_ms=event_files.to_ms,
            ends_from_ms=event_files.ends_from_ms,
            newest_ms=max(newest_ms, event_files.to_ms or 0),
            dropped=event_files.dropped,
            topic_names={key: name for key, name in topic_names.items() if self.topic_names.get(key) != name},
        )
        self._show(step, event_files.path)
        return step

    def _show(self, step: Step, path: Path) -> None:
        (path / STEP_FILE).write_bytes(msgspec.json.encode(step))
        self.path.mkdir(exist_ok=True)
        path.rename(self.step_path(step.number))
        self._take(step)
        self._note_last()

    def _set_late_apart(self, event_files: EventFiles, number: int, watermark_ms: int) -> int:
        """Move events that are too late for a window. They are kept under the number of the step before it is there: if
        the step is interrupted, its next attempt replaces them."""
        for left in self._out.glob(f"{LATE}*/{STEP}={number:08d}"):
            shutil.rmtree(left)
        if event_files.from_ms is None or event_files.from_ms >= watermark_ms:
            return 0
        return sum(
            self._split_late(file, number, watermark_ms)
            for file in sorted(event_files.path.glob(f"{INPUT}=*/*.parquet"))
        )

    def _split_late(self, file: Path, number: int, watermark_ms: int) -> int:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        rows = pq.read_table(file)
        is_old = pc.less(rows["ts"], watermark_ms)
        is_late = pa.chunked_array([pa.repeat(pa.scalar(False), rows.num_rows)])
        for table, kinds in LATE_KINDS.items():
            is_of_table = pc.fill_null(pc.and_(is_old, pc.is_in(rows["type"], pa.array(kinds))), False)
            late = rows.filter(is_of_table)
            if late.num_rows:
                path = self._out / f"{LATE}{table}" / f"{STEP}={number:08d}" / file.parent.name / file.name
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(late, path)
                is_late = pc.or_(is_late, is_of_table)
        in_time = rows.filter(pc.invert(is_late))
        if in_time.num_rows < rows.num_rows:
            pq.write_table(in_time, file)
        return int(rows.num_rows - in_time.num_rows)

    # --- all events ---------------------------------------------------------------------------------------------------

    def frame(self, spark: SparkSession) -> DataFrame:
        """The events that came in time, without duplicates."""
        return distinct_events(spark.read.parquet(str(self.path)).drop(STEP))

    def joined(self, spark: SparkSession, event_files: EventFiles, path: Path) -> EventFiles:
        """Write the events of the archive, late events and those read now to `path`, without duplicates."""
        frames = [spark.read.parquet(str(each)).drop(STEP) for each in self._stored()]
        if any(event_files.rows.values()):
            frames.append(spark.read.parquet(str(event_files.path)))
        events = frames[0]
        for frame in frames[1:]:
            events = events.unionByName(frame)
        distinct_events(events).write.mode("overwrite").partitionBy(INPUT).parquet(str(path))
        return describe_events(path)

    def _stored(self) -> Iterator[Path]:
        for each in (self.path, *sorted(self._out.glob(f"{LATE}*"))):
            if any(each.rglob("*.parquet")):
                yield each

    def compact(self, event_files: EventFiles, positions: Positions) -> None:
        """Replace all steps by the joined events. `positions` say how far the origin was read for them. If this is
        interrupted, old steps remain until the archive is opened again."""
        last = self.last
        assert last is not None, "there is something to join"
        positions = _farther(self.positions, positions)
        step = Step(
            number=last.number + 1,
            offsets=positions.offsets,
            files=dict(positions.files),
            logs=dict(positions.logs),
            rows=event_files.rows,
            from_ms=event_files.from_ms,
            to_ms=event_files.to_ms,
            ends_from_ms=event_files.ends_from_ms,
            newest_ms=max(last.newest_ms, event_files.to_ms or 0),
            dropped=event_files.dropped,
            topic_names=self.topic_names,
            is_joined=True,
        )
        old = [each.number for each in self._steps]
        self._show(step, event_files.path)
        for number in old:
            shutil.rmtree(self.step_path(number))
        for directory in self._out.glob(f"{LATE}*"):
            shutil.rmtree(directory)


def _farther(one: Positions, other: Positions) -> Positions:
    """The positions of whoever has read more. Another id of a topic is that of a newer one, which `other` has read."""
    was, now = SourceOffset.from_json(one.offsets or {}), SourceOffset.from_json(other.offsets or {})
    anew = {name for name, topic_id in now.ids.items() if was.ids.get(name, topic_id) != topic_id}
    known = {at: offset for at, offset in was.offsets.items() if at.topic not in anew}
    offsets = {at: max(known.get(at, 0), now.offsets.get(at, 0)) for at in {**known, **now.offsets}}
    files = {name: max(each, one.files.get(name, each)) for name, each in other.files.items()}
    return Positions(
        SourceOffset(offsets, {**was.ids, **now.ids}).to_json(), {**one.files, **files}, {**one.logs, **other.logs}
    )


def _read_step(path: Path) -> Step:
    return _decode_step((path / STEP_FILE).read_bytes())


_decode_step: Final = msgspec.json.Decoder(Step).decode
