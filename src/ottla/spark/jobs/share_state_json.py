"""Records of `__share_group_state` in Kafka's JSON, with the fields that jobs use."""

from __future__ import annotations

from typing import Any, Final

from ottla.spark.jobs.record_json import json_reader
from ottla.wire.types.share_state import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateValue

__all__ = ["STATE_TYPES", "read_state", "read_state_key", "start_of"]

STATE_TYPES: Final = ("ShareSnapshot", "ShareUpdate")

read_state: Final = json_reader(
    ShareSnapshotValue, ShareUpdateValue, only="start_offset state_epoch delivery_complete_count state_batches"
)
read_state_key: Final = json_reader(ShareSnapshotKey, only="group_id topic_id partition")


def start_of(state: Any) -> int | None:
    """The start offset; None if an update does not change it."""
    return None if state.start_offset < 0 else state.start_offset
