"""Looks up in the events what the jobs need before they run: topic names, configs, and which kinds of events exist.

These are small, so they are read in this process and passed to the jobs as values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.spark.jobs.share_configs import ConfigValues
from ottla.spark.pipeline.event_decoder import RECORDS, SAMPLES
from ottla.spark.pipeline.in_process import INPUT

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["METADATA_SCHEMA", "configs_in", "kinds_in", "metadata_table", "seen_in", "topic_names"]

_RESOURCES: Final = {2: "topic", 4: "broker", 32: "group"}
_JSON: Final = msgspec.json.Decoder()
METADATA_SCHEMA: Final = (
    ("cluster", "string"),
    ("offset", "int64"),
    ("timestamp", "int64"),
    ("type", "string"),
    ("version", "int32"),
    ("epoch", "int32"),
    ("value", "string"),
)


# --- the metadata log -------------------------------------------------------------------------------------------------


def metadata_table(cluster: str, batches: Iterator[pa.RecordBatch] | None, ids: Mapping[str, str]) -> pa.Table:
    """The records of the metadata log; if it cannot be read, one record for each topic in `ids`."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in METADATA_SCHEMA])
    if batches is None:
        rows = [
            (cluster, 0, 0, "TopicRecord", 0, 0, msgspec.json.encode({"name": name, "topicId": topic_id}).decode())
            for name, topic_id in sorted(ids.items())
        ]
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    return pa.Table.from_batches((_metadata_rows(cluster, batch, schema) for batch in batches), schema=schema)


def _metadata_rows(cluster: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    times = batch.column("_timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // 1000
    columns = [
        pa.repeat(cluster, batch.num_rows),
        batch.column("_offset"),
        pa.array(times, pa.int64()),
        batch.column("_record"),
        batch.column("_version"),
        batch.column("_epoch"),
        batch.column("value"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_type(metadata: pa.Table, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow.compute as pc

    found = metadata.filter(pc.equal(metadata.column("type"), kind)).select(["timestamp", "value"])
    for at_ms, value in zip(*(column.to_pylist() for column in found.columns), strict=True):
        yield at_ms, _JSON.decode(value)


# --- samples ----------------------------------------------------------------------------------------------------------


def _samples(events: Path, kind: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Cluster, time and body of the samples of a kind."""
    import pyarrow.dataset as ds

    files = [str(file) for file in events.rglob(f"{INPUT}={SAMPLES}/**/*.parquet")]
    if not files:
        return
    wanted = (ds.field("type") == kind) & ds.field("body").is_valid() & ds.field("error").is_null()
    for batch in ds.dataset(files).to_batches(columns=["cluster", "ts", "body"], filter=wanted):
        for cluster, ts, body in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield cluster, ts, _JSON.decode(body)


def kinds_in(events: Path) -> dict[str, frozenset[str]]:
    """The types of records and the kinds of samples that occur."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    found: dict[str, frozenset[str]] = {}
    for name in (RECORDS, SAMPLES):
        files = [str(file) for file in events.rglob(f"{INPUT}={name}/**/*.parquet")]
        batches = ds.dataset(files).to_batches(columns=["type"]) if files else ()
        found[name] = frozenset(kind for batch in batches for kind in pc.unique(batch.column(0)).to_pylist() if kind)
    return found


def topic_names(events: Path, metadata: pa.Table) -> dict[str, str]:
    """The names of topics by id, including deleted topics."""
    found = {body["topicId"]: body["name"] for _, body in _of_type(metadata, "TopicRecord")}
    found |= {body["id"]: body["topic"] for _, _, body in _samples(events, "topic") if body.get("id")}
    return found


def configs_in(cluster: str, events: Path, metadata: pa.Table) -> Iterator[ConfigValues]:
    """All values of configs in the metadata log and in samples."""
    for at_ms, body in _of_type(metadata, "ConfigRecord"):
        resource = _RESOURCES.get(body["resourceType"], "")
        yield ConfigValues(cluster, at_ms, resource, body["resourceName"], {body["name"]: body["value"]})
    for told_of, ts, body in _samples(events, "configs"):
        yield ConfigValues(told_of, ts, body["resource"], body["name"], body["values"])


def seen_in(events: Path) -> dict[str, Any]:
    """The nodes and topics of the cluster in the last samples."""
    seen: dict[str, Any] = {}
    for _, _, body in _samples(events, "cluster"):
        brokers = body.get("brokers", ())
        seen["nodes"] = [{name: each.get(name) for name in ("id", "host", "port", "rack")} for each in brokers]
    topics = {body["topic"]: len(body.get("partitions", ())) for _, _, body in _samples(events, "topic")}
    if topics:
        seen |= {"topics": len(topics), "partitions": sum(topics.values())}
    groups = {body["group"]: body.get("type", "") for _, _, body in _samples(events, "group")}
    if groups:
        seen["groups"] = dict(sorted(Counter(groups.values()).items()))
    return seen
