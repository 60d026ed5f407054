"""What happened in groups, event by event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.spark.jobs.folding import table_of
from ottla.spark.jobs.tables import GROUP_TIMELINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.jobs.params import Params

__all__ = ["group_timeline"]


def group_timeline(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table of that name, from records where a group has some, else from samples."""
    return table_of(GROUP_TIMELINE, inputs, params)
