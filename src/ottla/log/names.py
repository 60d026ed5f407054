"""The names of files and partition directories in a log directory.

A segment's files carry the offset of its first record as 20 digits. A second suffix says that the file is on its way
in or out: `.cleaned` while it is written, `.swap` when it is whole and about to replace others, `.deleted` when it
waits for its removal. A `.log.cut` is no part of the log: it keeps what recovery has cut off (`ottla.log.cuts`).
Directories of deleted, unknown and moving partitions end in `-delete`, `-stray` and `-future`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "CLEANED_SUFFIX",
    "CLEANER_CHECKPOINT",
    "CLEAN_SHUTDOWN_FILE",
    "CUT_SUFFIX",
    "DELETED_SUFFIX",
    "DELETE_SUFFIX",
    "FUTURE_SUFFIX",
    "HIGH_WATERMARK_CHECKPOINT",
    "INDEX_SUFFIX",
    "LEADER_EPOCH_FILE",
    "LOG_START_CHECKPOINT",
    "LOG_SUFFIX",
    "NAME_LENGTH_MAX",
    "PARTITION_METADATA_FILE",
    "RECOVERY_POINT_CHECKPOINT",
    "SNAPSHOT_SUFFIX",
    "STRAY_SUFFIX",
    "SWAP_SUFFIX",
    "TIME_INDEX_SUFFIX",
    "TXN_INDEX_SUFFIX",
    "FileName",
    "TopicPartition",
    "file_name",
    "marked_directory_name",
    "parse_directory_name",
    "parse_file_name",
]

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
DELETED_SUFFIX: Final = ".deleted"
CUT_SUFFIX: Final = ".cut"

LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"
PARTITION_METADATA_FILE: Final = "partition.metadata"

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
FUTURE_SUFFIX: Final = "-future"

_KINDS: Final = frozenset((LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX))
_MARKS: Final = (DELETE_SUFFIX, STRAY_SUFFIX, FUTURE_SUFFIX)
NAME_LENGTH_MAX: Final = 255


class FileName(NamedTuple):
    """The parts of a name such as 00000000000000000042.index.swap."""

    offset: int
    kind: str
    """`.log`, `.index` and so on."""
    state: str
    """Empty, or `.cleaned`, `.swap`, `.deleted`, `.cut`."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def file_name(offset: int, kind: str, state: str = "") -> str:
    return f"{offset:020d}{kind}{state}"


def parse_file_name(name: str) -> FileName | None:
    """The parts of the name of a segment's file or a producer snapshot; None for any other file."""
    digits, dot, rest = name.partition(".")
    if not dot or not digits.isascii() or not digits.isdigit():
        return None
    kind, dot, state = rest.partition(".")
    if f".{kind}" not in _KINDS:
        return None
    return FileName(int(digits), f".{kind}", f"{dot}{state}")


def parse_directory_name(name: str) -> tuple[TopicPartition, str] | None:
    """Whose directory this is and how it is marked ("" or such as "-delete"); None if it is no partition's."""
    mark = next((mark for mark in _MARKS if name.endswith(mark)), "")
    if mark:
        name, dot, unique = name.removesuffix(mark).rpartition(".")
        if not dot or not unique:
            return None
    topic, dash, digits = name.rpartition("-")
    if not (dash and topic and digits.isascii() and digits.isdigit()):
        return None
    return TopicPartition(topic, int(digits)), mark


def marked_directory_name(partition: TopicPartition, unique: str, mark: str) -> str:
    """The name under which a directory leaves (or, with `-future`, comes); `unique` is 32 hexadecimal digits.

    Where the name would be too long for a file system, the topic is cut. Not for `-future`: that one comes back.
    """
    rest = f"-{partition.partition}.{unique}{mark}"
    length = len(partition.topic) if mark == FUTURE_SUFFIX else NAME_LENGTH_MAX - len(rest)
    return partition.topic[:length] + rest
