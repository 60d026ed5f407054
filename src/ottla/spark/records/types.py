"""Types of columns, for Spark as text and for Arrow, which is imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Column", "ListOf", "Scalar", "StructOf", "Type", "arrow_schema", "ddl"]

SCALARS: Final = {
    "bool": "boolean",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "uint32": "bigint",
    "int64": "bigint",
    "float64": "double",
    "uuid": "string",
    "string": "string",
    "bytes": "binary",
    "records": "binary",
}
"""Kafka's types -> Spark's types."""


class Scalar(NamedTuple):
    name: str
    """Spark's name."""

    def ddl(self) -> str:
        return self.name

    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        types = {
            "boolean": pa.bool_(),
            "int": pa.int32(),
            "bigint": pa.int64(),
            "double": pa.float64(),
            "string": pa.string(),
            "binary": pa.binary(),
            "timestamp": pa.timestamp("us", tz="UTC"),
        }
        return types[self.name]


class ListOf(NamedTuple):
    element: Type

    def ddl(self) -> str:
        return f"array<{self.element.ddl()}>"

    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.list_(pa.field("element", self.element.arrow()))


class StructOf(NamedTuple):
    columns: tuple[Column, ...]

    def ddl(self) -> str:
        return f"struct<{', '.join(f'`{name}`: {kind.ddl()}' for name, kind in self.columns)}>"

    def arrow(self) -> pa.DataType:
        import pyarrow as pa

        return pa.struct([pa.field(name, kind.arrow()) for name, kind in self.columns])


Type = Scalar | ListOf | StructOf


class Column(NamedTuple):
    name: str
    type: Type


def ddl(columns: tuple[Column, ...]) -> str:
    """The columns as the text of a Spark schema."""
    return ", ".join(f"`{name}` {kind.ddl()}" for name, kind in columns)


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """The columns as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([pa.field(name, kind.arrow()) for name, kind in columns])
