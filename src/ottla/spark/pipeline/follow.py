"""`ottla pipeline follow`: reads what is new, step by step, and keeps tables and report up to date.

Each step adds the new events to the archive. The archive alone says how far the origin was read, so a process that is
killed goes on with the step that it has not finished. The run file says up to which step the tables are computed.

Windows accept rows that are late by up to `lateness`, compared with the newest row of earlier steps. Older rows go to
`late_<table>`, and the next run adds them to the table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ottla.client.errors import ClientError
from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.quorum_fold import election_rows
from ottla.spark.pipeline.archive import Archive, Step
from ottla.spark.pipeline.batch import origins_of, run_summary, sources
from ottla.spark.pipeline.delta_copy import HOURS, DeltaCopy
from ottla.spark.pipeline.event_decoder import COMMITS, ENDS, SAMPLES
from ottla.spark.pipeline.event_lookup import KnownFromEvents
from ottla.spark.pipeline.in_process import GrowingSource
from ottla.spark.pipeline.ingest import Ingestion
from ottla.spark.pipeline.job_runner import fit, input_files, params_of
from ottla.spark.pipeline.jobs import FOLDED, JOBS
from ottla.spark.pipeline.metadata_log import MetadataLog
from ottla.spark.pipeline.observations import ObservationFiles
from ottla.spark.pipeline.options import RunOptions, Say
from ottla.spark.pipeline.recent_lag import RecentEvents, first_hour_of, is_ours, write_lag
from ottla.spark.pipeline.report_files import write_report
from ottla.spark.pipeline.run_directory import RunDirectory
from ottla.spark.pipeline.run_file import read_run, write_run
from ottla.spark.pipeline.table_stream import TableStream
from ottla.spark.pipeline.tables import TableFigures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.jobs.params import Params
    from ottla.spark.pipeline.metadata_log import MetadataFacts
    from ottla.spark.pipeline.origins import Origin

__all__ = ["FindOrigin", "Follower", "follow"]

NOTHING_COMPUTED: Final = -1
REPORT_PAUSE: Final = 9
"""After a report, none is written for so many times as long."""
FindOrigin = Callable[[], "Origin | None"]
"""Looks up the origin as it is now, because topics come and go; None if only files of observers are read."""


def follow(
    start_spark: Callable[[], SparkSession],
    find_origin: FindOrigin,
    options: RunOptions,
    interval_s: float | None,
    say: Say,
) -> None:
    """Run until interrupted; without an interval, until everything that exists now is read."""
    origin = find_origin()
    where = origins_of(origin, options)
    with RunDirectory(options.out) as work:
        follower = Follower(find_origin, options, work, say)
        say(f"following {where}: {', '.join(origin.topics if origin else ()) or 'no topic yet'}")
        spark = start_spark()
        try:
            follower.step(spark)
            if interval_s is None:
                follower.require_data(where)
            else:
                _keep_on(follower, spark, interval_s)
        finally:
            follower.close()
            spark.stop()


def _keep_on(follower: Follower, spark: SparkSession, interval_s: float) -> NoReturn:
    while True:
        next_s = time.monotonic() + interval_s
        _try_step(follower, spark)
        threading.Event().wait(max(0.0, next_s - time.monotonic()))


def _try_step(follower: Follower, spark: SparkSession) -> None:
    """A step. If the origin does not answer, the next one reads what this one has missed."""
    try:
        follower.step(spark)
    except (ClientError, OttlaSparkError) as error:
        follower.say(f"✗ {error}")


class Follower:
    """Reads steps, and brings the tables up to date after each."""

    def __init__(self, find_origin: FindOrigin, options: RunOptions, work: Path, say: Say) -> None:
        self._find_origin = find_origin
        self._options = options
        self._work = work
        self.say = say
        self._archive = Archive(options.out)
        self._archive.open()
        self._recent = RecentEvents(self._archive, work / "recent", options.isolation)
        self._source = GrowingSource()
        self._metadata = MetadataLog()
        self._files = ObservationFiles(options.observations)
        self._notes: list[str] = []
        self._known = KnownFromEvents(is_growing=True)
        self._known_step = NOTHING_COMPUTED
        """The last step that is part of what is known."""
        self._topic_ids: Mapping[str, str] = {}
        self._stream: TableStream | None = None
        self._delta = DeltaCopy(options.out) if options.format == "delta" else None
        self._parquet = options.out / HOURS if options.format == "delta" else options.out
        """The directory with the tables as Parquet."""
        self._figures = TableFigures(self._parquet)
        self._report_at_s = 0.0
        """When the next report may be written."""
        self._is_report_old = False

    def step(self, spark: SparkSession) -> None:
        """Archive what is new, and bring the tables up to date."""
        if self._known_step == NOTHING_COMPUTED and self._archive.exists():
            self._update(spark, self._find_origin())  # an earlier process may not have come to its end
        self._update(spark, self.read(spark))

    def close(self) -> None:
        """Stop the stream, and write the report of the last step."""
        self._stop_stream()
        if self._is_report_old:
            self._write_report()

    def _stop_stream(self) -> None:
        if self._stream is not None:
            self._stream.stop()

    def require_data(self, where: str) -> None:
        """OttlaSparkError if nothing was ever read."""
        if not self._archive.exists():
            raise OttlaSparkError(f"{where} has no data: no records of groups and no observations")

    def read(self, spark: SparkSession) -> Origin | None:
        """Archive a step, if there is something new. Returns the origin."""
        origin = self._find_origin()
        self._notes = list(origin.notes) if origin is not None else []
        ingestion = Ingestion(
            origin, self._files, self._options.starts, self._notes, self._archive.positions, self._source
        )
        path = self._work / "new"
        event_files = ingestion.in_process(path) or ingestion.by_spark(spark, path)
        if any(event_files.rows.values()):
            origin = self._find_origin()  # again, because it may have topics now that the new records mention
            names = {} if origin is None else {topic_id: name for name, topic_id in origin.ids.items()}
            self._archive.add(event_files, ingestion.positions, names, self._options.lateness_ms)
        return origin

    # --- tables -------------------------------------------------------------------------------------------------------

    def _update(self, spark: SparkSession, origin: Origin | None) -> None:
        """Bring the tables up to date with the archive."""
        computed = _computed_step(self._options.out)
        new = self._archive.after(computed)
        if not new:
            return
        for each in self._archive.after(self._known_step):
            self._known.take(self._archive.step_path(each.number))
            self._known_step = each.number
            if each.number <= computed:
                self._known.has_other_types = False  # the tables have them already
        tables, unseen = self._compute_changes(spark, origin, new)
        if self._delta is not None:
            self._delta.copy(spark)
        write_run(self._options.out, self._summary(origin, tables, unseen))
        self._report()
        late = sum(each.late for each in new)
        records = sum(sum(each.rows.values()) - each.rows.get(ENDS, 0) for each in new)
        late_text = f", {late:,} late" if late else ""
        self.say(f"✓ step {new[-1].number}: {records:,} records{late_text}, {len(tables)} tables")

    def _compute_changes(
        self, spark: SparkSession, origin: Origin | None, new: list[Step]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Change what new steps change. Returns the tables, and the rules that could not be checked."""
        metadata = self._metadata.read(origin)
        all_events = self._archive.describe()
        times = (all_events.from_ms, all_events.to_ms)
        params = params_of(metadata, self._known, times, self._options, self._archive.topic_names)
        fit(spark, sum(sum(each.rows.values()) for each in new))
        if self._stream is None or not self._stream.fits(params):
            self._stop_stream()
            place = None if self._delta is None else self._parquet
            self._stream = TableStream(self._archive, self._options.out, self._work, params, place)
        self._stream.process(spark, metadata.table, params)
        elections = election_rows(metadata.elections, params.quorum_window_ms)
        self._stream.put_elections(elections, self._known.with_quorum)
        if all_events.rows[COMMITS] or "lag" in self._known.kinds[SAMPLES]:
            self._compute_lag(spark, metadata, params, new)
        names = [name for name in JOBS if name in FOLDED or self._figures.rows(name)]
        return [self._table(name) for name in names], self._stream.rules.unseen

    def _compute_lag(self, spark: SparkSession, metadata: MetadataFacts, params: Params, new: list[Step]) -> None:
        out, work, archive = self._parquet, self._work, self._archive
        first_hour = first_hour_of(new, archive.before(new[0].number), params.lateness_ms)
        topic_ids = metadata.topic_ids
        has_other_ids = any(topic_ids.get(name, known) != known for name, known in self._topic_ids.items())
        if has_other_ids or self._known.has_other_types or not is_ours(out):
            first_hour = None  # these change rows of any time
        self._topic_ids, self._known.has_other_types = topic_ids, False
        files = input_files(metadata, self._known, work)
        write_lag(spark, self._recent, params, files, first_hour, out, work)

    def _table(self, name: str) -> dict[str, Any]:
        path, rows = f"tables/{name}", self._figures.rows(name)
        return {"name": name, "rows": rows, "path": path, "format": self._options.format}

    # --- what is said -------------------------------------------------------------------------------------------------

    def _summary(
        self, origin: Origin | None, tables: list[dict[str, Any]], unseen: list[dict[str, Any]]
    ) -> dict[str, Any]:
        assert self._archive.last is not None, "there is a step"
        return {
            **run_summary(self._archive.describe(), origin, self._options, self._archive.late, self._known.seen),
            "step": self._archive.last.number,
            "tables": tables,
            "source": sources(tables, self._figures),
            "unseen": unseen,
            "notes": self._notes,
        }

    def _report(self) -> None:
        """Write the report, but for at most a tenth of the time: it reads all tables."""
        self._is_report_old = True
        began_s = time.monotonic()
        if began_s >= self._report_at_s:
            self._write_report()
            self._report_at_s = time.monotonic() + REPORT_PAUSE * (time.monotonic() - began_s)

    def _write_report(self) -> None:
        write_report(self._options.out, None, self._parquet)
        self._is_report_old = False


def _computed_step(out: Path) -> int:
    """The step up to which the tables are computed."""
    run = read_run(out)
    return NOTHING_COMPUTED if run is None else int(run.get("step", NOTHING_COMPUTED))
