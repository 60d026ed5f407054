"""Spark's data source `ottla-records`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.records.options import ClusterRecordOptions, PathRecordOptions

__all__ = ["RecordsDataSource"]


class RecordsDataSource(DataSource):
    """Records of internal topics, one table for each type, read in batches and as a stream."""

    @classmethod
    def name(cls) -> str:
        return "ottla-records"

    def schema(self) -> str:
        from ottla.spark.records.types import ddl

        return ddl(self._options().table_columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.records import readers
        from ottla.spark.records.options import PathRecordOptions

        options = self._options().for_batch()
        if isinstance(options, PathRecordOptions):
            of_files = readers.PathRecordPushdownReader if options.pushdown else readers.PathRecordReader
            return of_files(options)
        of_cluster = readers.ClusterRecordPushdownReader if options.pushdown else readers.ClusterRecordReader
        return of_cluster(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from ottla.spark.options import bad_option
        from ottla.spark.records.options import PathRecordOptions
        from ottla.spark.records.readers import ClusterRecordStreamReader, PathRecordStreamReader

        options = self._options().for_stream()
        if options.is_latest:
            raise bad_option("view", "latest is for batch queries; a stream has no end")
        if isinstance(options, PathRecordOptions):
            return PathRecordStreamReader(options)
        return ClusterRecordStreamReader(options)

    def _options(self) -> PathRecordOptions | ClusterRecordOptions:
        from ottla.spark.records.options import read_record_options

        return read_record_options(self.options)
