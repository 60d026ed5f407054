"""What the metadata logs of stopped nodes say about a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.log.disk import OsDisk
from ottla.log.dump import dump

__all__ = ["Batch", "Fencing", "batches", "fencings", "unequal"]

_LOG: Final = "__cluster_metadata-0"
_FENCED: Final = 1


class Batch(NamedTuple):
    epoch: int
    crc: int


class Fencing(NamedTuple):
    """A broker was fenced while it was registered."""

    broker_id: int
    at_ms: int


def _lines(data_dir: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((data_dir / _LOG).glob("*.log")):
        yield from dump(OsDisk(), str(path))


def batches(data_dir: Path) -> dict[int, Batch]:
    """Base offset -> batch."""
    return {
        line["base_offset"]: Batch(line["partition_leader_epoch"], line["crc"])
        for line in _lines(data_dir)
        if line["kind"] == "batch"
    }


def unequal(logs: Iterable[dict[int, Batch]]) -> list[int]:
    """Offsets where logs that both have them differ."""
    seen: dict[int, Batch] = {}
    return [offset for log in logs for offset, batch in log.items() if seen.setdefault(offset, batch) != batch]


def fencings(data_dir: Path) -> list[Fencing]:
    """Every time that the controller has fenced a broker."""
    records = [line for line in _lines(data_dir) if line["kind"] == "record"]
    return [
        Fencing(each["value"]["data"]["brokerId"], each["timestamp"])
        for each in records
        if each["value"]["type"] == "BrokerRegistrationChangeRecord" and each["value"]["data"].get("fenced") == _FENCED
    ]
