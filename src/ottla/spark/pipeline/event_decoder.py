"""Turns records of topics into events: one table for all inputs of the jobs, from all topics.

An event is a record of a coordinator (with key and value as the topic holds them, because the jobs decode them), an
offset commit (with its fields in columns: there are a hundred of them for each other record, so they are decoded in
bulk), a sample of an observer, or the end offset of another topic's partition at some time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.health.facts import Int64
from ottla.health.samples import OBSERVATIONS
from ottla.spark.pipeline.commit_windows import last_of_windows
from ottla.spark.schemas import arrow_schema, ddl
from ottla.wire import WireError, uuid_text
from ottla.wire.keyed import GROUP_TOPIC, SHARE_TOPIC, decode_keyed

__all__ = [
    "COMMITS",
    "ENDS",
    "EVENT_COLUMNS",
    "EVENT_DDL",
    "LOG_END",
    "RECORDS",
    "SAMPLES",
    "EventDecoder",
    "end_events",
    "sample_events",
]

RECORDS: Final = "records"
COMMITS: Final = "commits"
SAMPLES: Final = "samples"
ENDS: Final = "ends"
LOG_END: Final = "LogEnd"
"""The type of the events of `ENDS`."""

EVENT_COLUMNS: Final = {
    "input": "string",
    "cluster": "string",
    "topic": "string",  # of the record; null for a sample from a file
    "partition": "int",
    "offset": "bigint",  # the end offset, if the event is one
    "ts": "bigint",
    "type": "string",  # of the record, or the sample's kind
    "group": "string",
    "key": "binary",
    "value": "binary",
    "commit_topic": "string",
    "commit_partition": "int",
    "committed": "bigint",
    "share_topic_id": "string",  # of an end offset, the id of its topic
    "share_partition": "int",
    "body": "string",  # of the sample, as JSON
    "entity": "string",
    "observer": "string",
    "seq": "bigint",
    "error": "string",
    "heartbeat": "boolean",
    "dropped": "bigint",  # so many others the observer, or the worker that read a commit, has left out
}
EVENT_DDL: Final = ddl(EVENT_COLUMNS)
_COMMIT_TYPES: Final = (0, 1)
_COMMIT_NAMES: Final = ("OffsetCommit", "LegacyOffsetCommit")
_COMMIT_OFFSET_AT: Final = 2  # after the version, in all versions
_INT64_BYTES: Final = 8
_MICROSECONDS: Final = 1000
_KEYS_KEPT: Final = 20_000
"""Groups commit with the same keys again and again; a task reads those of one partition."""


Time = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since 1970, to the end of the last year that has a date."""


class _Sample(msgspec.Struct):
    """A sample whose body is not decoded."""

    kind: str
    ts: Time
    cluster: str
    observer: str = ""
    seq: Int64 = 0
    entity: str = ""
    error: str | None = None
    heartbeat: bool = False
    dropped: Int64 = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


_SAMPLE: Final = msgspec.json.Decoder(_Sample)


class EventDecoder:
    """Decodes Arrow batches of `key, value, topic, partition, offset, timestamp` in an executor's worker."""

    def __init__(
        self, cluster: str, commits_from_ms: int = 0, samples_from_ms: int = 0, commit_window_ms: int | None = None
    ) -> None:
        """With `commit_window_ms` commits are left out that others in the same window of time have replaced."""
        self._cluster = cluster
        self._commits_from_ms = commits_from_ms
        self._samples_from_ms = samples_from_ms
        self._commit_window_ms = commit_window_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self._decoded(batch)

    def _decoded(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        topics = batch.column("topic").dictionary_encode()
        for number, topic in enumerate(topics.dictionary.to_pylist()):
            rows = batch if len(topics.dictionary) == 1 else batch.filter(pc.equal(topics.indices, number))
            if topic == OBSERVATIONS or topic not in (GROUP_TOPIC, SHARE_TOPIC):
                yield from self._samples(rows)
            else:
                yield from self._records(topic, rows)

    def _records(self, topic: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        is_commit = _is_commit(rows.column("key")) if topic == GROUP_TOPIC else np.zeros(rows.num_rows, np.bool_)
        wanted = is_commit & (_times_ms(rows) >= self._commits_from_ms)
        if wanted.any():
            yield from _some(self._commits(rows, wanted))
        if not is_commit.all():
            yield _events(RECORDS, self._cluster, topic, rows.filter(pa.array(~is_commit)))

    def _commits(self, rows: pa.RecordBatch, wanted: Any) -> pa.RecordBatch:
        places, left_out = np.flatnonzero(wanted), None
        if self._commit_window_ms is not None:
            keys = rows.column("key").take(pa.array(places))
            has_offset = _committed(rows.column("value")).is_valid().to_numpy(zero_copy_only=False)[places]
            kept, left_out = last_of_windows(keys, _times_ms(rows)[places], has_offset, self._commit_window_ms)
            places = places[kept]
        events = _events(COMMITS, self._cluster, GROUP_TOPIC, rows.take(pa.array(places)), left_out)
        return events.filter(pc.is_valid(events.column("group")))

    def _samples(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        places = {name: rows.column(name).to_pylist() for name in ("topic", "partition", "offset")}
        yield from _some(sample_events(rows.column("value").to_pylist(), places, self._samples_from_ms))


def _some(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows:
        yield batch


# --- records ----------------------------------------------------------------------------------------------------------


class _Key(NamedTuple):
    """What the key of a record tells. Nothing, if it is of a later Kafka, or damaged."""

    type: str | None = None
    group: str | None = None
    topic: str | None = None
    """Of a commit the name, of a share partition the id."""
    partition: int | None = None


@lru_cache(maxsize=_KEYS_KEPT)
def _key(topic: str, key: bytes | None) -> _Key:
    try:
        found = decode_keyed(topic, key or b"", None).key
    except WireError:
        return _Key()
    name = type(found).__name__.removesuffix("Key")
    if topic == SHARE_TOPIC:
        return _Key(name, found.group_id, uuid_text(found.topic_id), found.partition)
    if name in _COMMIT_NAMES:
        return _Key(_COMMIT_NAMES[0], found.group, found.topic, found.partition)
    return _Key(name, found.group if name == "GroupMetadata" else found.group_id)


def _times_ms(rows: pa.RecordBatch) -> Any:
    return rows.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False) // _MICROSECONDS


def _events(what: str, cluster: str, topic: str, rows: pa.RecordBatch, left_out: Any = None) -> pa.RecordBatch:
    """Records as events. Each key is decoded once, though many records may have it; values are not decoded."""
    count = rows.num_rows
    keys = rows.column("key").dictionary_encode()
    found = [_key(topic, key) for key in keys.dictionary.to_pylist()]

    def told(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([getattr(each, name) for each in found], kind).take(keys.indices)

    columns = {
        "input": pa.repeat(what, count),
        "cluster": pa.repeat(cluster, count),
        "topic": rows.column("topic"),
        "partition": rows.column("partition"),
        "offset": rows.column("offset"),
        "ts": pa.array(_times_ms(rows), pa.int64()),
        "type": told("type", pa.string()),
        "group": told("group", pa.string()),
    }
    if what == COMMITS:
        columns["committed"] = _committed(rows.column("value"))
        columns["commit_topic"] = told("topic", pa.string())
        columns["commit_partition"] = told("partition", pa.int32())
        if left_out is not None:
            columns["dropped"] = pa.array(left_out, pa.int64())
    else:
        columns["key"], columns["value"] = rows.column("key"), rows.column("value")
    if topic == SHARE_TOPIC:
        columns["share_topic_id"] = told("topic", pa.string())
        columns["share_partition"] = told("partition", pa.int32())
    return _with_nulls(columns, count)


def _with_nulls(columns: dict[str, Any], count: int) -> pa.RecordBatch:
    schema = arrow_schema(EVENT_COLUMNS)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def end_events(cluster: str, topic: str, topic_id: str | None, partition: int, times: Any, ends: Any) -> pa.RecordBatch:
    """The end offsets of a partition at some times."""
    count = len(times)
    columns = {
        "input": pa.repeat(ENDS, count),
        "cluster": pa.repeat(cluster, count),
        "topic": pa.repeat(topic, count),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        "offset": pa.array(ends, pa.int64()),
        "ts": pa.array(times, pa.int64()),
        "type": pa.repeat(LOG_END, count),
        "share_topic_id": pa.repeat(pa.scalar(topic_id, pa.string()), count),
    }
    return _with_nulls(columns, count)


# --- offset commits ---------------------------------------------------------------------------------------------------


def _is_commit(keys: pa.Array) -> Any:
    """A mask of the keys that begin with the type of an offset commit."""
    starts, ends, data = _runs(keys)
    found = np.zeros(len(keys), np.bool_)
    rows = np.flatnonzero(ends - starts >= _COMMIT_OFFSET_AT)
    found[rows] = (data[starts[rows]] == 0) & (data[starts[rows] + 1] <= max(_COMMIT_TYPES))
    return found


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
        "body": None if body == "null" else body,
        "entity": sample.entity,
        "observer": sample.observer,
        "seq": sample.seq,
        "error": sample.error,
        "heartbeat": sample.heartbeat,
        "dropped": sample.dropped,
    }
