"""Spark's data source `ottla-share`. Nothing here connects to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from ottla.spark.errors import OttlaSparkError
from ottla.spark.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.spark.share.options import ShareOptions

__all__ = ["ShareDataSource"]


class ShareDataSource(DataSource):
    """A share group, read as a stream."""

    @classmethod
    def name(cls) -> str:
        return "ottla-share"

    def schema(self) -> str:
        return ddl(self._options().types())

    def reader(self, schema: StructType) -> DataSourceReader:
        raise OttlaSparkError(
            "ottla-share is a stream: what a batch query reads could not be acknowledged; use readStream with "
            "trigger(availableNow=True)"
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from ottla.spark.share.stream_reader import ShareStreamReader

        return ShareStreamReader(self._options())

    def _options(self) -> ShareOptions:
        from ottla.spark.options import read_options
        from ottla.spark.share.options import ShareOptions

        return read_options(ShareOptions, self.options)
