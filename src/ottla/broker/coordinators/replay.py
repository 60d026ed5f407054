"""Replays a log into a core: at a start, and in the simulation to compare a live core with its log.

A log may hold records of another release, or records that are damaged. Such records are counted by kind, logged once
and skipped; they stay in the log.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Final

from ottla.core.coordinator.contract import Core
from ottla.core.coordinator.records import RecordReader
from ottla.wire.batch import AnyBatch, BatchView, ControlRecordType, Record, read_control_type
from ottla.wire.fault import WireError

__all__ = ["Replay"]

log = logging.getLogger(__name__)

_STEP_RECORDS: Final = 32


class Replay:
    """One pass over the log of a partition."""

    def __init__(self, core: Core, topic: str, place: str = "") -> None:
        self._core = core
        self._reader = RecordReader(topic)
        self._place = place or topic
        self.record_count = 0
        self.faults: Counter[str] = Counter()
        """What was passed over, by kind."""

    def take(self, batch: AnyBatch) -> None:
        """Replay a batch. Raises nothing for records that cannot be read."""
        for _ in self.steps(batch):
            pass

    def steps(self, batch: AnyBatch) -> Iterator[None]:
        """`take`, with a stop every few records and at the end: a batch may hold thousands."""
        if isinstance(batch, BatchView) and batch.is_control:
            self._take_control(batch)
            yield
            return
        producer_id, producer_epoch = -1, -1
        if isinstance(batch, BatchView) and batch.is_transactional:
            producer_id, producer_epoch = batch.producer_id, batch.producer_epoch
        for number, record in enumerate(self._records(batch), 1):
            self._take_record(record, producer_id, producer_epoch)
            if not number % _STEP_RECORDS:
                yield
        yield

    def _records(self, batch: AnyBatch) -> list[Record]:
        try:
            return list(batch.records())
        except WireError as error:
            self._pass_over("a batch that cannot be read", batch.base_offset, error)
            return []

    def _take_record(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        self.record_count += 1
        if record.key is None:
            self._pass_over("a record without a key", record.offset)
            return
        try:
            value = None if record.value is None else bytes(record.value)
            keyed = self._reader.read(bytes(record.key), value)
        except WireError as error:
            self._pass_over(f"a record that cannot be read (type {bytes(record.key[:2]).hex()})", record.offset, error)
            return
        try:
            self._core.replay(keyed, record.offset, producer_id, producer_epoch)
        except Exception as error:  # noqa: BLE001  # what it says does not fit; what follows may
            self._pass_over(f"{type(keyed.key).__name__} that does not fit", record.offset, error)

    def _take_control(self, batch: BatchView) -> None:
        for record in self._records(batch):
            try:
                kind = read_control_type(record.key)
            except WireError as error:
                self._pass_over("a marker that cannot be read", record.offset, error)
                continue
            if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                committed = kind == ControlRecordType.COMMIT
                self._core.replay_marker(batch.producer_id, batch.producer_epoch, committed)

    def _pass_over(self, kind: str, offset: int, error: Exception | None = None) -> None:
        if kind not in self.faults:
            reason = "" if error is None else f": {error}"
            log.warning("%s, offset %d: skipped %s%s", self._place, offset, kind, reason)
        self.faults[kind] += 1
