"""Turns records of topics into events: one table for all inputs of the jobs, from all topics.

An event is a record of a coordinator (with key and value as JSON), an offset commit (with its fields in columns: there
are a hundred of them for each other record, so they are decoded in bulk), or a sample of an observer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from ottla import wire
from ottla.health.samples import OBSERVATIONS
from ottla.spark.records.decode import Source
from ottla.spark.records.json_rows import JsonDecoder
from ottla.spark.records.values import ValueRules
from ottla.spark.schemas import arrow_schema, ddl
from ottla.wire import WireError

__all__ = [
    "COMMITS",
    "EVENT_COLUMNS",
    "EVENT_DDL",
    "GROUP_TOPIC",
    "RECORDS",
    "SAMPLES",
    "SHARE_TOPIC",
    "EventDecoder",
    "sample_events",
]

RECORDS: Final = "records"
COMMITS: Final = "commits"
SAMPLES: Final = "samples"
GROUP_TOPIC: Final = "__consumer_offsets"
SHARE_TOPIC: Final = "__share_group_state"

EVENT_COLUMNS: Final = {
    "input": "string",
    "cluster": "string",
    "topic": "string",  # of the record; null for a sample from a file
    "partition": "int",
    "offset": "bigint",
    "ts": "bigint",
    "type": "string",  # of the record, or the sample's kind
    "version": "int",
    "group": "string",
    "key": "string",
    "value": "string",  # of the record, or the sample's body
    "commit_topic": "string",
    "commit_partition": "int",
    "committed": "bigint",
    "entity": "string",
    "observer": "string",
    "seq": "bigint",
    "error": "string",
    "heartbeat": "boolean",
    "dropped": "bigint",
}
EVENT_DDL: Final = ddl(EVENT_COLUMNS)
_COMMIT_TYPES: Final = (0, 1)
_COMMIT_OFFSET_AT: Final = 2  # after the version, in all versions
_INT64_BYTES: Final = 8
_MICROSECONDS: Final = 1000
_BATCH_ROWS: Final = 50_000


class _Sample(msgspec.Struct):
    """A sample whose body is not decoded."""

    kind: str
    ts: int
    cluster: str
    observer: str = ""
    seq: int = 0
    entity: str = ""
    error: str | None = None
    heartbeat: bool = False
    dropped: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


_SAMPLE: Final = msgspec.json.Decoder(_Sample)


class EventDecoder:
    """Decodes Arrow batches of `key, value, topic, partition, offset, timestamp` in an executor's worker."""

    def __init__(self, cluster: str, commits_from_ms: int = 0, samples_from_ms: int = 0) -> None:
        self._cluster = cluster
        self._commits_from_ms = commits_from_ms
        self._samples_from_ms = samples_from_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        json_rows = JsonDecoder(ValueRules(), _BATCH_ROWS)
        for batch in batches:
            yield from self._decoded(batch, json_rows)

    def _decoded(self, batch: pa.RecordBatch, json_rows: JsonDecoder) -> Iterator[pa.RecordBatch]:
        topics = batch.column("topic").dictionary_encode()
        for number, topic in enumerate(topics.dictionary.to_pylist()):
            mask = pa.array(topics.indices.to_numpy(zero_copy_only=False) == number)
            rows = batch.filter(mask)
            if topic == OBSERVATIONS or topic not in (GROUP_TOPIC, SHARE_TOPIC):
                yield from self._samples(rows)
            else:
                yield from self._records(topic, rows, json_rows)

    def _records(self, topic: str, rows: pa.RecordBatch, json_rows: JsonDecoder) -> Iterator[pa.RecordBatch]:
        is_commit = _is_commit(rows.column("key")) if topic == GROUP_TOPIC else np.zeros(rows.num_rows, np.bool_)
        if is_commit.any():
            yield from _some(self._commits(rows.filter(pa.array(is_commit))))
        if not is_commit.all():
            yield _json_events(self._cluster, topic, rows.filter(pa.array(~is_commit)), json_rows)

    def _commits(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        keys = rows.column("key").dictionary_encode()
        places = [_commit_key(key) for key in keys.dictionary.to_pylist()]
        indices = keys.indices
        found = {
            "group": pa.array([group for group, _, _ in places], pa.string()).take(indices),
            "commit_topic": pa.array([topic for _, topic, _ in places], pa.string()).take(indices),
            "commit_partition": pa.array([partition for _, _, partition in places], pa.int32()).take(indices),
            "committed": _committed(rows.column("value")),
        }
        events = _events(COMMITS, self._cluster, rows, "OffsetCommit", found)
        keep = (events.column("ts").to_numpy() >= self._commits_from_ms) & events.column("group").is_valid().to_numpy(
            zero_copy_only=False
        )
        return events if keep.all() else events.filter(pa.array(keep))

    def _samples(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        places = {name: rows.column(name).to_pylist() for name in ("topic", "partition", "offset")}
        yield from _some(sample_events(rows.column("value").to_pylist(), places, self._samples_from_ms))


def _some(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows:
        yield batch


def _events(
    what: str, cluster: str, rows: pa.RecordBatch, kind: str | pa.Array, more: dict[str, pa.Array]
) -> pa.RecordBatch:
    """Events with the columns of all records and some more; other columns are null."""
    count = rows.num_rows
    times = rows.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // _MICROSECONDS
    columns = {
        "input": pa.repeat(what, count),
        "cluster": pa.repeat(cluster, count),
        "topic": rows.column("topic"),
        "partition": rows.column("partition"),
        "offset": rows.column("offset"),
        "ts": pa.array(times, pa.int64()),
        "type": pa.repeat(kind, count) if isinstance(kind, str) else kind,
        **more,
    }
    return _with_nulls(columns, count)


def _with_nulls(columns: dict[str, Any], count: int) -> pa.RecordBatch:
    schema = arrow_schema(EVENT_COLUMNS)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- offset commits ---------------------------------------------------------------------------------------------------


def _is_commit(keys: pa.Array) -> Any:
    """A mask of the keys that begin with the type of an offset commit."""
    starts, ends, data = _runs(keys)
    found = np.zeros(len(keys), np.bool_)
    rows = np.flatnonzero(ends - starts >= _COMMIT_OFFSET_AT)
    found[rows] = (data[starts[rows]] == 0) & (data[starts[rows] + 1] <= max(_COMMIT_TYPES))
    return found


def _commit_key(key: bytes) -> tuple[str | None, str | None, int | None]:
    try:
        found = wire.keyed.decode_keyed(GROUP_TOPIC, key, None).key
    except WireError:
        return None, None, None  # of a later Kafka, or damaged
    return found.group, found.topic, found.partition


def _committed(values: pa.Array) -> pa.Array:
    """The offsets of commits; null for tombstones."""
    starts, ends, data = _runs(values)
    is_set = ends - starts >= _COMMIT_OFFSET_AT + _INT64_BYTES
    at = np.where(is_set, starts, 0)[:, None] + np.arange(_COMMIT_OFFSET_AT, _COMMIT_OFFSET_AT + _INT64_BYTES)
    padded = data if len(data) >= _COMMIT_OFFSET_AT + _INT64_BYTES else np.zeros(16, np.uint8)
    offsets = np.ascontiguousarray(padded[np.minimum(at, len(padded) - 1)]).view(">i8").ravel().astype(np.int64)
    return pa.array(offsets, pa.int64(), mask=~is_set)


def _runs(values: pa.Array) -> tuple[Any, Any, Any]:
    """The start and end of each value, and the bytes of all. Null values have no bytes."""
    _, offsets_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    starts = offsets[:-1]
    return starts, np.where(is_valid, offsets[1:], starts), data


# --- other records ----------------------------------------------------------------------------------------------------


def _json_events(cluster: str, topic: str, rows: pa.RecordBatch, decoder: JsonDecoder) -> pa.RecordBatch:
    kinds: list[str | None] = []
    versions: list[int | None] = []
    groups: list[str | None] = []
    keys: list[str | None] = []
    values: list[str | None] = []
    source = Source(topic, -1)
    for key, value in zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True):
        kind, version, _, (key_text, value_text) = decoder.row(source, key, value)
        kinds.append(kind)
        versions.append(version)
        keys.append(key_text)
        values.append(value_text)
        groups.append(_group_in(key_text))
    more = {
        "version": pa.array(versions, pa.int32()),
        "group": pa.array(groups, pa.string()),
        "key": pa.array(keys, pa.string()),
        "value": pa.array(values, pa.string()),
    }
    return _events(RECORDS, cluster, rows, pa.array(kinds, pa.string()), more)


class _Key(msgspec.Struct):
    group_id: str | None = msgspec.field(default=None, name="groupId")
    group: str | None = None


_KEY: Final = msgspec.json.Decoder(_Key)


def _group_in(key: str | None) -> str | None:
    if key is None:
        return None
    found = _KEY.decode(key)
    return found.group_id if found.group_id is not None else found.group


# --- samples ----------------------------------------------------------------------------------------------------------


def sample_events(values: list[bytes | None], places: dict[str, list[Any]], from_ms: int = 0) -> pa.RecordBatch:
    """Samples as events. Other records are left out: any client may write anything to a topic."""
    cells: dict[str, list[Any]] = {name: [] for name in EVENT_COLUMNS}
    for row, value in enumerate(values):
        sample = _sample(value)
        if sample is None or sample.ts < from_ms:
            continue
        for name, cell in _sample_cells(sample).items():
            cells[name].append(cell)
        for name, column in places.items():
            cells[name].append(column[row])
    count = len(cells["input"])
    types = arrow_schema(EVENT_COLUMNS)
    columns = {name: pa.array(found, types.field(name).type) for name, found in cells.items() if len(found) == count}
    return _with_nulls(columns, count)


def _sample(value: bytes | None) -> _Sample | None:
    try:
        return None if value is None else _SAMPLE.decode(value)
    except msgspec.MsgspecError:
        return None


def _sample_cells(sample: _Sample) -> dict[str, Any]:
    body = bytes(sample.body).decode()
    return {
        "input": SAMPLES,
        "cluster": sample.cluster,
        "ts": sample.ts,
        "type": sample.kind,
        "value": None if body == "null" else body,
        "entity": sample.entity,
        "observer": sample.observer,
        "seq": sample.seq,
        "error": sample.error,
        "heartbeat": sample.heartbeat,
        "dropped": sample.dropped,
    }
