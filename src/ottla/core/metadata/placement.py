"""Which brokers hold a new partition.

Theory of operation. Racks are walked in turn, and in each rack its brokers in turn, so that the replicas of a
partition lie in different racks as far as there are enough, and leaders spread over racks and brokers. The first
replica, which becomes the leader, is never on a fenced broker; the others are only if the rack has no other left. Each
partition starts one rack, and in it one broker, further than the last. Once every broker has led a partition the order
is shuffled, else the same neighbours would share partitions for ever.

This is the behaviour of Kafka's own placer. The numbers drawn come from the ids of the request's context, so that the
controller stays without a source of randomness of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ottla.core.metadata.cluster_image import BrokerImage
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

Draw = Callable[[int], int]
"""A whole number from 0 up to, not including, the given one."""


def draw_from(new_uuid: Callable[[], bytes]) -> Draw:
    """Numbers out of random ids."""
    # The last eight bytes: in a version 4 uuid they are random but for two bits at the top.
    return lambda bound: int.from_bytes(new_uuid()[9:], "big") % bound


def place(brokers: Iterable[BrokerImage], partition_count: int, replication_factor: int, draw: Draw) -> list[list[int]]:
    """Replicas for each of so many partitions. Reject with INVALID_REPLICATION_FACTOR if that cannot be."""
    usable = [broker for broker in brokers if not broker.in_controlled_shutdown and broker.takes_replicas]
    _check(usable, replication_factor)
    if len(usable) == 1:
        return [[usable[0].broker_id] for _ in range(partition_count)]
    racks = _Racks(usable, draw)
    return [racks.next_partition(replication_factor) for _ in range(partition_count)]


def _check(usable: Sequence[BrokerImage], replication_factor: int) -> None:
    if replication_factor <= 0:
        reason = "there must be at least one replica"
    elif all(broker.fenced for broker in usable):
        reason = "no broker is there that is neither fenced nor shutting down and has a log directory not cordoned"
    elif replication_factor > len(usable):
        reason = f"only {len(usable)} broker(s) are registered and take replicas"
    else:
        return
    message = f"A replication factor of {replication_factor} cannot be reached: {reason}."
    raise Reject(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class _Ring:
    """Brokers in turn: each round starts one further than the last, and yields each broker once."""

    __slots__ = ("_at", "_round", "_start", "brokers")

    def __init__(self, brokers: list[int], draw: Draw) -> None:
        self.brokers = sorted(brokers)
        self._start = draw(len(brokers)) if brokers else 0
        self._at = 0
        self._round = 0

    def next(self, round_number: int) -> int | None:
        if not self.brokers:
            return None
        if round_number != self._round:
            self._round = round_number
            self._start = (self._start + 1) % len(self.brokers)
            self._at = 0
        if self._at == len(self.brokers):
            return None
        broker = self.brokers[(self._start + self._at) % len(self.brokers)]
        self._at += 1
        return broker


class _Racks:
    __slots__ = ("_draw", "_fenced", "_names", "_round", "_start", "_unfenced", "_unfenced_count")

    def __init__(self, brokers: Sequence[BrokerImage], draw: Draw) -> None:
        self._draw = draw
        self._names = sorted({broker.rack for broker in brokers}, key=lambda rack: (rack is not None, rack))
        self._unfenced = [self._ring(brokers, name, fenced=False) for name in self._names]
        self._fenced = [self._ring(brokers, name, fenced=True) for name in self._names]
        self._unfenced_count = sum(not broker.fenced for broker in brokers)
        self._start = draw(len(self._names))
        self._round = 0

    def _ring(self, brokers: Sequence[BrokerImage], rack: str | None, *, fenced: bool) -> _Ring:
        return _Ring([b.broker_id for b in brokers if b.rack == rack and b.fenced == fenced], self._draw)

    def next_partition(self, replication_factor: int) -> list[int]:
        if self._round == self._unfenced_count and self._unfenced_count > 1:
            self._shuffle()
            self._round = 0
        leader_rack, leader = self._leader()
        replicas = [leader]
        rack = self._start
        passes_leader_rack = True
        while len(replicas) < replication_factor:
            if rack == leader_rack and passes_leader_rack:
                passes_leader_rack = False  # it has its replica; it gets another only in the next turn
            else:
                broker = self._any(rack)
                if broker is not None:
                    replicas.append(broker)
            rack = (rack + 1) % len(self._names)
        self._round += 1
        self._start = (self._start + 1) % len(self._names)
        return replicas

    def _leader(self) -> tuple[int, int]:
        """The first rack from the present one on that has a broker not fenced, and that broker."""
        for step in range(len(self._names)):
            rack = (self._start + step) % len(self._names)
            broker = self._unfenced[rack].next(self._round)
            if broker is not None:
                return rack, broker
        raise AssertionError("a broker that is not fenced was there when placement began")

    def _any(self, rack: int) -> int | None:
        broker = self._unfenced[rack].next(self._round)
        return self._fenced[rack].next(self._round) if broker is None else broker

    def _shuffle(self) -> None:
        order = list(range(len(self._names)))
        self._shuffle_list(order)
        self._names = [self._names[i] for i in order]
        self._unfenced = [self._unfenced[i] for i in order]
        self._fenced = [self._fenced[i] for i in order]
        for ring in (*self._unfenced, *self._fenced):
            self._shuffle_list(ring.brokers)

    def _shuffle_list(self, items: list[int]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self._draw(last + 1)
            items[last], items[other] = items[other], items[last]
