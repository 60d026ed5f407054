"""A share partition under test, its log, and a coordinator that writes at once unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.core.share.partition import Actions, SharePartition, SharePartitionSettings
from ottla.core.share.partition.events import (
    Acknowledge,
    Acknowledgement,
    Acquire,
    DeadLetters,
    Event,
    Loaded,
    ReadBatch,
    Release,
    Reply,
    StateBatch,
    Tick,
    Write,
    WriteDone,
)
from ottla.core.share.partition.states import AcquireMode
from ottla.wire.aborted import AbortedTransaction
from ottla.wire.errors import ErrorCode

Ranges = list[tuple[int, int, int]]


class Bench:
    def __init__(
        self,
        *spans: tuple[int, int],
        start: int = 0,
        batches: Sequence[StateBatch] = (),
        settings: SharePartitionSettings | None = None,
    ) -> None:
        self.log = [ReadBatch(first, last) for first, last in spans]
        self.partition = SharePartition(leader_epoch=7, settings=settings or SharePartitionSettings())
        self.now_ms = 0
        self.writes: list[Write] = []
        self.letters: list[DeadLetters] = []
        self.held_back: list[Write] = []
        self.writes_at_once = True
        self.aborted: list[AbortedTransaction] | None = None
        self.actions = self.step(Loaded(3, start, batches))

    @property
    def window(self) -> Ranges:
        return [(run.first, run.last, int(run.state)) for run in self.partition.window.runs()]

    def step(self, event: Event) -> Actions:
        """One step, and the writes that it asks for; gives all that came of it as one."""
        actions = self.partition.step(event, self.now_ms)
        replies = list(actions.replies)
        self.letters += actions.dead_letters
        for write in actions.writes:
            self.writes.append(write)
            if self.writes_at_once:
                replies += self.step(WriteDone(write.write_id)).replies
            else:
                self.held_back.append(write)
        self.actions = actions._replace(replies=replies)
        return self.actions

    def fetch(
        self,
        member_id: str = "a",
        max_records: int = 500,
        batch_size: int = 500,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
        most_batches: int = 1_000,
    ) -> Ranges:
        if not self.partition.can_acquire:
            return []
        offset = self.partition.next_fetch_offset
        read = [batch for batch in self.log if batch.last_offset >= offset][:most_batches]
        event = Acquire("fetch", member_id, offset, read, max_records, batch_size, mode, self.aborted)
        acquired = self.step(event).replies[0].acquired
        return [(each.first_offset, each.last_offset, each.delivery_count) for each in acquired]

    def acknowledge(self, *batches: tuple[int, int, Sequence[int]], member_id: str = "a") -> ErrorCode | None:
        """The answer; None if it has not come."""
        event = Acknowledge("ack", member_id, [Acknowledgement(*batch) for batch in batches])
        return self.answer(self.step(event).replies)

    def release(self, member_id: str = "a") -> None:
        self.step(Release(member_id))

    def advance(self, by_ms: int) -> Actions:
        self.now_ms += by_ms
        return self.step(Tick())

    @staticmethod
    def answer(replies: Sequence[Reply]) -> ErrorCode | None:
        return replies[0].error if replies else None
