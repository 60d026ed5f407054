"""The small text files of a log directory.

Checkpoints begin with a line for the version, 0, and one for the number of lines that follow. Lines are
`topic partition offset`, or `epoch start_offset` in `leader-epoch-checkpoint`. An empty file is an empty checkpoint:
Apache Kafka makes it before it has anything to write. `partition.metadata` holds the topic's id.

What is not as it should be raises `CheckpointError`; whoever reads decides how much that matters.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Final

from ottla.log.names import TopicPartition
from ottla.log.steps import finish
from ottla.wire import uuid_bytes, uuid_text

__all__ = [
    "CheckpointError",
    "format_epochs",
    "format_offset_steps",
    "format_offsets",
    "format_partition_metadata",
    "parse_epochs",
    "parse_offsets",
    "parse_partition_metadata",
]

_VERSION = 0
_LINES_PER_STEP: Final = 500


class CheckpointError(ValueError):
    """A text file of the log directory that does not hold what its name promises."""


def _format(lines: list[str]) -> bytes:
    return "\n".join([str(_VERSION), str(len(lines)), *lines, ""]).encode()


def _parse(data: bytes) -> list[list[str]]:
    """The words of each line."""
    if not data:
        return []
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        raise CheckpointError("the file is not text") from None
    if lines[-1] == "":
        del lines[-1]
    if len(lines) < 2 or not all(line.isdigit() for line in lines[:2]):
        raise CheckpointError("the first two lines are not a version and a count")
    if int(lines[0]) != _VERSION:
        raise CheckpointError(f"version {lines[0]} is not known")
    if int(lines[1]) != len(lines) - 2:
        raise CheckpointError(f"{lines[1]} lines are announced, {len(lines) - 2} follow")
    return [line.split() for line in lines[2:]]


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return finish(format_offset_steps(offsets))


def format_offset_steps(offsets: Mapping[TopicPartition, int]) -> Generator[None, None, bytes]:
    """As `format_offsets`, some lines a step; `offsets` must not change meanwhile."""
    lines = []
    for key, offset in offsets.items():
        lines.append(f"{key.topic} {key.partition} {offset}")
        if len(lines) % _LINES_PER_STEP == 0:
            yield
    return _format(lines)


def parse_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for words in _parse(data):
        try:
            topic, partition, offset = words
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise CheckpointError(f"no topic, partition and offset: {' '.join(words)!r}") from None
    return offsets


def format_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    return _format([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def parse_epochs(data: bytes) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for words in _parse(data):
        try:
            epoch, start_offset = map(int, words)
        except ValueError:
            raise CheckpointError(f"no epoch and offset: {' '.join(words)!r}") from None
        if epoch < 0 or start_offset < 0:
            raise CheckpointError(f"epoch {epoch} at offset {start_offset}")
        entries.append((epoch, start_offset))
    return entries


def format_partition_metadata(topic_id: bytes) -> bytes:
    # No newline at the end: so Apache Kafka writes it.
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def parse_partition_metadata(data: bytes) -> bytes:
    """The topic's id, 16 bytes."""
    try:
        pairs = dict(line.split(": ") for line in data.decode().splitlines())
        version, topic_id = pairs["version"], uuid_bytes(pairs["topic_id"])
    except (ValueError, KeyError):
        raise CheckpointError("no version and topic id") from None
    if version != "0":
        raise CheckpointError(f"version {version} is not known")
    if topic_id == bytes(16):
        raise CheckpointError("the topic id is zero")
    return topic_id
