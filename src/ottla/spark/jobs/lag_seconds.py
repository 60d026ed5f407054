"""Lag as time: how long ago the end offset of the log was the group's present committed offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from ottla.wire.lag import passed_at_ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["HISTORY_MS", "with_lag_seconds"]

HISTORY_MS: Final = 3_600_000
"""End offsets that are older than this are not used."""
_POINT, _ROW = 0, 1


def with_lag_seconds(rows: DataFrame, points: DataFrame, place: list[str]) -> DataFrame:
    """Rows (`ts`, `committed`, `committed_ts`, `end`) with `lag_seconds`, from points (`ts`, `end`) of the partitions.

    End offsets only grow. So the two points between which the log passed a committed offset are its neighbours when
    points and offsets are sorted by value: one sort each way finds them, however many groups read the partition.
    """
    marked = points.distinct().select(
        *place, F.lit(_POINT).alias("order"), F.col("end").alias("at"), F.struct("ts", "end").alias("point")
    )
    asked = rows.withColumn("order", F.lit(_ROW)).withColumn("at", F.col("committed"))
    both = asked.unionByName(marked, allowMissingColumns=True)
    by_place = Window.partitionBy(*place)
    time = F.coalesce(F.col("point.ts"), F.col("ts"))
    up = by_place.orderBy("at", "order", time).rowsBetween(Window.unboundedPreceding, 0)
    down = by_place.orderBy(F.desc("at"), F.desc("order"), time.desc()).rowsBetween(Window.unboundedPreceding, 0)
    between = both.select(
        "*",
        F.last("point", ignorenulls=True).over(up).alias("before"),
        F.last("point", ignorenulls=True).over(down).alias("after"),
    )
    found = between.where(F.col("order") == _ROW).withColumn("lag_seconds", _seconds())
    return found.drop("order", "at", "point", "before", "after")


def _seconds() -> Column:
    """`ottla.wire.lag` for a column: the looks say since when the next record waits, else the committed one does."""
    looks = ((F.col(f"{look}.ts"), F.col(f"{look}.end")) for look in ("before", "after"))
    passed = passed_at_ms(F.col("committed"), *looks)
    is_recent = F.col("before.ts") >= F.col("ts") - HISTORY_MS
    by_points = F.when(is_recent & F.col("after.ts").isNotNull(), F.col("ts") - passed)
    by_record = F.col("ts") - F.col("committed_ts")
    passed_ms = F.coalesce(by_points, by_record.cast("double"))
    seconds = F.greatest(passed_ms, F.lit(0.0)) / 1000
    return F.when(F.col("end") <= F.col("committed"), 0.0).when(
        F.col("end").isNotNull() & passed_ms.isNotNull(), seconds
    )
