"""The formats by name. The class of each is loaded when it is registered with a session."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

__all__ = ["FORMATS", "format_class"]

FORMATS: Final = {
    "ottla": "ottla.spark.topic.source:TopicDataSource",
    "ottla-log": "ottla.spark.log.source:LogDataSource",
    "ottla-records": "ottla.spark.records.source:RecordsDataSource",
    "ottla-share": "ottla.spark.share.source:ShareDataSource",
}


def format_class(name: str) -> type[DataSource]:
    module, _, attribute = FORMATS[name].partition(":")
    found: type[DataSource] = getattr(import_module(module), attribute)
    return found
