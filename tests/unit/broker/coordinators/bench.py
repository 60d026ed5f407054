"""A shard on the workbench: a writer in memory, a clock by hand, and a list of what left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.coordinators.replay import Replay
from ottla.broker.coordinators.shard import Shard
from ottla.core.coordinator.contract import Outcome, Producer, World
from ottla.wire.batch import BatchBuilder, build_end_txn_marker, split_batches, stamp
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from tests.unit.broker.coordinators.ledger import Ledger, ask

TOPIC = "__consumer_offsets"
WRITE_TIMEOUT_MS = 5_000


class MemoryWriter:
    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.log_end_offset = 0
        self.high_watermark = 0
        self.batch_max_bytes = 10_000
        self.refusal: ErrorCode | None = None
        self.is_short_of_replicas = False

    def check(self) -> None:
        if self.is_short_of_replicas:
            raise Reject(ErrorCode.NOT_ENOUGH_REPLICAS)

    def stage(self, batch: BatchBuilder, producer: Producer | None) -> int:
        if producer is None:
            return self._add(batch.build(), len(batch))
        return self._add(
            batch.build(
                producer_id=producer.producer_id, producer_epoch=producer.producer_epoch, is_transactional=True
            ),
            len(batch),
        )

    def stage_marker(
        self, producer: Producer, *, committed: bool, coordinator_epoch: int, transaction_version: int
    ) -> int:
        marker = build_end_txn_marker(
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            timestamp=0,
        )
        return self._add(marker, 1)

    def _add(self, batch: bytes, count: int) -> int:
        if self.refusal is not None:
            raise Reject(self.refusal)
        data = bytearray(batch)
        stamp(data, base_offset=self.log_end_offset, partition_leader_epoch=0)
        self.batches.append(bytes(data))
        self.log_end_offset += count
        return self.log_end_offset - count

    def replayed(self) -> Ledger:
        """A new core that has read the log."""
        core = Ledger()
        replay = Replay(core, TOPIC)
        for batch in split_batches(b"".join(self.batches)):
            replay.take(batch)
        assert not replay.faults
        return core


class ListEdge:
    def __init__(self) -> None:
        self.now_ms = 0
        self.left: list[tuple[Any, Any]] = []
        """Token and answer, or token and error."""
        self.effects: list[tuple[Any, Callable[[Outcome], None]]] = []
        self.losses: list[Exception] = []
        self.is_dirty = False
        self.next_at_ms: int | None = None

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms

    def reply(self, token: Any, message: Any) -> None:
        self.left.append((token, message.throttle_time_ms))

    def refuse(self, token: Any, code: ErrorCode, message: str | None) -> None:
        self.left.append((token, code))

    def perform(self, effect: Any, done: Callable[[Outcome], None]) -> None:
        self.effects.append((effect, done))

    def unflushed(self, shard: Shard) -> None:
        self.is_dirty = True

    def due_at(self, shard: Shard, at_ms: int) -> None:
        self.next_at_ms = at_ms if self.next_at_ms is None else min(at_ms, self.next_at_ms)

    def lost(self, shard: Shard, error: Exception) -> None:
        self.losses.append(error)
        shard.unload()


class Bench:
    def __init__(self) -> None:
        self.core = Ledger()
        self.writer = MemoryWriter()
        self.edge = ListEdge()
        world = World({}, lambda _, __: None, None, lambda _: 0, lambda: bytes(16), lambda: 0.5)  # type: ignore[arg-type]
        self.shard = Shard(self.core, self.writer, world, self.edge, write_timeout_ms=WRITE_TIMEOUT_MS)
        self.shard.start()

    def ask(self, token: Any, verb: str, name: str = "a", number: int = 0) -> None:
        self.shard.handle(ask(verb, name, number), self.shard.context(token=token))

    def write(self) -> None:
        """Write the open batch; it is not committed by that."""
        self.shard.flush()

    def commit(self) -> None:
        self.shard.flush()
        self.writer.high_watermark = self.writer.log_end_offset
        self.shard.advance()

    def advance(self, ms: int) -> None:
        self.edge.now_ms += ms
        self.shard.expire()

    def take(self) -> list[tuple[Any, Any]]:
        """What has left since the last time."""
        left, self.edge.left = self.edge.left, []
        return left
