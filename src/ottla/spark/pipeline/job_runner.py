"""Runs the jobs: from events on disk to tables, for a run and for a step of a stream alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.jobs.consumer_lag import GROUP_TYPES, TOPIC_IDS, lag_to_files
from ottla.spark.jobs.params import HOUR_MS, Params
from ottla.spark.jobs.share_configs import share_limits
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.jobs.tables import CONSUMER_LAG, TABLES
from ottla.spark.pipeline.event_decoder import EVENT_DDL
from ottla.spark.pipeline.event_lookup import KnownFromEvents, kinds_in
from ottla.spark.pipeline.events import frames_of
from ottla.spark.pipeline.ingest import EventFiles
from ottla.spark.pipeline.jobs import FOLDED, JOBS, job_of
from ottla.spark.pipeline.lag_in_process import LAG_INPUTS, lag_of_run
from ottla.spark.pipeline.metadata_log import MetadataFacts, read_metadata
from ottla.spark.pipeline.tables import DAY, Days, TableFigures, table_path, write_few, write_parts, write_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.pipeline.options import RunOptions, Say
    from ottla.spark.pipeline.origins import Origin

__all__ = [
    "JobInputs",
    "compute",
    "fit",
    "input_files",
    "params_of",
    "prepare",
    "share_window_ms",
    "unseen_in",
]

ROWS_PER_PARTITION: Final = 500_000
ROWS_PER_FOLD: Final = 50_000
"""The rows of groups that one task folds."""
ROWS_PER_LAG: Final = 250_000
"""The commits, ends and samples of which one task makes the lag."""
PARTITIONS_LOWEST: Final = 2
PARTITIONS_HIGHEST: Final = 400
LIGHT_ROWS: Final = 200_000
LIGHT: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""For few rows, code generation and adaptive planning take longer than the work itself."""
DRIVER_ROWS: Final = 50_000
DRIVER_BYTES: Final = 32 << 20
"""So many rows, and so large files of them, the driver computes without workers."""
HEAVY: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
AT_ONCE: Final = 3
"""So many jobs run at once: some of their stages have only one task."""
NEEDS: Final = {"consumer_lag": {"commits", "samples"}, "quorum_lag": {"samples", "metadata"}}
RELEVANT: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "share_delivery": {
        "records": frozenset(STATE_TYPES),
        "samples": frozenset({"share_state", "share_offsets", "share_metrics"}),
    },
    "consumer_lag": {"samples": frozenset({"lag"})},
    "quorum_lag": {"samples": frozenset({"quorum"})},
}
"""The types of records and the kinds of samples that a job uses."""
FINDINGS: Final = "findings"
USE_FOLDED: Final = frozenset({*FOLDED, FINDINGS})
SHORT_SHARE_WINDOW_MS: Final = 10_000
RULE_RESULTS: Final = "rule_results"
_GROUPS: Final = frozenset({"records", "samples"})


@dataclass(frozen=True)
class JobInputs:
    """The inputs of the jobs, and a directory for the results that they share."""

    work: Path
    params: Params
    files: Mapping[str, Path]
    """Parquet files, by the names of the inputs."""


def fit(spark: SparkSession, rows: int) -> None:
    """Configure Spark for so many rows: each shuffle partition costs a task."""
    spark.conf.set("spark.sql.shuffle.partitions", str(_tasks(rows, ROWS_PER_PARTITION)))
    for name, value in (LIGHT if rows < LIGHT_ROWS else HEAVY).items():
        spark.conf.set(name, value)


def prepare(
    origin: Origin | None,
    events: EventFiles,
    known: KnownFromEvents,
    work: Path,
    options: RunOptions,
    known_names: Mapping[str, str],
) -> JobInputs:
    """Read without Spark: the metadata log, and the parameters of the jobs. `known` is what the events say, and
    `known_names` are the names of topics by id that an archive has learned."""
    metadata = read_metadata(origin)
    params = params_of(metadata, known, (events.from_ms, events.to_ms), options, known_names)
    return JobInputs(work, replace(params, in_driver=_are_few(events)), input_files(metadata, known, work))


def _are_few(events: EventFiles) -> bool:
    """Whether the driver can hold the events and what is made of them."""
    size_bytes = sum(file.stat().st_size for file in events.path.rglob("*.parquet"))
    return sum(events.rows.values()) <= DRIVER_ROWS and size_bytes <= DRIVER_BYTES


def input_files(metadata: MetadataFacts, known: KnownFromEvents, work: Path) -> dict[str, Path]:
    """The inputs of the jobs that are not events, as files."""
    tables = {GROUP_TYPES: known.group_types(), TOPIC_IDS: metadata.topic_id_table()}
    if metadata.table.num_rows:
        tables["metadata"] = metadata.table
    return {name: _kept(table, work / f"{name}.parquet") for name, table in tables.items()}


def params_of(
    metadata: MetadataFacts,
    known: KnownFromEvents,
    times: tuple[int | None, int | None],
    options: RunOptions,
    known_names: Mapping[str, str],
) -> Params:
    """The parameters of the jobs, for events between two times."""
    return Params(
        from_ms=options.first_day_ms,
        isolation=options.isolation,
        lateness_ms=options.lateness_ms,
        share_window_ms=share_window_ms(times, options),
        thresholds=options.thresholds,
        connection=options.connection,
        topic_names={**known_names, **metadata.topic_names, **known.topic_names},
        share_limits=share_limits([*metadata.configs, *known.configs]),
    )


def share_window_ms(times: tuple[int | None, int | None], options: RunOptions) -> int:
    """The length of the windows of share_delivery, for events between two times.

    In windows of a minute, little would be seen of some minutes.
    """
    from_ms, to_ms = times
    is_short = (to_ms or 0) - (from_ms or 0) < HOUR_MS
    return options.share_window_ms or (SHORT_SHARE_WINDOW_MS if is_short else Params().share_window_ms)


def _kept(table: pa.Table, path: Path) -> Path:
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


# --- jobs -------------------------------------------------------------------------------------------------------------


def compute(
    spark: SparkSession, events: EventFiles, job_inputs: JobInputs, options: RunOptions, say: Say, *, is_complete: bool
) -> list[dict[str, Any]]:
    """Compute and write every table for which there are inputs; returns what was written.

    `is_complete`: the events reach back to the beginning, though only some days are written. Then all findings are
    written again, because an old one may be resolved now.
    """
    inputs = frames_of(spark.read.schema(EVENT_DDL).parquet(str(events.path)), events.rows)
    inputs |= {name: spark.read.parquet(str(path)) for name, path in job_inputs.files.items()}
    kinds = kinds_in(events.path)
    wanted = {name: _relevant(name, inputs, kinds) for name in JOBS}
    names = [name for name in JOBS if NEEDS.get(name, _GROUPS) & set(wanted[name])]

    def write(name: str) -> dict[str, Any]:
        if name in USE_FOLDED:
            wanted[name] |= folded.result()
        if name == FINDINGS:
            wanted[name] |= _rule_results(wanted[name], job_inputs, say)
        started = time.monotonic()
        params, days = job_inputs.params, options.days
        if name == FINDINGS and (is_complete or not _has_before(options)):
            params, days = replace(params, from_ms=None), Days()
        table, is_parquet = TABLES[name], options.format == "parquet"
        if name == CONSUMER_LAG.name and params.in_driver:  # to plan this job would take longest of all
            few = lag_of_run(events.path, job_inputs.files, params)
            if is_parquet:
                write_few(few, table, options.out, days)
            else:
                write_table(spark.createDataFrame(few), table, options.out, days, options.format)
        elif name == CONSUMER_LAG.name and is_parquet:  # it has most rows, which take longest to pass the JVM
            parts = job_inputs.work / name
            tasks = _tasks(sum(count for each, count in events.rows.items() if each in LAG_INPUTS), ROWS_PER_LAG)
            lag_to_files(wanted[name], params, parts, tasks=tasks)
            write_parts(spark, parts, table, options.out, days)
        elif params.in_driver and is_parquet:
            write_few(job_of(name)(wanted[name], params).toArrow(), table, options.out, days)
        else:
            write_table(job_of(name)(wanted[name], params), table, options.out, days, options.format)
        written = _written(name, options, time.monotonic() - started)
        counted = "" if written["rows"] is None else f" {written['rows']:,} rows"
        say(f"  {name}{counted} ({written['seconds']:.1f} s)")
        return written

    with ThreadPoolExecutor(AT_ONCE) as pool:
        folded = pool.submit(_folded, inputs, events.rows, job_inputs, say)
        if sum(events.rows.values()) >= LIGHT_ROWS:
            # Of many rows, the rules take longest, and only one task. They wait for the fold, so it has all processors.
            folded.result()
        written = [pool.submit(write, name) for name in names]
        return [each.result() for each in written]


def _relevant(name: str, inputs: Mapping[str, DataFrame], kinds: Mapping[str, frozenset[str]]) -> dict[str, DataFrame]:
    """The inputs that have rows for a job, which makes its plan smaller."""
    kept = RELEVANT.get(name, {})
    return {each: frame for each, frame in inputs.items() if each not in kept or kept[each] & kinds[each]}


def _has_before(options: RunOptions) -> bool:
    """Whether there are findings of days before the range already; they are not changed."""
    days = table_path(options.out, FINDINGS).glob(f"{DAY}=*")
    return any(not options.days.has(each.name.partition("=")[2]) for each in days)


def _folded(
    inputs: Mapping[str, DataFrame], rows: Mapping[str, int], job_inputs: JobInputs, say: Say
) -> dict[str, DataFrame]:
    """What several tables need of the fold over groups."""
    if not _GROUPS & set(inputs):
        return {}
    from ottla.spark.jobs.group_fold import fold_to_files

    tasks = _tasks(sum(rows[name] for name in _GROUPS), ROWS_PER_FOLD)
    with _timed("followed the groups", say):
        return fold_to_files(inputs, job_inputs.params, job_inputs.work / "folded", tasks=tasks)


def _rule_results(inputs: Mapping[str, DataFrame], job_inputs: JobInputs, say: Say) -> dict[str, DataFrame]:
    from ottla.spark.jobs.findings import rule_results

    path = str(job_inputs.work / RULE_RESULTS)
    with _timed("evaluated the health rules", say):
        results = rule_results(inputs, job_inputs.params)
        results.write.mode("overwrite").parquet(path)
    return {RULE_RESULTS: results.sparkSession.read.parquet(path)}


def _tasks(rows: int, at_once: int) -> int:
    return min(max(rows // at_once, PARTITIONS_LOWEST), PARTITIONS_HIGHEST)


@contextmanager
def _timed(what: str, say: Say) -> Iterator[None]:
    started = time.monotonic()
    yield
    say(f"  {what} ({time.monotonic() - started:.1f} s)")


def _written(name: str, options: RunOptions, seconds: float) -> dict[str, Any]:
    rows = TableFigures(options.out).rows(name) if options.format == "parquet" else None
    return {
        "name": name,
        "rows": rows,
        "path": f"tables/{name}",
        "format": options.format,
        "seconds": round(seconds, 2),
    }


def unseen_in(work: Path) -> list[dict[str, Any]]:
    """The rules that could not be checked, from the results of the rules."""
    import pyarrow.dataset as ds

    from ottla.spark.jobs.findings import UNSEEN

    files = [str(file) for file in (work / RULE_RESULTS).glob("*.parquet")]
    if not files:
        return []
    rows = ds.dataset(files).to_table(["rule", "missing", "sentence"], filter=ds.field("what") == UNSEEN).to_pylist()
    return [{"rule": each["rule"], "missing": each["missing"], "why": each["sentence"]} for each in rows]
