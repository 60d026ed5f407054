"""The parts of a made-up month that are not consumer groups: the state of share groups, and what an observer has seen.

Each share group reads one partition. An update moves its start by ten records, one of which is released and delivered
again. In some groups the last record is archived at the end of the month, after as many deliveries as are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import cramjam

from ottla.health.samples import Sample, encode
from ottla.spark.pipeline.tables import day_of
from ottla.wire import uuid_text
from ottla.wire.keyed import encode_framed
from ottla.wire.types import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue

__all__ = ["Span", "share_rows", "write_samples"]

UPDATES_PER_SNAPSHOT: Final = 500  # Kafka's default
DELIVERIES_MAX: Final = 5  # Kafka's default
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
STEP: Final = 10
"""Records between two updates."""
FRAME: Final = 2_000
"""So many samples are in one frame of a file."""
INTERVAL_MS: Final = 10_000
"""Between two looks of the observer."""
Rows = list[tuple[bytes, bytes | None]]


class Span(NamedTuple):
    begin_ms: int
    end_ms: int

    def times(self, count: int) -> Iterator[int]:
        """So many times at equal distances."""
        for number in range(count):
            yield self.begin_ms + number * (self.end_ms - self.begin_ms) // count


# --- share groups -----------------------------------------------------------------------------------------------------


def share_rows(name: str, topic_id: bytes, span: Span, count: int, *, has_poison: bool) -> Iterator[tuple[int, Rows]]:
    """The times and the records of a group's state."""
    for number, at_ms in enumerate(span.times(count)):
        yield at_ms, [_state(name, topic_id, number, at_ms)]
    if has_poison:
        last = count * STEP
        for deliveries in range(1, DELIVERIES_MAX + 1):
            state = ARCHIVED if deliveries == DELIVERIES_MAX else AVAILABLE
            update = _update(count // UPDATES_PER_SNAPSHOT + 1, last, [(last, last, state, deliveries)])
            yield span.end_ms + deliveries * 1_000, [(_key(ShareUpdateKey, name, topic_id), update)]


def _state(name: str, topic_id: bytes, number: int, at_ms: int) -> tuple[bytes, bytes]:
    start, epoch = number * STEP, number // UPDATES_PER_SNAPSHOT + 1
    batches = [(start, start + STEP - 2, ACKNOWLEDGED, 1), (start + STEP - 1, start + STEP - 1, AVAILABLE, 1)]
    if number % UPDATES_PER_SNAPSHOT:
        return _key(ShareUpdateKey, name, topic_id), _update(epoch, start, batches)
    snapshot = ShareSnapshotValue(
        snapshot_epoch=epoch,
        start_offset=start,
        create_timestamp=at_ms,
        write_timestamp=at_ms,
        state_batches=tuple(ShareSnapshotValue.StateBatch(*each) for each in batches),
    )
    return _key(ShareSnapshotKey, name, topic_id), encode_framed(snapshot, 0)


def _update(epoch: int, start: int, batches: Sequence[tuple[int, int, int, int]]) -> bytes:
    told = tuple(ShareUpdateValue.StateBatch(*each) for each in batches)
    return encode_framed(ShareUpdateValue(snapshot_epoch=epoch, start_offset=start, state_batches=told), 0)


def _key(kind: type[ShareSnapshotKey | ShareUpdateKey], name: str, topic_id: bytes) -> bytes:
    return encode_framed(kind(group_id=name, topic_id=topic_id, partition=0), 0)


# --- samples ----------------------------------------------------------------------------------------------------------


def write_samples(
    directory: Path, cluster: str, groups: Sequence[str], shares: Sequence[str], span: Span, count: int
) -> int:
    """About so many samples of an observer up to the end, as its files: lag of some groups, offsets of share groups,
    the quorum. Returns how many there are."""
    rounds = max(count // (len(groups) + len(shares) + 1), 1)
    began = Span(span.end_ms - rounds * INTERVAL_MS, span.end_ms)
    files: dict[Path, list[bytes]] = {}
    written = 0
    for at_ms in began.times(rounds):
        for kind, entity, body in _round(groups, shares, span, at_ms):
            written += 1
            sample = Sample(
                kind=kind,
                ts=at_ms,
                cluster=cluster,
                observer="bench",
                seq=written,
                entity=entity,
                error=None,
                body=body,
            )
            file = directory / f"kind={kind}" / f"date={day_of(at_ms)}" / "bench-0.jsonl.zst"
            lines = files.setdefault(file, [])
            lines.append(encode(sample) + b"\n")
            if len(lines) == FRAME:
                _append(file, files.pop(file))
    for file, lines in files.items():
        _append(file, lines)
    return written


def _append(file: Path, lines: list[bytes]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as out:
        out.write(bytes(cramjam.zstd.compress(b"".join(lines))))


def _round(
    groups: Sequence[str], shares: Sequence[str], span: Span, at_ms: int
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Kind, entity and body of the samples of one time."""
    passed = (at_ms - span.begin_ms) // 10
    for group in groups:
        offsets = {"committed": passed, "high_watermark": passed + 100, "last_stable": passed + 100}
        topic = {"topic": f"seen-{group}", "topic_id": uuid_text(group[-12:].encode().rjust(16, b"0")), "partition": 0}
        yield "lag", f"{group}:seen-{group}-0", {"group": group, **topic, **offsets}
    for share in shares:
        told = {"topic": f"shared-{share}", "partition": 0, "start": passed, "lag": 10, "high_watermark": passed + 10}
        yield "share_offsets", f"{share}:shared-{share}-0", {"group": share, **told}
    replica = {"id": 1, "role": "voter", "log_end": passed, "last_fetch_ts": at_ms, "last_caught_up_ts": at_ms}
    yield "quorum", "quorum", {"leader": 1, "leader_epoch": 1, "replicas": [replica]}
