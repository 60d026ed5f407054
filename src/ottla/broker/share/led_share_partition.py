"""A share partition that this node leads: its core, and the actions that the core asks for.

The first fetch of a group makes the share partition, which then reads its state from the share coordinator. Writes go
one at a time; what the core wants written meanwhile goes together in the next write. The core is told of a write that
fails and decides what follows.

Delayed fetches are woken through the edge, under the share partition's key, so they run only after the core's step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.share.edge import Source
from ottla.broker.share.log_reader import Reader
from ottla.broker.share.start_offset import start_offset
from ottla.core.share.partition import Actions, SharePartition
from ottla.core.share.partition.events import (
    Acknowledge,
    Acknowledgement,
    Acquire,
    AcquiredRange,
    DeadLetters,
    DeadLettersSent,
    Drop,
    Event,
    Loaded,
    LoadFailed,
    LogStartMoved,
    Release,
    StartResolved,
    StateBatch,
    Tick,
    Write,
    WriteDone,
    WriteFailed,
)
from ottla.core.share.state.batches import Batch, combine
from ottla.core.share.state.kept import Key
from ottla.log.errors import LogError
from ottla.wire.errors import ErrorCode
from ottla.wire.types.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.types.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestStateBatch,
    WriteShareGroupStateRequestWriteStateData,
)

if TYPE_CHECKING:
    from ottla.broker.share.leader import ShareLeader

__all__ = ["LedSharePartition", "Told"]

Told = Callable[[ErrorCode, str | None], None]
"""Hears how an acknowledgement went."""

_PASSING: Final = frozenset(
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ]
)


class LedSharePartition:
    def __init__(self, key: Key, source: Source, leader: ShareLeader) -> None:
        self.key = key
        self.source = source
        self.reader = Reader(source)
        self.dropped: ErrorCode | None = None
        """Why this is of no more use."""
        self.is_retiring = False
        """Nobody uses it any more; it is dropped once nothing is under way."""
        self._leader = leader
        self._edge = leader.edge
        self.core = SharePartition(source.leader_epoch, leader.settings(key.group_id), leader.counts.of(key.group_id))
        self._queued: list[Write] = []
        self._writing: Sequence[Write] = ()
        self._unsent_count = 0
        """Ranges on their way to a dead-letter queue."""
        self._due_at_ms: int | None = None

    @property
    def can_acquire(self) -> bool:
        self.core.settings = self._leader.settings(self.key.group_id)
        return self.core.can_acquire

    @property
    def is_troubled(self) -> bool:
        """Whether it was dropped because its state could not be read for now; members are not told of that."""
        return self.dropped in _PASSING

    # --- what is done with it -----------------------------------------------------------------------------------------

    def acquire(self, event: Acquire) -> Sequence[AcquiredRange]:
        actions = self._core_step(event)
        self._perform(actions)
        return actions.replies[0].acquired

    def acknowledge(self, member_id: str, batches: Sequence[Acknowledgement], told: Told) -> None:
        self.step(Acknowledge(told, member_id, batches))

    def release(self, member_id: str, told: Told | None = None) -> None:
        self.step(Release(member_id, told))

    def log_start_moved(self, offset: int) -> None:
        self.step(LogStartMoved(offset))

    def expire(self) -> int | None:
        """End the acquisition locks that are due; returns when to call this again."""
        self._due_at_ms = None
        self._perform(self._core_step(Tick()), files_deadline=False)
        return self._due_at_ms

    def drop(self, error: ErrorCode) -> None:
        if self.dropped is None:
            self.step(Drop(error))

    def retire(self) -> None:
        """Drop it once what is being written or sent is done: the group has no session left."""
        self.is_retiring = True
        self._retire_if_idle()

    def _retire_if_idle(self) -> None:
        if self.is_retiring and not (self._unsent_count or self._writing or self._queued):
            self.drop(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, event: Event) -> None:
        self._perform(self._core_step(event))

    def _core_step(self, event: Event) -> Actions:
        self.core.settings = self._leader.settings(self.key.group_id)
        return self.core.step(event, self._edge.monotonic_ms())

    def _perform(self, actions: Actions, *, files_deadline: bool = True) -> None:
        """Do what the core asks for. Responses go last, since a client may send its next request at once."""
        due_at_ms = actions.due_at_ms
        if due_at_ms is not None and (self._due_at_ms is None or due_at_ms < self._due_at_ms):
            self._due_at_ms = due_at_ms
            if files_deadline:
                self._leader.due_at(self, due_at_ms)
        if actions.writes:
            self._queued += actions.writes
            self._write()
        if actions.dropped is not None:
            self._end(actions.dropped)
        if actions.wakes and not self.is_troubled:
            self._edge.wake(self.key)
        if actions.needs_start:
            self._resolve()
        for letters in actions.dead_letters:
            self._unsent_count += 1
            self._edge.dead_letter(self.key, self.source, letters, partial(self._sent, letters))
        for reply in actions.replies:
            if callable(reply.token):
                reply.token(reply.error, reply.message)

    def _end(self, error: ErrorCode) -> None:
        self.dropped = error
        self._queued.clear()
        self._writing = ()
        self._leader.forget(self)

    # --- loading ------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        request = ReadShareGroupStateRequest
        partition = request.PartitionData(self.key.partition, self.core.leader_epoch)
        topic = request.ReadStateData(self.key.topic_id, (partition,))
        self._edge.persist(request(self.key.group_id, (topic,)), self._loaded)

    def _loaded(self, answer: Any) -> None:  # noqa: ANN401
        found = answer.results[0].partitions[0]
        if found.error_code:
            self.step(LoadFailed(ErrorCode(found.error_code)))
            return
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in found.state_batches
        ]
        self.step(Loaded(found.state_epoch, found.start_offset, batches))

    def _resolve(self) -> None:
        """Find the offset where a group begins that has no state yet."""
        reset = self._edge.group_setting(self.key.group_id, "share.auto.offset.reset")
        try:
            offset = start_offset(self.source, reset, self._edge.wall_ms())
        except LogError as error:
            self.step(Drop(ErrorCode(error.code)))
        else:
            self.step(StartResolved(offset))

    # --- writing ------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Write what waits, unless a write is in flight."""
        if self._writing or not self._queued:
            return
        self._writing, self._queued = self._queued, []
        window = self.core.window
        data = WriteShareGroupStateRequestPartitionData(
            self.key.partition,
            self.core.state_epoch,
            self.core.leader_epoch,
            window.start,
            window.complete_count,
            tuple(WriteShareGroupStateRequestStateBatch(*each) for each in self._batches(window.start)),
        )
        topic = WriteShareGroupStateRequestWriteStateData(self.key.topic_id, (data,))
        self._edge.persist(WriteShareGroupStateRequest(self.key.group_id, (topic,)), self._written)

    def _batches(self, start: int) -> Sequence[tuple[int, int, int, int]]:
        if len(self._writing) == 1:
            return [batch for batch in self._writing[0].batches if batch.last_offset >= start]
        return combine((Batch(*batch) for write in self._writing for batch in write.batches), start)

    def _written(self, answer: Any) -> None:  # noqa: ANN401
        result = answer.results[0].partitions[0]
        written, self._writing = self._writing, ()
        for write in written:
            if result.error_code:
                self.step(WriteFailed(write.write_id, ErrorCode(result.error_code), result.error_message))
            else:
                self.step(WriteDone(write.write_id))
        self._write()
        self._retire_if_idle()

    def _sent(self, letters: DeadLetters) -> None:
        self._unsent_count -= 1
        self.step(DeadLettersSent(letters.first_offset, letters.last_offset))
        self._retire_if_idle()
