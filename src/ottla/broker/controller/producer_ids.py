"""Producer ids, from blocks that the controller allocates to this broker.

A block has 1,000 ids. Its allocation is a record in the metadata log, so no id is used twice, even after a crash. The
broker asks for the next block before the present one is used up, so only the very first producer waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ottla.broker.controller.broker_lifecycle import BrokerLifecycle
from ottla.broker.controller.channel import ControllerChannel
from ottla.wire.errors import ErrorCode
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

__all__ = ["ProducerIds"]

PREFETCH_AT: Final = 100
"""How many ids are left when the next block is asked for."""

Taker = Callable[[int | ErrorCode], None]


class ProducerIds:
    """The producer ids that this broker may hand out."""

    def __init__(self, channel: ControllerChannel, broker_lifecycle: BrokerLifecycle) -> None:
        self._channel = channel
        self._broker_lifecycle = broker_lifecycle
        self._next = 0
        self._end = 0
        self._following: range | None = None
        self._is_asking = False
        self._takers: deque[Taker] = deque()

    def take(self, taker: Taker) -> None:
        """Give a fresh id to `taker`, now or when there is one; or the error that prevents it."""
        self._takers.append(taker)
        self._serve()

    def _serve(self) -> None:
        while self._takers and (self._next < self._end or self._advance()):
            self._next += 1
            self._takers.popleft()(self._next - 1)
        is_low = self._end - self._next <= PREFETCH_AT
        if is_low and self._following is None and not self._is_asking:
            self._ask()

    def _advance(self) -> bool:
        """Go over to the next block, if it is there."""
        if self._following is None:
            return False
        self._next, self._end = self._following.start, self._following.stop
        self._following = None
        return True

    def _ask(self) -> None:
        self._is_asking = True
        broker_id, epoch = self._broker_lifecycle.broker_id, self._broker_lifecycle.broker_epoch
        self._channel.send(AllocateProducerIdsRequest(broker_id, epoch), 0, self._given)

    def _given(self, reply: AllocateProducerIdsResponse) -> None:
        self._is_asking = False
        if reply.error_code:  # Kafka's brokers tell no other error; clients ask again
            while self._takers:
                self._takers.popleft()(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        self._following = range(reply.producer_id_start, reply.producer_id_start + reply.producer_id_len)
        self._serve()
