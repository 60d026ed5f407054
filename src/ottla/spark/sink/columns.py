"""The columns that a query must have to be written, and the rows in its Arrow batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.row_batches import UNNAMED, places_by_value
from ottla.spark.errors import OttlaSparkError
from ottla.wire.row_encoder import ByteColumn, HeaderLists, Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.wire.columns_table import Int64s

__all__ = ["Columns", "Piece", "piece_of"]

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
                raise OttlaSparkError(f"column {name}: unknown; known columns: {', '.join(TYPES)}")
            if kind not in TYPES[name]:
                wanted = " or ".join(TYPES[name])
                raise OttlaSparkError(f"column {name}: its type is {kind}, but must be {wanted}")
        if "value" not in types:
            raise OttlaSparkError("column value: it is required")
        if "topic" not in types and not has_topic_option:
            raise OttlaSparkError("option topic: set it, or add a column topic to the query")
        if "headers" in types and not include_headers:
            raise OttlaSparkError("column headers: it needs includeHeaders=true")
        return cls("key" in types, "topic" in types, "partition" in types, "headers" in types)


class Piece(NamedTuple):
    """Rows that are written together."""

    rows: Rows
    topics: list[tuple[str, Int64s]]
    """The topics that there are, and which of the rows go there."""
    topic_names: ByteColumn
    """Of each row; nulls if the topic is an option."""
    partitions: Int64s | None
    """Of each row, or `UNNAMED`."""


def piece_of(batch: pa.RecordBatch, columns: Columns, topic: str) -> Piece:
    """The rows of an Arrow batch. The topic that is given as an option wins over the column."""
    import numpy as np

    count = batch.num_rows
    rows = Rows(
        ByteColumn.of(batch.column("key")) if columns.key else ByteColumn.nulls(count),
        ByteColumn.of(batch.column("value")),
        _headers(batch.column("headers")) if columns.headers else HeaderLists.none(count),
    )
    partitions = _partitions(batch.column("partition")) if columns.partition else None
    if topic:
        return Piece(rows, [(topic, np.arange(count))], ByteColumn.nulls(count), partitions)
    names = batch.column("topic")
    return Piece(rows, _topics(names), ByteColumn.of(names), partitions)


def _topics(names: pa.Array) -> list[tuple[str, Int64s]]:
    if names.null_count:
        raise OttlaSparkError("column topic: it is null in a row; set the option topic, or filter such rows")
    encoded = names.dictionary_encode()
    return [(encoded.dictionary[code].as_py(), places) for code, places in places_by_value(encoded.indices.to_numpy())]


def _partitions(column: pa.Array) -> Int64s:
    import pyarrow as pa

    found: Int64s = column.cast(pa.int64()).fill_null(UNNAMED).to_numpy()
    return found


def _headers(lists: pa.Array) -> HeaderLists:
    pairs = lists.flatten()
    if pairs.null_count or pairs.field("key").null_count:
        raise OttlaSparkError("column headers: a header has no key")
    return HeaderLists.of(lists)
