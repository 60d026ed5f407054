"""Spark's data source `ottla`. Nothing here connects to a cluster: Spark creates this object often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from ottla.spark.errors import OttlaSparkError
from ottla.spark.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.sink.options import SinkOptions
    from ottla.spark.topic.options import TopicOptions

__all__ = ["TopicDataSource"]


class TopicDataSource(DataSource):
    """Topics of a cluster, read and written, in batches and as a stream."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> str:
        return ddl(self._options().columns.types())

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.topic.batch_reader import PlainReader, PushdownReader

        options = self._options().for_batch()
        return PushdownReader(options) if options.pushdown else PlainReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from ottla.spark.topic.stream_reader import TopicStreamReader

        return TopicStreamReader(self._options().for_stream())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ottla.spark.sink.writers import BatchWriter, columns_of

        options = self._sink_options().for_batch()
        if overwrite:
            raise OttlaSparkError("mode overwrite: a topic can only be appended to; use mode append")
        return BatchWriter(options, columns_of(schema, options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from ottla.spark.sink.writers import StreamWriter, columns_of

        options = self._sink_options().for_stream()
        return StreamWriter(options, columns_of(schema, options))

    def _sink_options(self) -> SinkOptions:
        from ottla.spark.options import read_options
        from ottla.spark.sink.options import SinkOptions

        return read_options(SinkOptions, self.options, other=("checkpointLocation", "path", "queryName"))

    def _options(self) -> TopicOptions:
        from ottla.spark.options import read_options
        from ottla.spark.topic.options import TopicOptions

        return read_options(TopicOptions, self.options)
