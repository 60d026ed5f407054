"""The directories in which brokers keep their logs."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.address import Peer
from ottla.client.client import Answer, Client, always
from ottla.client.each_broker import at_each_broker
from ottla.client.errors import ClientError, ResponseError, check
from ottla.wire.types.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

__all__ = ["LogDirectory", "describe_log_dirs", "describe_log_dirs_at", "try_describe_log_dirs"]

_ALL: Final = DescribeLogDirsRequest(topics=None)


class LogDirectory(NamedTuple):
    path: str
    error: ResponseError | None
    """Why the directory cannot be used."""
    size_bytes: int
    """What the logs in it take that the asker may see."""
    total_bytes: int | None
    """The size of its disk; None where brokers do not tell (before 3.3)."""
    usable_bytes: int | None


async def try_describe_log_dirs(client: Client) -> dict[int, list[LogDirectory] | ClientError]:
    """Where each broker keeps its logs, or why that is not known."""
    return await at_each_broker(client, lambda node_id: describe_log_dirs(client, node_id))


async def describe_log_dirs(client: Client, node_id: int) -> list[LogDirectory]:
    """Where one broker keeps its logs."""
    return _directories(await client.ask("DescribeLogDirs", always(_ALL), broker=node_id))


async def describe_log_dirs_at(client: Client, peer: Peer, *, timeout_ms: int | None = None) -> list[LogDirectory]:
    """The same of whoever is at an address, asked once."""
    return _directories(await client.ask_at(peer, _ALL, timeout_ms=timeout_ms))


def _directories(answer: Answer) -> list[LogDirectory]:
    body = answer.of(DescribeLogDirsResponse)
    check(answer.peer, "DescribeLogDirs", body.error_code)
    return [
        LogDirectory(
            each.log_dir,
            ResponseError(answer.peer, "DescribeLogDirs", each.error_code, each.log_dir) if each.error_code else None,
            sum(partition.partition_size for topic in each.topics for partition in topic.partitions),
            None if each.total_bytes < 0 else each.total_bytes,
            None if each.usable_bytes < 0 else each.usable_bytes,
        )
        for each in body.results
    ]
