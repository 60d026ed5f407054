"""Rebalances of groups: when, why, for how long, and what moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.spark.jobs.folding import table_of
from ottla.spark.jobs.tables import REBALANCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.jobs.params import Params

__all__ = ["rebalances"]


def rebalances(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table of that name, from records where a group has some, else from samples."""
    return table_of(REBALANCES, inputs, params)
