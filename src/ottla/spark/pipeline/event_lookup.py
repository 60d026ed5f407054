"""Looks up in the events what the jobs need before they run: topic names, configs, and which kinds of events exist.

These are small, so they are read in this process and passed to the jobs as values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ottla.health.facts import Cluster, Configs, Fact, Group, Lag, Quorum, Topic
from ottla.spark.jobs.consumer_lag import TYPE_PREFIXES
from ottla.spark.jobs.share_configs import ConfigValues
from ottla.spark.pipeline.event_decoder import COMMITS, RECORDS, SAMPLES
from ottla.spark.pipeline.in_process import INPUT

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = [
    "METADATA_SCHEMA",
    "KnownFromEvents",
    "configs_in",
    "elections_in",
    "kinds_in",
    "metadata_table",
    "topic_names",
]

F = TypeVar("F", bound=Fact)
NODE: Final = ("id", "host", "port", "rack")
"""What a run file says of a node."""
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


def _samples(events: Path, kind: type[F]) -> Iterator[tuple[str, int, F]]:
    """Cluster, time and fact of the samples of a kind. Those that cannot be read are left out, as the rules do: any
    client may write anything to a topic."""
    import pyarrow.dataset as ds

    read = msgspec.json.Decoder(kind, strict=False).decode
    wanted = (ds.field("type") == kind.kind) & ds.field("body").is_valid() & ds.field("error").is_null()
    for batch in _batches(events, SAMPLES, ["cluster", "ts", "body"], wanted):
        for cluster, ts, body in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            with suppress(msgspec.MsgspecError):
                yield cluster, ts, read(body)


def kinds_in(events: Path) -> dict[str, frozenset[str]]:
    """The types of records and the kinds of samples that occur."""
    import pyarrow.compute as pc

    found: dict[str, frozenset[str]] = {}
    for name in (RECORDS, SAMPLES):
        batches = _batches(events, name, ["type"])
        found[name] = frozenset(kind for batch in batches for kind in pc.unique(batch.column(0)).to_pylist() if kind)
    return found


def _batches(
    events: Path, name: str, columns: list[str], wanted: ds.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of an input, one file after the other: a scan of all files reads on while its rows are looked at."""
    import pyarrow.dataset as ds

    for file in events.rglob(f"{INPUT}={name}/**/*.parquet"):
        yield from ds.dataset(file).to_batches(columns=columns, filter=wanted)


def topic_names(metadata: pa.Table) -> dict[str, str]:
    """The names of topics by id in the metadata log, including deleted topics."""
    return {body["topicId"]: body["name"] for _, body in _of_type(metadata, "TopicRecord")}


def configs_in(cluster: str, metadata: pa.Table) -> Iterator[ConfigValues]:
    """All values of configs in the metadata log."""
    for at_ms, body in _of_type(metadata, "ConfigRecord"):
        resource = _RESOURCES.get(body["resourceType"], "")
        yield ConfigValues(cluster, at_ms, resource, body["resourceName"], {body["name"]: body["value"]})


def _record_types(events: Path) -> Iterator[tuple[str, str, int, str | None]]:
    """Cluster and group, the last time at which it had records of some type that are no tombstones, and the type of
    group that this tells; the oldest first."""
    import pyarrow.dataset as ds

    has_value = ds.field("value").is_valid()
    newest: dict[tuple[str, str, str], int] = {}
    for cluster, group, kind, ts in _grouped(events, RECORDS, ["cluster", "group", "type"], [("ts", "max")], has_value):
        key = (cluster, group, kind)
        newest[key] = max(newest.get(key, ts), ts)
    for (cluster, group, kind), ts in sorted(newest.items(), key=lambda each: each[1]):
        found = (each for prefix, each in TYPE_PREFIXES.items() if kind and kind.startswith(prefix))
        yield cluster, group, ts, next(found, None)


def _committing(events: Path) -> set[tuple[str, str]]:
    """Cluster and name of the groups that have committed."""
    return {(cluster, group) for cluster, group in _grouped(events, COMMITS, ["cluster", "group"], [])}


def _grouped(
    events: Path, name: str, key: list[str], aggregations: list[tuple[str, str]], wanted: ds.Expression | None = None
) -> Iterator[tuple[Any, ...]]:
    """The rows of an input grouped by a key, one part of them after the other, so that there can be many: a key may
    come again."""
    import pyarrow as pa

    columns = [*key, *(column for column, _ in aggregations)]
    for batch in _batches(events, name, columns, wanted):
        found = pa.Table.from_batches([batch]).group_by(key, use_threads=False).aggregate(aggregations)
        names = [*key, *(f"{column}_{how}" for column, how in aggregations)]
        yield from zip(*(found[each].to_pylist() for each in names), strict=True)


def elections_in(metadata: pa.Table) -> list[tuple[str, int, int, int]]:
    """Cluster, time, leader and leader epoch of the elections in the metadata log."""
    import pyarrow.compute as pc

    found = metadata.filter(pc.equal(metadata["type"], "LeaderChange")).to_pylist()
    return [
        (row["cluster"], row["timestamp"], int(_JSON.decode(row["value"])["leaderId"]), row["epoch"]) for row in found
    ]


class KnownFromEvents:
    """What the events so far say about the cluster as a whole. Take them in the order in which they came."""

    def __init__(self, *, is_growing: bool = False) -> None:
        """`is_growing`: more than one part of the events will be taken."""
        self._is_growing = is_growing
        self.topic_names: dict[str, str] = {}
        self.kinds: dict[str, frozenset[str]] = {RECORDS: frozenset(), SAMPLES: frozenset()}
        """The types of records and the kinds of samples that occur."""
        self._configs: dict[tuple[str, str, str], ConfigValues] = {}
        self._nodes: list[dict[str, Any]] | None = None
        self._topics: dict[str, int] = {}
        self._groups: dict[str, str] = {}
        self._types: dict[tuple[str, str], tuple[int, str]] = {}
        self._with_lag: set[tuple[str, str]] = set()
        self.with_quorum: set[str] = set()
        """The clusters whose quorum was sampled, not only in vain."""
        self.has_other_types = False
        """Whether a group that has commits or lag turned out to have another type than was known before."""

    def take(self, events: Path) -> KnownFromEvents:
        """The events below a path."""
        for name, kinds in kinds_in(events).items():
            self.kinds[name] |= kinds
        for _, _, topic in _samples(events, Topic):
            self._topics[topic.topic] = len(topic.partitions)
            if topic.id:
                self.topic_names[topic.id] = topic.topic
        for cluster, ts, told in sorted(_samples(events, Configs), key=lambda each: each[1]):
            key = (cluster, told.resource, told.name)
            known = self._configs.get(key)
            values = {**(known.values if known else {}), **told.values}
            self._configs[key] = ConfigValues(cluster, ts, told.resource, told.name, values)
        for _, _, seen in _samples(events, Cluster):
            self._nodes = [{name: getattr(each, name) for name in NODE} for each in seen.brokers]
        self._groups |= {group.group: group.type for _, _, group in _samples(events, Group)}
        self.with_quorum |= {cluster for cluster, _, _ in _samples(events, Quorum)}
        self._take_group_types(events)
        return self

    def _take_group_types(self, events: Path) -> None:
        told = [(cluster, group.group, ts, group.type) for cluster, ts, group in _samples(events, Group)]
        for cluster, group, ts, kind in [*told, *_record_types(events)]:
            known = self._types.get((cluster, group))
            if not kind or (known is not None and known[0] > ts):
                continue
            self._types[cluster, group] = ts, kind
            self.has_other_types |= known[1] != kind if known else (cluster, group) in self._with_lag
        if self._is_growing:
            self._note_with_lag(events)

    def _note_with_lag(self, events: Path) -> None:
        self._with_lag |= {(cluster, lag.group) for cluster, _, lag in _samples(events, Lag)}
        self._with_lag |= _committing(events)

    def group_types(self) -> pa.Table:
        """The last known type of each group."""
        import pyarrow as pa

        rows = [{"cluster": each[0], "group": each[1], "type": kind} for each, (_, kind) in self._types.items()]
        return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in ("cluster", "group", "type")]))

    @property
    def configs(self) -> Iterable[ConfigValues]:
        """The last known configs."""
        return self._configs.values()

    @property
    def seen(self) -> dict[str, Any]:
        """The nodes and topics of the cluster in the last samples."""
        seen: dict[str, Any] = {} if self._nodes is None else {"nodes": self._nodes}
        if self._topics:
            seen |= {"topics": len(self._topics), "partitions": sum(self._topics.values())}
        if self._groups:
            seen["groups"] = dict(sorted(Counter(self._groups.values()).items()))
        return seen
