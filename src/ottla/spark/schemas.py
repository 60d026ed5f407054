"""The columns of records in Spark: those of Spark's own Kafka source, and some more on request.

Arrow batches must match the schema exactly: 32-bit offsets, timestamps in microseconds and UTC, every field nullable.
So both Spark's text and Arrow's fields are defined here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "HEADERS",
    "RECORD_COLUMNS",
    "RecordColumns",
    "arrow_flags",
    "arrow_numbers",
    "arrow_repeated",
    "arrow_schema",
    "arrow_texts",
    "ddl",
]

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


# --- columns without pandas, which `pa.array` and `pa.scalar` import: half a second in each worker --------------------


def arrow_numbers(values: NDArray[Any], arrow_type: Any, is_known: NDArray[Any] | None = None) -> Any:
    """A column of numbers, or of what Arrow stores as such, without a copy. What is not known is null."""
    import numpy as np
    import pyarrow as pa

    known = None if is_known is None else _bits(is_known)
    return pa.Array.from_buffers(arrow_type, len(values), [known, pa.py_buffer(np.ascontiguousarray(values))])


def arrow_flags(values: NDArray[Any], is_known: NDArray[Any]) -> Any:
    """A column of truth values. What is not known is null."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(values), [_bits(is_known), _bits(values)])


def _bits(flags: NDArray[Any]) -> Any:
    import numpy as np
    import pyarrow as pa

    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def arrow_repeated(value: str | int | None, arrow_type: Any, count: int) -> Any:
    """A column with one text, 32-bit number or null in all rows."""
    import numpy as np
    import pyarrow as pa

    if value is None:
        return pa.nulls(count, arrow_type)
    if isinstance(value, int):
        return arrow_numbers(np.full(count, value, np.int32), arrow_type)
    text = value.encode()
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(text))
    return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(ends), pa.py_buffer(text * count)])


def arrow_texts(values: Sequence[str | None]) -> Any:
    """A column of texts and nulls."""
    import numpy as np
    import pyarrow as pa

    texts = [b"" if value is None else value.encode() for value in values]
    ends = np.zeros(len(texts) + 1, np.int32)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    known = _bits(np.array([value is not None for value in values], np.bool_))
    return pa.Array.from_buffers(pa.string(), len(texts), [known, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))])
