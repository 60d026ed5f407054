"""A month of a large cluster, made up: the log directory that its coordinators and an observer would have left.

    python -m benchmarks.pipeline.month DIRECTORY --groups 10000 --records 100000000 [--skewed]

Of a hundred records about ninety-eight are offset commits; they are laid out by numpy. The others are written as a
coordinator writes them, through the codec: groups of three members, one of which is replaced now and then, and in every
hundredth group an epoch that climbs for an hour without any reason; and the state of a share group for each hundred
others, every tenth with a poison record. Samples of an observer (`month_parts`) are in a directory of their own.
With --skewed, one group has half of all that consumer groups write. What happened is told by `Month`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import crc32c
import numpy as np

from benchmarks.pipeline.month_parts import Span, share_rows, write_samples
from ottla.core.coordinator.partitioner import partition_for
from ottla.log.names import INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, file_name
from ottla.log.producer_snapshot import format_snapshot
from ottla.wire import uuid_text
from ottla.wire.batch import Record, build_batch
from ottla.wire.keyed import encode_framed
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties, write_meta_properties
from ottla.wire.types import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

TOPIC: Final = "__consumer_offsets"
SHARE_TOPIC: Final = "__share_group_state"
CLUSTER_ID: Final = b"a made-up month!"
PARTITIONS: Final = 50
DAY_MS: Final = 86_400_000
DAYS: Final = 30
BEGIN_MS: Final = 1_790_812_800_000  # 2026-10-01
COMMITS_PER_BATCH: Final = 50
TOPIC_PARTITIONS: Final = 6
MEMBERS: Final = 3
COMMIT_SHARE: Final = 0.976
STATE_SHARE: Final = 0.002
"""Of share groups; as many are the samples."""
CLIMB_EVERY: Final = 100
SHARE_EVERY: Final = 100
POISON_EVERY: Final = 10
SAMPLED: Final = 20
"""Consumer groups whose lag is sampled."""
CLIMBS: Final = 12
SEGMENT_BYTES: Final = 100 << 20
INDEX_INTERVAL_BYTES: Final = 4096
_HEADER_BYTES: Final = 61
_CRC_FROM: Final = 21
Octets = np.ndarray[Any, np.dtype[np.uint8]]


class Month(NamedTuple):
    """What was written, and what a report must find in it."""

    directory: Path
    observations: Path
    records: int
    """With the samples."""
    commits: int
    rebalances: int
    climbing: tuple[str, ...]
    poisoned: tuple[str, ...]
    size_bytes: int


class _Batch(NamedTuple):
    at_ms: int
    data: bytes
    records: int


# --- offset commits ---------------------------------------------------------------------------------------------------


def commit_record(group: str, topic: str) -> tuple[bytes, int, int]:
    """A record of a batch with zeros where numbers go; and where partition and offset stand in it."""
    key = encode_framed(OffsetCommitKey(group=group, topic=topic, partition=0), 0)
    value = encode_framed(OffsetCommitValue(offset=0, leader_epoch=0, metadata="", commit_timestamp=0), 3)
    body = b"\x00\x00\x00" + _varint(len(key)) + key + _varint(len(value)) + value + b"\x00"
    record = _varint(len(body)) + body
    value_at = len(record) - 1 - len(value)
    key_end = value_at - len(_varint(len(value)))
    return record, key_end - 4, value_at + 2


def _varint(value: int) -> bytes:
    """Of a number that is not negative, in the form that records have."""
    value <<= 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def commit_batches(groups: Sequence[str], count: int) -> tuple[Any, Any]:
    """So many batches, one below the other, and the time of each; every batch has commits of one group."""
    first, partition_at, offset_at = commit_record(groups[0], topic_of(groups[0]))
    templates = np.stack([np.frombuffer(commit_record(group, topic_of(group))[0], np.uint8) for group in groups])
    times = BEGIN_MS + (np.arange(count, dtype=np.int64) * (DAYS * DAY_MS) // max(count, 1))
    who = np.arange(count) % len(groups)
    records = np.repeat(templates[who][:, None, :], COMMITS_PER_BATCH, axis=1)
    numbers = np.arange(COMMITS_PER_BATCH)
    records[:, :, len(_varint(len(first) - 2)) + 2] = numbers * 2  # offset delta, as a varint of one byte
    records[:, :, partition_at + 3] = numbers % TOPIC_PARTITIONS
    committed = ((times - BEGIN_MS)[:, None] // 10 + numbers[None, :] // TOPIC_PARTITIONS).astype(">i8")
    records[:, :, offset_at : offset_at + 8] = committed.view(np.uint8).reshape(count, COMMITS_PER_BATCH, 8)
    body = records.reshape(count, -1)
    batches = np.zeros((count, _HEADER_BYTES + body.shape[1]), np.uint8)
    batches[:, _HEADER_BYTES:] = body
    batches[:, :_HEADER_BYTES] = np.frombuffer(_header(batches.shape[1]), np.uint8)
    for at in (27, 35):  # first and last timestamp
        batches[:, at : at + 8] = times.astype(">i8").view(np.uint8).reshape(count, 8)
    return batches, times


def _header(size: int) -> bytes:
    return b"".join(
        (
            bytes(8),
            (size - 12).to_bytes(4, "big"),
            bytes(4),
            b"\x02",
            bytes(4),
            bytes(2),
            (COMMITS_PER_BATCH - 1).to_bytes(4, "big"),
            bytes(16),
            b"\xff" * 14,
            COMMITS_PER_BATCH.to_bytes(4, "big"),
        )
    )


def topic_of(group: str) -> str:
    return f"topic-{group[-3:]}"


def topic_id_of(topic: str) -> bytes:
    return b"month-topic-" + topic[-3:].encode().rjust(4, b"0")


# --- groups -----------------------------------------------------------------------------------------------------------


class Group:
    """A consumer group, as its coordinator writes it down."""

    def __init__(self, name: str, source: random.Random) -> None:
        self.name = name
        self.topic = topic_of(name)
        self.epoch = 0
        self.serial = 0
        self.members: list[str] = []
        self._source = source

    def begin(self) -> list[tuple[bytes, bytes | None]]:
        self.members = [self._new_member() for _ in range(MEMBERS)]
        return [*(self._joined(each) for each in self.members), *self._rebalanced()]

    def replace_one(self) -> list[tuple[bytes, bytes | None]]:
        place = self._source.randrange(MEMBERS)
        gone, self.members[place] = self.members[place], self._new_member()
        keys = (
            ConsumerGroupCurrentMemberAssignmentKey,
            ConsumerGroupTargetAssignmentMemberKey,
            ConsumerGroupMemberMetadataKey,
        )
        left: list[tuple[bytes, bytes | None]] = [
            (encode_framed(key(group_id=self.name, member_id=gone), 0), None) for key in keys
        ]
        return [*left, self._joined(self.members[place]), *self._rebalanced()]

    def climb(self) -> list[tuple[bytes, bytes | None]]:
        """A new epoch though nothing has changed."""
        return self._rebalanced()

    def _new_member(self) -> str:
        self.serial += 1
        return uuid_text(f"{self.name[-5:]}{self.serial:011d}".encode())

    def _joined(self, member: str) -> tuple[bytes, bytes | None]:
        value = ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id=f"client-{self.members.index(member) if member in self.members else 0}",
            client_host="/10.0.0.1",
            subscribed_topic_names=(self.topic,),
            rebalance_timeout_ms=300_000,
            server_assignor="uniform",
        )
        key = ConsumerGroupMemberMetadataKey(group_id=self.name, member_id=member)
        return encode_framed(key, 0), encode_framed(value, 0)

    def _rebalanced(self) -> list[tuple[bytes, bytes | None]]:
        self.epoch += 1
        return [
            (
                encode_framed(ConsumerGroupMetadataKey(group_id=self.name), 0),
                encode_framed(ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=7), 0),
            ),
            *(self._target(number, each) for number, each in enumerate(self.members)),
            (
                encode_framed(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.name), 0),
                encode_framed(ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=self.epoch), 0),
            ),
            *(self._current(number, each) for number, each in enumerate(self.members)),
        ]

    def _partitions(self, number: int) -> tuple[int, ...]:
        return tuple(range(number, TOPIC_PARTITIONS, MEMBERS))

    def _target(self, number: int, member: str) -> tuple[bytes, bytes | None]:
        kind = ConsumerGroupTargetAssignmentMemberValue
        owned = kind.TopicPartition(topic_id=topic_id_of(self.topic), partitions=self._partitions(number))
        key = ConsumerGroupTargetAssignmentMemberKey(group_id=self.name, member_id=member)
        return encode_framed(key, 0), encode_framed(kind(topic_partitions=(owned,)), 0)

    def _current(self, number: int, member: str) -> tuple[bytes, bytes | None]:
        kind = ConsumerGroupCurrentMemberAssignmentValue
        owned = kind.TopicPartitions(topic_id=topic_id_of(self.topic), partitions=self._partitions(number))
        value = kind(
            member_epoch=self.epoch, previous_member_epoch=self.epoch - 1, state=0, assigned_partitions=(owned,)
        )
        key = ConsumerGroupCurrentMemberAssignmentKey(group_id=self.name, member_id=member)
        return encode_framed(key, 0), encode_framed(value, 0)


def group_batches(name: str, rebalances: int, *, climbs: bool) -> Iterator[_Batch]:
    source = random.Random(name)
    group = Group(name, source)
    yield _batch(BEGIN_MS, group.begin())
    for at_ms in sorted(source.randrange(BEGIN_MS + DAY_MS, BEGIN_MS + DAYS * DAY_MS) for _ in range(rebalances)):
        yield _batch(at_ms, group.replace_one())
    if climbs:
        end_ms = BEGIN_MS + DAYS * DAY_MS
        for number in range(CLIMBS):
            yield _batch(end_ms + number * 30_000, group.climb())


def _batch(at_ms: int, rows: list[tuple[bytes, bytes | None]]) -> _Batch:
    records = [Record(number, at_ms, key, value) for number, (key, value) in enumerate(rows)]
    return _Batch(at_ms, bytes(build_batch(records, base_offset=0)), len(rows))


# --- the directory ----------------------------------------------------------------------------------------------------


def write_month(directory: Path, groups: int, records: int, *, is_skewed: bool = False) -> Month:
    log = directory / "log"
    log.mkdir(parents=True)
    identity = MetaProperties(cluster_id=uuid_text(CLUSTER_ID), node_id=1)
    (log / META_PROPERTIES_FILE).write_bytes(write_meta_properties(identity, BEGIN_MS))
    names = [f"group-{number:05d}" for number in range(groups)]
    climbing = frozenset(names[::CLIMB_EVERY])
    # A group that has half of everything counts as many.
    weights = dict.fromkeys(names, 1) | ({names[1]: groups} if is_skewed else {})
    total = sum(weights.values())
    by_partition = _homes(names)
    commits = int(records * COMMIT_SHARE) // total // COMMITS_PER_BATCH * COMMITS_PER_BATCH
    others = records * (1 - COMMIT_SHARE - 2 * STATE_SHARE)
    rebalances = max(round(others / total / 11), 1)
    written = [0, 0, 0, 0]
    for done, (partition, homes) in enumerate(sorted(by_partition.items()), 1):
        batches = [
            batch
            for name in homes
            for batch in group_batches(name, weights[name] * rebalances, climbs=name in climbing)
        ]
        weighted = [name for name in homes for _ in range(weights[name])]
        path = log / f"{TOPIC}-{partition}"
        found = write_partition(path, weighted, commits // COMMITS_PER_BATCH, batches)
        written = [one + other for one, other in zip(written, (*found, len(batches)), strict=True)]
        if done % 10 == 0:
            sys.stderr.write(f"month: {done} of {len(by_partition)} partitions, {written[0]:,} records\n")
    span = Span(BEGIN_MS, BEGIN_MS + DAYS * DAY_MS)
    shares = [f"share-{number:05d}" for number in range(max(groups // SHARE_EVERY, 1))]
    poisoned = tuple(shares[::POISON_EVERY])
    each = max(int(records * STATE_SHARE) // len(shares), 1)
    for partition, homes in sorted(_homes(shares).items()):
        batches = [
            _batch(at_ms, rows)
            for name in homes
            for at_ms, rows in share_rows(name, topic_id_of(name), span, each, has_poison=name in poisoned)
        ]
        found = write_partition(log / f"{SHARE_TOPIC}-{partition}", [], 0, batches)
        written = [one + other for one, other in zip(written, (*found, 0), strict=True)]
    sampled = names[SAMPLED :: max(groups // SAMPLED, 1)][:SAMPLED]
    observations = directory / "observations"
    observations.mkdir()
    count = int(records * STATE_SHARE)
    seen = write_samples(observations, uuid_text(CLUSTER_ID), sampled, shares[:SAMPLED], span, count)
    return Month(
        log, observations, written[0] + seen, written[1], written[3], tuple(sorted(climbing)), poisoned, written[2]
    )


def _homes(names: Sequence[str]) -> dict[int, list[str]]:
    """Groups by the partition of their coordinator."""
    found: dict[int, list[str]] = {}
    for name in names:
        found.setdefault(partition_for(name, PARTITIONS), []).append(name)
    return found


def write_partition(path: Path, groups: list[str], batches_each: int, others: list[_Batch]) -> tuple[int, int, int]:
    """Merge by time, number, check-sum and write. Gives records, commits and bytes."""
    path.mkdir()
    commits, times = commit_batches(groups, batches_each * len(groups)) if groups else ((), np.zeros(0, np.int64))
    others.sort(key=lambda batch: batch.at_ms)
    where = np.searchsorted(times, [batch.at_ms for batch in others])
    segments = _Segments(path)
    at = 0
    for place, batch in zip([*where.tolist(), len(times)], [*others, None], strict=True):
        for row in commits[at:place]:
            _seal(row)
            segments.write(row, COMMITS_PER_BATCH)
        at = place
        if batch is not None:
            segments.write(np.frombuffer(bytearray(batch.data), np.uint8), batch.records)
    segments.close()
    return segments.offset, len(times) * COMMITS_PER_BATCH, segments.size_bytes


def _seal(row: Octets) -> None:
    row[17:21] = np.frombuffer(crc32c.crc32c(row[_CRC_FROM:].data).to_bytes(4, "big"), np.uint8)


class _Segments:
    """Segments with their offset index, and at each roll a producer snapshot, as a broker writes them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None
        self._base_offset = 0
        self._left_bytes = 0
        self._index = bytearray()
        self._indexed_bytes = 0
        self._position = 0
        self.offset = 0
        self.size_bytes = 0

    def write(self, batch: Octets, records: int) -> None:
        if self._left_bytes < len(batch):
            self._roll()
        if self._position - self._indexed_bytes > INDEX_INTERVAL_BYTES:
            last = self.offset - self._base_offset + records - 1
            self._index += last.to_bytes(4, "big") + self._position.to_bytes(4, "big")
            self._indexed_bytes = self._position
        batch[:8] = np.frombuffer(self.offset.to_bytes(8, "big"), np.uint8)
        self._file.write(batch.data)
        self._position += len(batch)
        self._left_bytes -= len(batch)
        self.size_bytes += len(batch)
        self.offset += records

    def _roll(self) -> None:
        self.close()
        self._base_offset, self._position, self._indexed_bytes = self.offset, 0, 0
        self._file = (self._path / file_name(self.offset, LOG_SUFFIX)).open("wb")
        self._left_bytes = SEGMENT_BYTES
        if self.offset:
            (self._path / file_name(self.offset, SNAPSHOT_SUFFIX)).write_bytes(format_snapshot([]))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            (self._path / file_name(self._base_offset, INDEX_SUFFIX)).write_bytes(self._index)
            self._index.clear()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--skewed", action="store_true")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    month = write_month(options.directory, options.groups, options.records, is_skewed=options.skewed)
    sys.stdout.write(
        f"{month.records:,} records ({month.commits:,} commits, {month.rebalances:,} rebalances, "
        f"{month.size_bytes / (1 << 30):.2f} GiB) in {time.perf_counter() - began:.1f} s\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
