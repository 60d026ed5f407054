"""Records of committed offsets, as Kafka writes them."""

from __future__ import annotations

from typing import Final

from ottla.core.coordinator.records import tombstone
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_classic import OffsetCommitKey, OffsetCommitValue

__all__ = ["NO_EXPIRY", "NO_TOPIC_ID", "offset_record", "offset_tombstone"]

NO_EXPIRY: Final = -1
NO_TOPIC_ID: Final = bytes(16)

_KEY_VERSION: Final = 0
_VERSION: Final = 4
_EXPIRING_VERSION: Final = 1
"""The only one that tells when an offset expires; it has neither leader epoch nor topic id."""


def offset_record(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> KeyedRecord:
    version = _VERSION if value.expire_timestamp == NO_EXPIRY else _EXPIRING_VERSION
    return KeyedRecord(OffsetCommitKey(group_id, topic, partition), _KEY_VERSION, value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> KeyedRecord:
    return tombstone(OffsetCommitKey(group_id, topic, partition))
