"""Spark's data source `ottla-log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from ottla.spark.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.log.options import LogOptions

__all__ = ["LogDataSource"]


class LogDataSource(DataSource):
    """Topics from segment files, read in batches and as a stream."""

    @classmethod
    def name(cls) -> str:
        return "ottla-log"

    def schema(self) -> str:
        return ddl(self._options().columns.types())

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.log.readers import LogPushdownReader, LogReader

        options = self._options().for_batch()
        return LogPushdownReader(options) if options.pushdown else LogReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from ottla.spark.log.readers import LogStreamReader

        return LogStreamReader(self._options().for_stream())

    def _options(self) -> LogOptions:
        from ottla.spark.log.options import LogOptions, with_paths
        from ottla.spark.options import read_options

        return read_options(LogOptions, with_paths(self.options))
