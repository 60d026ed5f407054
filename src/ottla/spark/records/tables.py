"""One table for each record type, made from the codec's schemas.

A table has some common columns, then the fields of the key, then those of the value, under Kafka's own names. It has
the fields of all versions. A numeric code is followed by a column with its name.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from ottla.spark.errors import OttlaSparkError
from ottla.spark.records.states import names_of
from ottla.spark.records.types import SCALARS, Column, ListOf, Scalar, StructOf, Type
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import FAMILIES, record_types
from ottla.wire.schemas import message_schema
from ottla.wire.text import Field, Message

__all__ = [
    "COMMON",
    "CONTROL_TOPIC",
    "EPOCH",
    "EVERY_RECORD",
    "JSON_COLUMNS",
    "METADATA_TOPICS",
    "STATE_KEYS",
    "Kind",
    "Table",
    "consumer_message",
    "decoded_column",
    "find_table",
    "message_columns",
    "name_column",
    "tables",
]

EVERY_RECORD: Final = "*"
CONTROL_TOPIC: Final = "__cluster_metadata"
METADATA_TOPICS: Final = ("__cluster_metadata", "__remote_log_metadata")
COMMON: Final = (
    Column("_topic", Scalar("string")),
    Column("_partition", Scalar("int")),
    Column("_offset", Scalar("bigint")),
    Column("_timestamp", Scalar("timestamp")),
    Column("_record", Scalar("string")),
    Column("_version", Scalar("int")),
    Column("_tombstone", Scalar("boolean")),
)
EPOCH: Final = Column("_epoch", Scalar("int"))
JSON_COLUMNS: Final = (*COMMON, EPOCH, Column("key", Scalar("string")), Column("value", Scalar("string")))

STATE_KEYS: Final[dict[str, Callable[[Any], Any]]] = {
    "AccessControlEntryRecord": lambda it: it.id,
    "ClientQuotaRecord": lambda it: (frozenset((each.entity_type, each.entity_name) for each in it.entity), it.key),
    "ConfigRecord": lambda it: (it.resource_type, it.resource_name, it.name),
    "DelegationTokenRecord": lambda it: it.token_id,
    "FeatureLevelRecord": lambda it: it.name,
    "PartitionRecord": lambda it: (it.topic_id, it.partition_id),
    "ProducerIdsRecord": lambda it: None,
    "RegisterBrokerRecord": lambda it: it.broker_id,
    "RegisterControllerRecord": lambda it: it.controller_id,
    "TopicRecord": lambda it: it.topic_id,
    "UserScramCredentialRecord": lambda it: (it.name, it.mechanism),
    "ZkMigrationStateRecord": lambda it: None,
}
"""Tables of the metadata log whose records describe something -> what that is; other records change or remove it."""

Kind = Literal["keyed", "metadata", "control"]
_CONTROL: Final = {
    "LeaderChange": ("LeaderChangeMessage", 2),
    "SnapshotHeader": ("SnapshotHeaderRecord", 3),
    "SnapshotFooter": ("SnapshotFooterRecord", 4),
    "KRaftVersion": ("KRaftVersionRecord", 5),
    "Voters": ("VotersRecord", 6),
}
# The oldest form of offsets belongs to the same table; fields that it lacks are null.
_ALSO: Final = {"OffsetCommit": (0,)}
# Opaque to the coordinator, but of a known layout if the members are consumers.
_CONSUMER_MESSAGES: Final = {
    ("GroupMetadataValue", "subscription"): "ConsumerProtocolSubscription",
    ("GroupMetadataValue", "assignment"): "ConsumerProtocolAssignment",
}


class Table(NamedTuple):
    name: str
    """The name that users write."""
    kind: Kind
    topic: str
    record_types: tuple[int, ...]
    """The table's own type, and other types whose records it includes."""
    key: str | None
    """The name of the key's message."""
    value: str
    columns: tuple[Column, ...]


@cache
def tables() -> dict[str, Table]:
    """All tables by name."""
    found = [*_keyed_tables(), *_metadata_tables(), *_control_tables()]
    return {table.name: table for table in found}


def find_table(name: str) -> Table:
    """The table of a record type, by Kafka's name for it with or without `Record`, in any case."""
    by_name = {table.name.lower(): table for table in tables().values()}
    by_name |= {_short(table.name).lower(): table for table in tables().values()}
    wanted = name.strip().lower()
    found = by_name.get(wanted) or by_name.get(wanted.removesuffix("key").removesuffix("value"))
    if found is None:
        near = get_close_matches(wanted, by_name, n=1, cutoff=0.0)
        raise OttlaSparkError(f"option record: there is no record type {name}: did you mean {by_name[near[0]].name}?")
    return found


def _short(name: str) -> str:
    return name.removesuffix("Record")


# --- which there are --------------------------------------------------------------------------------------------------


def _keyed_tables() -> list[Table]:
    found: list[Table] = []
    for topic in FAMILIES:
        if topic in METADATA_TOPICS:
            continue
        values = record_types(topic, "coordinator-value")
        for record_type, key in record_types(topic, "coordinator-key").items():
            columns = (*COMMON, *message_columns(key), *message_columns(values[record_type]))
            name = key.removesuffix("Key")
            types = (record_type, *_ALSO.get(name, ()))
            found.append(Table(name, "keyed", topic, types, key, values[record_type], columns))
    return found


def _metadata_tables() -> list[Table]:
    return [
        Table(name, "metadata", topic, (record_type,), None, name, (*COMMON, EPOCH, *message_columns(name)))
        for topic in METADATA_TOPICS
        for record_type, name in record_types(topic, "metadata").items()
    ]


def _control_tables() -> list[Table]:
    return [
        Table(name, "control", CONTROL_TOPIC, (record_type,), None, value, (*COMMON, EPOCH, *message_columns(value)))
        for name, (value, record_type) in _CONTROL.items()
    ]


# --- columns ----------------------------------------------------------------------------------------------------------


@cache
def message_columns(name: str) -> tuple[Column, ...]:
    """The columns of all fields of a message, of all versions."""
    assert name in MESSAGES, name
    message = message_schema(name)
    return _columns(message, message.fields)


def _columns(message: Message, fields: tuple[Field, ...]) -> tuple[Column, ...]:
    found: list[Column] = []
    for field in fields:
        found.append(Column(field.name, _type(message, field)))
        more = name_column(message.name, field.name)
        if more is not None:
            found.append(Column(more, Scalar("string")))
        inner = consumer_message(message.name, field.name)
        if inner is not None:
            found.append(Column(decoded_column(field.name), StructOf(message_columns(inner))))
    return tuple(found)


def name_column(message: str, field: str) -> str | None:
    """The column with the name of a numeric code."""
    return None if names_of(message, field) is None else f"{field}Name"


def decoded_column(field: str) -> str:
    """The column with the message in a field of bytes."""
    return f"{field}Decoded"


def consumer_message(message: str, field: str) -> str | None:
    """The message that consumers encode into a field of bytes."""
    return _CONSUMER_MESSAGES.get((message, field))


def _type(message: Message, field: Field) -> Type:
    if field.type in SCALARS:
        base: Type = Scalar(SCALARS[field.type])
    else:
        fields = message.struct_fields(field.type)
        assert fields is not None, (message.name, field.type)
        base = StructOf(_columns(message, fields))
    return ListOf(base) if field.is_array else base
