"""Tables that a stream over the steps of the archive keeps up to date: one stateful operator of Spark, and the health
rules in the driver.

Spark's checkpoint holds the state of each fold and the number of the last step whose changes are in the tables. It can
be deleted at any time: then the stream begins with the first step of the archive and makes the tables anew. The same
happens after a run, which changes the archive, and when parameters or the form of the state change.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Set
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.jobs.share_fold import ShareLimits
from ottla.spark.jobs.stream_fold import STATE_VERSION, change_of, changes_of
from ottla.spark.jobs.tables import GROUP_FACTS, QUORUM_LAG
from ottla.spark.pipeline.archive import CHECKPOINT
from ottla.spark.pipeline.rule_stream import RuleStream
from ottla.spark.pipeline.step_source import STEP_FORMAT, StepSource
from ottla.spark.pipeline.table_changes import TableChanges, changes_by_hour, changes_in
from ottla.spark.worker_files import write_by_workers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ottla.spark.jobs.params import Params
    from ottla.spark.pipeline.archive import Archive

__all__ = ["TableStream"]

_CONF: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # What a step has changed is written, not the state of all folds.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.pollingDelay": "200ms",
}


class TableStream:
    """A query that turns steps into changes of tables, for as long as the parameters stay the same."""

    def __init__(self, archive: Archive, out: Path, work: Path, params: Params, tables: Path | None = None) -> None:
        """`tables` is the directory with the tables, if it is not the output directory."""
        self._out = out
        self._work = work / "changes"
        self._params = params
        self._place = "" if tables is None else tables.name
        self._digest = _digest(params, self._place)
        self._tables = TableChanges(out if tables is None else tables)
        self._metadata: pa.Table | None = None
        self._query: StreamingQuery | None = None
        self._elections: dict[tuple[str, int, int], dict[str, Any]] = {}
        """Those in the table, as far as this process knows."""
        self._sampled: frozenset[str] = frozenset()
        """The clusters whose elections this process has taken out of the table."""
        self.rules = RuleStream(self._directory / "rules", archive, params)

    def fits(self, params: Params) -> bool:
        """Whether the state of this stream is good for these parameters."""
        return _digest(params, self._place) == self._digest

    def process(self, spark: SparkSession, metadata: pa.Table, params: Params) -> None:
        """Process all steps of the archive that are not in the tables yet. Names of topics are taken from `params`."""
        self.know(metadata, params)
        if self._query is None:
            self._query = self._start(spark)
        self._query.processAllAvailable()
        self._tables.name_topics(params.topic_names)

    def know(self, metadata: pa.Table, params: Params) -> None:
        """What is known when steps are processed: the metadata log, and the names of topics among the parameters."""
        self._metadata, self._params = metadata, params

    def put_elections(self, rows: Mapping[tuple[str, int, int], dict[str, Any]], sampled: Set[str]) -> None:
        """Rows from elections in the metadata log. Those of a cluster are left out once its quorum was sampled."""
        fresh = sampled - self._sampled
        hours = [start // HOUR_MS for cluster, _, start in rows if cluster in fresh]
        self._tables.withdraw(QUORUM_LAG, hours, "records", fresh)
        self._sampled |= fresh
        wanted = {key: row for key, row in rows.items() if key[0] not in sampled}
        new = [row for key, row in wanted.items() if self._elections.get(key) != row]
        self._tables.apply_some([change_of(QUORUM_LAG, row) for row in new], {})
        self._elections = wanted

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None

    @property
    def _directory(self) -> Path:
        return self._out / CHECKPOINT / self._digest

    def _start(self, spark: SparkSession) -> StreamingQuery:
        for other in (self._out / CHECKPOINT).glob("*"):
            if other != self._directory:
                shutil.rmtree(other)
        spark.dataSource.register(StepSource)
        # The number of partitions of the state is that of the first batch, for ever.
        partitions = str(max(2, spark.sparkContext.defaultParallelism))
        for name, value in {**_CONF, "spark.sql.shuffle.partitions": partitions}.items():
            spark.conf.set(name, value)
        history = spark.readStream.format(STEP_FORMAT).option("out", str(self._out)).load()
        changes = changes_of(history, self._params)
        writer = changes.writeStream.outputMode("update").foreachBatch(self._write_and_apply)
        return writer.option("checkpointLocation", str(self._directory / "spark")).start()

    def _write_and_apply(self, changes: DataFrame, batch_id: int) -> None:
        write_by_workers(changes, changes_by_hour, self._work)
        self.apply(self._work, batch_id)

    def apply(self, changes: Path, batch_id: int) -> None:
        """Apply the changes of a batch, which are below a path, and those of the health rules. It may be repeated."""
        if batch_id == 0:
            self._tables.begin()
        names = self._params.topic_names
        self._tables.apply(changes, names)
        facts = list(changes_in(changes / f"{GROUP_FACTS.name}=0"))
        assert self._metadata is not None, "it is set before steps are processed"
        self._tables.apply_some(self.rules.advance(batch_id, facts, self._metadata, names), names)


def _digest(params: Params, place: str) -> str:
    """Differs for parameters with which the folds would have made other rows, and for tables in another place."""
    told = (
        STATE_VERSION, place, params.lateness_ms, params.stability_window_ms, params.share_window_ms,
        params.quorum_window_ms, params.state_timeout_ms, params.connection, sorted(params.thresholds.items()),
        sorted(_limits(params).items()),
    )  # fmt: skip
    return sha256(repr(told).encode()).hexdigest()[:16]


def _limits(params: Params) -> dict[tuple[str, str], tuple[int, int]]:
    """The limits of share groups that differ from those that they would have otherwise."""
    limits = params.share_limits
    return {
        (cluster, group): each
        for (cluster, group), each in limits.items()
        if each != (limits.get((cluster, ""), ShareLimits()) if group else ShareLimits())
    }
