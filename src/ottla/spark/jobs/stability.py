"""How steady groups are, hour by hour, and the alarm of epochs that climb for no reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.spark.jobs.folding import table_of
from ottla.spark.jobs.tables import STABILITY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.jobs.params import Params

__all__ = ["stability"]


def stability(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table of that name, from records where a group has some, else from samples."""
    return table_of(STABILITY, inputs, params)
