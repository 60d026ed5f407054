"""The job that evaluates the health rules over all events.

The rules need a cluster as a whole, so the facts of one cluster pass through one Python worker, one by one and ordered
by time. The worker holds only what the rules remember.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.frames import as_table, made_of, written_ms
from ottla.spark.jobs.group_fold import folded_rows
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.rule_evaluation import CONFIG_RECORD, RuleEvaluator, finding_row
from ottla.spark.jobs.rule_fold import RECORD_RANK, SAMPLE_RANK
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.jobs.tables import FINDINGS, GROUP_FACTS, columns
from ottla.spark.records.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["UNSEEN", "findings", "rule_result_rows", "rule_results"]

UNSEEN: Final = "unseen"
_RULE_RESULTS: Final = (
    *columns("what:text missing:texts"),
    *FINDINGS.undated,
)
"""A finding, or a rule that could not be checked (`rule`, `missing`, and the reason in `sentence`)."""
_FACT: Final = ("cluster", "ts", "rank", "order_text", "order_number", "kind", "error", "body", "key")


def findings(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `findings`. `rule_results` are not computed again if they are among the inputs."""
    found = inputs.get("rule_results")
    rows = (rule_results(inputs, params) if found is None else found).where(F.col("what") == "finding")
    # A finding that opened before the range and was still open in it also belongs to the range.
    if params.from_ms is not None:
        rows = rows.where(F.col("until_ms").isNull() | (F.col("until_ms") >= params.from_ms))
    return as_table(rows, FINDINGS, Params())


def rule_results(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """Findings, and the rules that could not be checked. Facts about groups may be among the inputs."""
    facts = list(_facts(inputs, params))
    if not facts:
        raise OttlaSparkError("findings needs samples or records of groups")
    everything = reduce(lambda one, other: one.unionByName(other), facts)
    in_order = everything.repartition("cluster").sortWithinPartitions(
        "cluster", "ts", "rank", "order_text", "order_number"
    )
    evaluate = _RuleResults(dict(params.thresholds), dict(params.topic_names), params.connection)
    return made_of(in_order.select(*_FACT), evaluate, _RULE_RESULTS, params)


# --- facts ------------------------------------------------------------------------------------------------------------


def _facts(inputs: Mapping[str, DataFrame], params: Params) -> Iterator[DataFrame]:
    samples, records, metadata = inputs.get("samples"), inputs.get("records"), inputs.get("metadata")
    nothing = F.lit(None)
    if metadata is not None:
        configs = metadata.where(F.col("type") == CONFIG_RECORD)
        yield _fact_rows(configs, "timestamp", RECORD_RANK, F.lit(""), F.col("offset"), "type", "value", nothing)
    if records is not None:
        states = records.where(F.col("type").isin(*STATE_TYPES))
        where = F.col("group")
        yield _fact_rows(states, "timestamp", RECORD_RANK, where, F.col("offset"), "type", "value", F.col("key"))
        told = folded_rows(GROUP_FACTS, inputs, params)
        yield _fact_rows(told, "ts", RECORD_RANK, F.col("group"), F.col("seq"), "kind", "body", nothing)
    if samples is not None:
        is_state = (F.col("kind") == "share_state") & F.col("body").isNotNull()
        others = samples.where(~is_state)
        yield _fact_rows(others, "ts", SAMPLE_RANK, F.col("observer"), F.col("seq"), "kind", "body", nothing)
        # Compaction deletes records that a newer snapshot replaces. Those that an observer has sampled are put back in
        # their order, by the time they were written. The evaluator takes none of them twice.
        seen = samples.where(is_state).withColumn("ts", written_ms())
        group, offset = (F.get_json_object("body", f"$.{name}") for name in ("group", "offset"))
        yield _fact_rows(seen, "ts", RECORD_RANK, group, offset.cast("bigint"), "kind", "body", nothing)


def _fact_rows(
    rows: DataFrame, time: str, rank: int, order: Any, number: Any, kind: str, body: str, key: Any
) -> DataFrame:
    error = F.col("error") if "error" in rows.columns else F.lit(None)
    return rows.select(
        "cluster",
        F.col(time).alias("ts"),
        F.lit(rank).alias("rank"),
        order.alias("order_text"),
        number.alias("order_number"),
        F.col(kind).alias("kind"),
        error.cast("string").alias("error"),
        F.col(body).cast("binary").alias("body"),
        key.cast("binary").alias("key"),
    )


# --- rules, in one worker ---------------------------------------------------------------------------------------------


class _RuleResults:
    def __init__(self, thresholds: dict[str, float], topic_names: dict[str, str], connection: str) -> None:
        self._thresholds = thresholds
        self._connection = connection
        self._topic_names = topic_names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(_RULE_RESULTS)
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for cluster, facts in groupby(rows, key=lambda row: row[0]):
            evaluator = RuleEvaluator(self._thresholds, self._topic_names, self._connection)
            for _, ts, rank, _, offset, kind, error, body, key in facts:
                evaluator.take(ts, kind, error, body, key, offset, is_sample=rank == SAMPLE_RANK)
            yield pa.RecordBatch.from_pylist(list(rule_result_rows(cluster, evaluator)), schema=schema)


def rule_result_rows(cluster: str, evaluator: RuleEvaluator) -> Iterator[dict[str, Any]]:
    """The rows of an evaluator after the last fact."""
    for finding in evaluator.findings():
        yield {"what": "finding", **finding_row(cluster, finding)}
    for unseen in evaluator.unseen():
        yield {
            "what": UNSEEN,
            "cluster": cluster,
            "rule": unseen.rule,
            "missing": unseen.needs,
            "sentence": unseen.why,
        }
