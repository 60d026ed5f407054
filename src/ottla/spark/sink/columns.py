"""The columns that a query must have to be written, and the records in its Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.client.producer import ProducerRecord
from ottla.spark.errors import OttlaSparkError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "records_of"]

HEADERS: Final = "array<struct<key:string,value:binary>>"
TYPES: Final = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS,),
}
"""Column -> the types that it may have, as Spark writes them."""


class Columns(NamedTuple):
    """The columns of a query."""

    key: bool
    topic: bool
    partition: bool
    headers: bool

    @classmethod
    def of(cls, types: Mapping[str, str], *, has_topic_option: bool, include_headers: bool) -> Columns:
        """The columns of a query, from their types. Raises OttlaSparkError if they do not fit."""
        for name, kind in types.items():
            if name not in TYPES:
                raise OttlaSparkError(f"column {name}: a record has none; it can be {', '.join(TYPES)}")
            if kind not in TYPES[name]:
                wanted = " or ".join(TYPES[name])
                raise OttlaSparkError(f"column {name}: its type is {kind}, and has to be {wanted}")
        if "value" not in types:
            raise OttlaSparkError("column value: it is required")
        if "topic" not in types and not has_topic_option:
            raise OttlaSparkError("option topic: give it, or let the query have a column topic")
        if "headers" in types and not include_headers:
            raise OttlaSparkError("column headers: it is written with includeHeaders=true only")
        return cls("key" in types, "topic" in types, "partition" in types, "headers" in types)


def records_of(batch: pa.RecordBatch, columns: Columns, topic: str) -> Iterator[ProducerRecord]:
    """The records of an Arrow batch. The option `topic` takes precedence over the column."""
    size = batch.num_rows
    values = _bytes(batch, "value")
    keys = _bytes(batch, "key") if columns.key else [None] * size
    partitions = batch.column("partition").to_pylist() if columns.partition else [None] * size
    headers = batch.column("headers").to_pylist() if columns.headers else [None] * size
    topics = [topic] * size if topic else batch.column("topic").to_pylist()
    for name, value, key, listed, partition in zip(topics, values, keys, headers, partitions, strict=True):
        if name is None:
            raise OttlaSparkError("column topic: a row has none; give the option topic, or leave such rows out")
        yield ProducerRecord(name, value, key, _headers(listed), partition)


def _bytes(batch: pa.RecordBatch, name: str) -> list[Any]:
    import pyarrow as pa

    column = batch.column(name)
    found: list[Any] = (column.cast(pa.binary()) if pa.types.is_string(column.type) else column).to_pylist()
    return found


def _headers(listed: list[dict[str, Any] | None] | None) -> list[tuple[str, bytes | None]]:
    found = []
    for each in listed or ():
        if each is None or each["key"] is None:
            raise OttlaSparkError("column headers: a header has no key")
        found.append((each["key"], each["value"]))
    return found
