"""The jobs by the names of their tables, loaded when they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.spark.jobs.params import Params

    Job = Callable[[Mapping[str, DataFrame], Params], DataFrame]

__all__ = ["FOLDED", "JOBS", "job_of"]

FOLDED: Final = ("group_timeline", "rebalances", "stability", "task_movement")
"""The tables that one fold over the records of groups makes."""
JOBS: Final = ("findings", "consumer_lag", "share_delivery", "quorum_lag", *FOLDED)
"""In the order in which they begin: those that take longest come first."""


def job_of(name: str) -> Job:
    if name in FOLDED:
        from ottla.spark.jobs.group_fold import table_of
        from ottla.spark.jobs.tables import TABLES

        return partial(table_of, TABLES[name])
    job: Job = getattr(import_module(f"ottla.spark.jobs.{name}"), name)
    return job
