"""DescribeLogDirs (35): the log directories of this node, with their partitions and sizes.

Versions 1 to 5. A null list of topics means all partitions, an empty one none; directories are always listed. From 3 on
there is a top-level error, from 4 on the size of the volumes, from 5 on whether a directory is cordoned. A partition
that moves to another directory is in both, in the new one as future.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.broker.replicas.storage import cordoned
from ottla.log.directory import LogDirectory
from ottla.log.names import TopicPartition
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseDescribeLogDirsPartition,
    DescribeLogDirsResponseDescribeLogDirsResult,
    DescribeLogDirsResponseDescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import LogDirectories

API_KEY: Final = 35
VERSIONS: Final = (1, 5)

_UNKNOWN: Final = -1

_Partition = DescribeLogDirsResponseDescribeLogDirsPartition
_Topic = DescribeLogDirsResponseDescribeLogDirsTopic
_Result = DescribeLogDirsResponseDescribeLogDirsResult


def handle(node: LogDirectories, request: Request) -> DescribeLogDirsResponse:
    check_cluster(node, request, Operation.DESCRIBE)
    asked = _asked(request.body)
    results = tuple(_describe(node, directory, asked) for directory in node.storage.directories)
    return DescribeLogDirsResponse(results=results)


def refuse(request: Request, code: int, message: str | None) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=code)


def _asked(body: DescribeLogDirsRequest) -> set[tuple[str, int]] | None:
    """The requested partitions; None for all."""
    if body.topics is None:
        return None
    return {(topic.topic, number) for topic in body.topics for number in topic.partitions}


def _describe(node: LogDirectories, directory: LogDirectory, asked: set[tuple[str, int]] | None) -> _Result:
    if directory.is_offline:
        return _Result(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path)
    topics: dict[str, list[_Partition]] = {}
    for key, partition in _held(node, directory):
        if asked is None or key in asked:
            topics.setdefault(key.topic, []).append(partition)
    total_bytes, usable_bytes = _space(directory.path)
    return _Result(
        log_dir=directory.path,
        topics=tuple(_Topic(name, tuple(partitions)) for name, partitions in topics.items()),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=bool(cordoned(node.settings, [directory])),
    )


def _held(node: LogDirectories, directory: LogDirectory) -> Iterator[tuple[TopicPartition, _Partition]]:
    for key, replica in node.replicas.by_key.items():
        if replica.directory is directory:
            size_bytes = replica.log.size_bytes if replica.has_log else 0
            lag = max(replica.high_watermark - replica.log_end_offset, 0)
            yield TopicPartition(*key), _Partition(key[1], size_bytes, lag)
    for move in node.log_dir_moves.in_directory(directory):
        key = move.replica.topic_partition
        yield key, _Partition(key.partition, move.size_bytes, move.lag, is_future_key=True)


def _space(path: str) -> tuple[int, int]:
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return _UNKNOWN, _UNKNOWN
    return usage.total, usage.free
