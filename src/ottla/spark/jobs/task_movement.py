"""Where the tasks of streams groups went, and how long warm-ups took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.spark.jobs.folding import table_of
from ottla.spark.jobs.tables import TASK_MOVEMENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.jobs.params import Params

__all__ = ["task_movement"]


def task_movement(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table of that name, from records where a group has some, else from samples."""
    return table_of(TASK_MOVEMENT, inputs, params)
