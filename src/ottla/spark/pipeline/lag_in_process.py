"""The table consumer_lag without Spark: of few events, it is there before Spark would have planned the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.jobs.consumer_lag import lag_events, lag_table
from ottla.spark.jobs.lag_of_log import LAG_EVENT
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.pipeline.event_decoder import COMMITS, ENDS, LOG_END, SAMPLES
from ottla.spark.pipeline.events import batches_of
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.pipeline.tables import DAY, day_of
from ottla.spark.schemas import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from ottla.spark.jobs.params import Isolation, Params

__all__ = ["LAG_INPUTS", "lag_events_in", "lag_in_process", "lag_of_run"]

LAG_INPUTS: Final = {SAMPLES: "lag", COMMITS: "OffsetCommit", ENDS: LOG_END}
"""What the table is made of: inputs, and the types of their events."""


def lag_of_run(events: Path, files: Mapping[str, Path], params: Params) -> pa.Table:
    """The whole table, from the events of a run and the files of its other inputs."""
    import pyarrow as pa

    batches = [
        batch
        for name in LAG_INPUTS
        for batch in lag_events_in(name, sorted((events / f"{INPUT}={name}").rglob("*.parquet")), params.isolation)
    ]
    rows = lag_in_process(pa.Table.from_batches(batches, arrow_schema(LAG_EVENT)), files, params)
    days = [day_of(ms) for ms in rows[CONSUMER_LAG.event_time].to_pylist()]
    return rows.append_column(DAY, pa.array(days, pa.string()))


def lag_in_process(events: pa.Table, files: Mapping[str, Path], params: Params) -> pa.Table:
    """The table without the day of each row."""
    import pyarrow.parquet as pq

    return lag_table(events, {name: pq.read_table(path) for name, path in files.items()}, params)


def lag_events_in(name: str, files: Sequence[Path], isolation: Isolation) -> Iterator[pa.RecordBatch]:
    """The events of an input that the table is made of, in the columns of `LAG_EVENT`."""
    return lag_events(name, batches_of(name, files, _wanted(name)), isolation)


def _wanted(name: str) -> ds.Expression:
    import pyarrow.dataset as ds

    is_ours = ds.field("type") == LAG_INPUTS[name]
    return is_ours & ds.field("body").is_valid() & ds.field("error").is_null() if name == SAMPLES else is_ours
