"""Batches with keys and times that follow from their offsets."""

from __future__ import annotations

from typing import Any

from ottla.wire.batch import Record, build_batch

TIME_MS = 1_700_000_000_000


def batch(*offsets: int, value: bytes = b"v", **options: Any) -> bytes:
    records = [Record(offset, TIME_MS + offset, b"k%d" % offset, value) for offset in offsets]
    return build_batch(records, partition_leader_epoch=4, **options)
