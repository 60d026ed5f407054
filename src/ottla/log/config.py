"""The settings of a topic that its log acts on, under Kafka's names with underscores.

Values are taken as they are; whoever parses configurations checks them. Topics with equal settings share one object.
"""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["DEFAULT_CONFIG", "LONG_MAX", "LogConfig"]

LONG_MAX: Final = (1 << 63) - 1
_DAY_MS: Final = 86_400_000


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    # How files are cut
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    file_delete_delay_ms: int = 60_000

    # What a leader accepts
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    ottla_validate_records: bool = False
    """Look at every produced record, as Apache Kafka does, even where the batch's header tells enough."""

    # When it goes to the disk for good
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX

    # What is thrown away
    cleanup_policy: frozenset[str] = frozenset(("delete",))
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    delete_retention_ms: int = _DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX

    # The broker's, for all its partitions
    producer_id_expiration_ms: int = _DAY_MS

    # What follows from these and is asked for each batch; do not set them.
    is_compacted: bool = False
    has_log_append_time: bool = False
    looks_at_records: bool = False
    takes_batches_as_they_are: bool = False
    roll_ms: int = 0
    """For how long a segment is written at most: before that its records cannot be compacted, however old they are."""

    def __post_init__(self) -> None:
        is_compacted = "compact" in self.cleanup_policy
        msgspec.structs.force_setattr(self, "is_compacted", is_compacted)
        msgspec.structs.force_setattr(self, "has_log_append_time", self.message_timestamp_type == "LogAppendTime")
        looks_at_records = is_compacted or self.ottla_validate_records
        msgspec.structs.force_setattr(self, "looks_at_records", looks_at_records)
        takes = self.compression_type == "producer" and self.message_timestamp_type == "CreateTime"
        takes = takes and not looks_at_records and self.message_timestamp_before_max_ms == LONG_MAX
        msgspec.structs.force_setattr(self, "takes_batches_as_they_are", takes)
        roll_ms = min(self.segment_ms, self.max_compaction_lag_ms) if is_compacted else self.segment_ms
        msgspec.structs.force_setattr(self, "roll_ms", roll_ms)

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy


DEFAULT_CONFIG: Final = LogConfig()
