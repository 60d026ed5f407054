"""The columns of records in Spark: those of Spark's own Kafka source, and some more on request.

Arrow batches must match the schema exactly: 32-bit offsets, timestamps in microseconds and UTC, every field nullable.
So both Spark's text and Arrow's fields are defined here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

__all__ = ["HEADERS", "RECORD_COLUMNS", "RecordColumns", "arrow_schema", "ddl"]

RECORD_COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
HEADERS: Final = {"headers": "array<struct<key: string, value: binary>>"}
LEADER_EPOCH: Final = {"leaderEpoch": "int"}
TOPIC_ID: Final = {"topicId": "string"}


class RecordColumns(NamedTuple):
    """The columns that a source of records has."""

    headers: bool = False
    leader_epoch: bool = False
    topic_id: bool = False

    def types(self) -> dict[str, str]:
        """The columns in order, with their types as Spark writes them."""
        columns = dict(RECORD_COLUMNS)
        for is_wanted, more in zip(self, (HEADERS, LEADER_EPOCH, TOPIC_ID), strict=True):
            columns |= more if is_wanted else {}
        return columns


def ddl(types: dict[str, str]) -> str:
    """The columns as the text of a Spark schema."""
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())


def arrow_schema(types: dict[str, str]) -> Any:
    """The same columns as a pyarrow schema."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    arrow = {
        "binary": pa.binary(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        HEADERS["headers"]: pa.list_(pa.field("element", header)),
    }
    return pa.schema([pa.field(name, arrow[kind]) for name, kind in types.items()])
