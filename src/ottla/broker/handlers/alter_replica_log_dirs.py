"""AlterReplicaLogDirs (34): move partitions of this node to another of its log directories.

Versions 1 and 2. The response comes when a move has begun; DescribeLogDirs shows its progress. A request for the
partition's present directory cancels its move. Directories have the names that DescribeLogDirs shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.core.metadata.fault import Reject
from ottla.log.names import FUTURE_SUFFIX, NAME_LENGTH_MAX, TopicPartition, marked_directory_name
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import LogDirectories
    from ottla.log.directory import LogDirectory

API_KEY: Final = 34
VERSIONS: Final = (1, 2)

_UNIQUE: Final = "0" * 32


def handle(node: LogDirectories, request: Request) -> AlterReplicaLogDirsResponse:
    check_cluster(node, request, Operation.ALTER)
    return _answer({key: _place(node, key, path) for key, path in _asked(request.body).items()})


def refuse(request: Request, code: int, message: str | None) -> AlterReplicaLogDirsResponse:
    return _answer(dict.fromkeys(_asked(request.body), code))


def _asked(body: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """The target directory of each partition; if it is given twice, the last one counts."""
    return {
        TopicPartition(topic.name, number): directory.path
        for directory in body.dirs
        for topic in directory.topics
        for number in topic.partitions
    }


def _answer(codes: dict[TopicPartition, int]) -> AlterReplicaLogDirsResponse:
    kind = AlterReplicaLogDirsResponse
    topics: dict[str, list[object]] = {}
    for key, code in codes.items():
        topics.setdefault(key.topic, []).append(kind.AlterReplicaLogDirPartitionResult(key.partition, code))
    return kind(
        results=tuple(
            kind.AlterReplicaLogDirTopicResult(name, tuple(partitions))  # type: ignore[arg-type]
            for name, partitions in topics.items()
        )
    )


def _place(node: LogDirectories, key: TopicPartition, path: str) -> int:
    try:
        directory = _directory(node, key, path)
        replica = node.replicas.by_key.get(key)
        if replica is None:
            return _absent(node, key)
        if replica.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if directory is not replica.directory and any(each.is_offline for each in node.storage.directories):
            # The partition may also be there as a future log of another move.
            return ErrorCode.KAFKA_STORAGE_ERROR
        node.log_dir_moves.move(replica, directory)
    except Reject as reject:
        return reject.code
    return ErrorCode.NONE


def _directory(node: LogDirectories, key: TopicPartition, path: str) -> LogDirectory:
    if len(marked_directory_name(key, _UNIQUE, FUTURE_SUFFIX)) > NAME_LENGTH_MAX:
        raise Reject(ErrorCode.INVALID_TOPIC_EXCEPTION)
    directory = next((each for each in node.storage.directories if each.path == path), None)
    if directory is None:
        raise Reject(ErrorCode.LOG_DIR_NOT_FOUND)
    if directory.is_offline:
        raise Reject(ErrorCode.KAFKA_STORAGE_ERROR)
    return directory


def _absent(node: LogDirectories, key: TopicPartition) -> ErrorCode:
    is_known = node.image.partition(*key) is not None
    return ErrorCode.REPLICA_NOT_AVAILABLE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
