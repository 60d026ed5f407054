"""The settings of share groups that delivery is judged by: a group's own, else the brokers'."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["LIMIT", "LOCK", "share_settings"]

LIMIT: Final = "delivery_count_limit"
LOCK: Final = "lock_ms"
_NAMES: Final = {LIMIT: "share.delivery.count.limit", LOCK: "share.record.lock.duration.ms"}
_GROUP_RESOURCE: Final = "32"
_BODY: Final = "resource string, name string, values map<string, string>"


def share_settings(inputs: Mapping[str, DataFrame]) -> DataFrame | None:
    """For each group `delivery_count_limit` and `lock_ms`, null where nobody said; None if nobody could have."""
    told = list(_told(inputs))
    if not told:
        return None
    everything = reduce(lambda one, other: one.unionByName(other), told)
    newest = everything.groupBy("cluster", "resource", "name").agg(
        *(F.max_by(each, F.when(F.col(each).isNotNull(), F.col("at"))).alias(each) for each in _NAMES)
    )
    of_groups = newest.where("resource = 'group'").withColumnRenamed("name", "group").drop("resource")
    of_brokers = (
        newest.where("resource = 'broker'")
        .groupBy("cluster")
        .agg(*(F.max(each).alias(f"broker_{each}") for each in _NAMES))
    )
    groups = _groups(inputs).unionByName(of_groups.select("cluster", "group")).distinct()
    known = groups.join(of_groups, ["cluster", "group"], "left").join(of_brokers, "cluster", "left")
    return known.select(
        "cluster", "group", *(F.coalesce(each, f"broker_{each}").cast("bigint").alias(each) for each in _NAMES)
    )


def _groups(inputs: Mapping[str, DataFrame]) -> DataFrame:
    found: list[DataFrame] = []
    if "records" in inputs:
        states = inputs["records"].where(F.col("type").isin("ShareSnapshot", "ShareUpdate"))
        found.append(states.select("cluster", "group"))
    if "samples" in inputs:
        looks = inputs["samples"].where(F.col("kind").isin("share_state", "share_offsets"))
        found.append(looks.select("cluster", F.get_json_object("body", "$.group").alias("group")))
    return reduce(lambda one, other: one.unionByName(other), found).where(F.col("group").isNotNull()).distinct()


def _told(inputs: Mapping[str, DataFrame]) -> list[DataFrame]:
    found: list[DataFrame] = []
    if "samples" in inputs:
        samples = inputs["samples"].where((F.col("kind") == "configs") & F.col("body").isNotNull())
        body = samples.select("cluster", F.col("ts").alias("at"), F.from_json("body", _BODY).alias("b"))
        values = {
            each: F.coalesce(F.col("b.values").getItem(key), F.col("b.values").getItem(f"group.{key}"))
            for each, key in _NAMES.items()
        }
        found.append(
            body.select(
                "cluster",
                "at",
                "b.resource",
                "b.name",
                *(value.cast("bigint").alias(each) for each, value in values.items()),
            )
        )
    if "metadata" in inputs:
        configs = inputs["metadata"].where(F.col("type") == "ConfigRecord")
        parts = {
            each: F.get_json_object("value", f"$.{each}") for each in ("resourceType", "resourceName", "name", "value")
        }
        values = {
            each: F.when(parts["name"].isin(key, f"group.{key}"), parts["value"]).cast("bigint").alias(each)
            for each, key in _NAMES.items()
        }
        resource = F.when(parts["resourceType"] == _GROUP_RESOURCE, "group").otherwise("broker").alias("resource")
        rows = configs.where(parts["name"].isin(*(name for key in _NAMES.values() for name in (key, f"group.{key}"))))
        found.append(
            rows.select(
                "cluster",
                F.col("timestamp").alias("at"),
                resource,
                parts["resourceName"].alias("name"),
                *values.values(),
            )
        )
    return found
