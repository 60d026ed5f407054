"""Writes batches to partitions, wherever they are led, as a producer with acks=all does: what a node itself has to say.

A partition that this node leads is written to directly, one that another node leads by Produce. What was written may
be there although an error is told: whoever writes again may write twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.peers.peer_connection import PeerError
from ottla.broker.replicas.acknowledged_writes import ALL, check_isr, write_result
from ottla.broker.replicas.ports import RecordWriterPorts
from ottla.broker.replicas.replicas import Replica
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.log.errors import LogError
from ottla.wire.errors import ErrorCode
from ottla.wire.types.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)

__all__ = ["Written", "write_batches"]

_VERSIONS: Final = (9, 13)

Written = Callable[[ErrorCode, str], None]
"""Gets NONE when everything is committed, or the error and what it means."""


def write_batches(node: RecordWriterPorts, topic: str, partition: int, batches: Sequence[bytes], done: Written) -> None:
    """Write batches to a partition; `done` is told of it, at once or later."""
    found = node.image.topic(topic)
    leader = NO_LEADER if found is None or partition not in found.partitions else found.partitions[partition].leader
    if found is None or leader in (NO_LEADER, node.node_id):
        _write_here(node, topic, partition, batches, done)
    else:
        _RemoteWrite(node, len(batches), done).begin(leader, topic, found.topic_id, partition, batches)


def _write_here(node: RecordWriterPorts, topic: str, partition: int, batches: Sequence[bytes], done: Written) -> None:
    try:
        replica = node.replicas.leader(topic, partition)
        check_isr(replica)
        end_offset = max(replica.stage(bytearray(batch)).last_offset for batch in batches) + 1
    except (Reject, LogError) as error:
        done(ErrorCode(error.code), str(error))
    else:
        node.unit_of_work.after_write(_LocalWrite(node, replica, end_offset, done).wait)


class _LocalWrite:
    """Batches that were staged in an epoch of this node's leadership."""

    def __init__(self, node: RecordWriterPorts, replica: Replica, end_offset: int, done: Written) -> None:
        self._node = node
        self._replica = replica
        self._leader_epoch = replica.leader_epoch
        self._end_offset = end_offset
        self._done = done

    def wait(self) -> None:
        """Wait until all is committed."""
        if self._attempt(False):
            return
        deadline_at_ms = self._node.clock.monotonic_ms() + self._node.settings["request.timeout.ms"]
        if not self._node.purgatory.park(
            DelayedOperation(self._attempt, (self._replica.topic_partition,), deadline_at_ms)
        ):
            self._attempt(True)

    def _attempt(self, expired: bool) -> bool:
        """Tell the result of the write, if it is known."""
        try:
            code = write_result(self._replica, self._leader_epoch, self._end_offset)
        except LogError as error:
            self._done(ErrorCode(error.code), str(error))
            return True
        if code is None and not expired:
            return False
        code = ErrorCode.REQUEST_TIMED_OUT if code is None else code
        self._done(code, f"the write was not confirmed ({code.name})" if code else "")
        return True


class _RemoteWrite:
    def __init__(self, node: RecordWriterPorts, count: int, done: Written) -> None:
        self._node = node
        self._done = done
        self._open_count = count
        self._failure: tuple[ErrorCode, str] | None = None

    def begin(self, leader: int, topic: str, topic_id: bytes, partition: int, batches: Sequence[bytes]) -> None:
        """Send the batches, which the leader takes in their order."""
        timeout_ms = self._node.settings["request.timeout.ms"]
        for batch in batches:
            data = ProduceRequestPartitionProduceData(partition, batch)
            request = ProduceRequest(None, ALL, timeout_ms, (ProduceRequestTopicProduceData(topic, topic_id, (data,)),))
            self._node.brokers.send(leader, request, _VERSIONS, self._answered)

    def _answered(self, response: Any) -> None:  # noqa: ANN401
        if isinstance(response, PeerError):
            self._failure = (ErrorCode.NETWORK_EXCEPTION, str(response))
        else:
            (result,) = response.responses[0].partition_responses
            if result.error_code:
                code = ErrorCode(result.error_code)
                self._failure = (code, result.error_message or code.meaning)
        self._open_count -= 1
        if not self._open_count:
            self._done(*(self._failure or (ErrorCode.NONE, "")))
