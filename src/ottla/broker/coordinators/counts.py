"""Counts of a runtime, as plain integers; `ottla.broker.telemetry.samples` shows them."""

from __future__ import annotations

__all__ = ["RuntimeCounts"]


class RuntimeCounts:
    __slots__ = ("batches", "load_ms_max", "load_ms_total", "loads", "lost", "records", "records_loaded")

    def __init__(self) -> None:
        self.batches = 0
        """Written, markers included."""
        self.records = 0
        self.loads = 0
        self.load_ms_max = 0
        self.load_ms_total = 0
        self.records_loaded = 0
        self.lost = 0
        """Shards that had to be loaded again because their state and their log differed."""

    def loaded(self, took_ms: int, record_count: int) -> None:
        self.loads += 1
        self.load_ms_max = max(self.load_ms_max, took_ms)
        self.load_ms_total += took_ms
        self.records_loaded += record_count
