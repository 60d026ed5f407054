"""The committed image of the cluster, and those who follow it.

Records are replayed into the image when they are committed, in place: whoever holds the image never holds a stale one.
Then those who follow it (replicas, coordinators, settings) are told what has changed. A batch with many records, or a
snapshot, becomes an image of its own in slices; replicas follow it in slices, and then the image takes it over as a
whole. So no request waits long, and none sees part of a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.core.metadata.image_comparison import compare
from ottla.core.metadata.records import read_batch

if TYPE_CHECKING:
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.core.metadata.image import Changes, MetadataImage
    from ottla.wire.batch import BatchView
    from ottla.wire.keyed import Versioned

__all__ = ["ImageFollower", "MetadataPublisher"]

SLICE_RECORDS: Final = 200
"""How many records are replayed at once: about a millisecond."""


class ImageFollower(Protocol):
    """Who follows the committed image."""

    def follow_partitions(self, image: MetadataImage, changes: Changes) -> Generator[None, None, None]:
        """Follow what has changed in the partitions; `image` is the one that is to be."""
        ...

    def follow_image(self, changes: Changes) -> None:
        """Follow everything else; the image has changed."""


class _Batch(NamedTuple):
    records: Sequence[Versioned]
    """None of them if they are control records, which only move the position."""
    base_offset: int
    end_offset: int
    epoch: int


class _Snapshot(NamedTuple):
    image: MetadataImage

    @property
    def end_offset(self) -> int:
        return self.image.last_offset + 1


class MetadataPublisher:
    """The committed image."""

    def __init__(self, image: MetadataImage, tasks: CooperativeTasks, follower: ImageFollower) -> None:
        self.image = image
        self._tasks = tasks
        self._follower = follower
        self._steps: deque[_Batch | _Snapshot] = deque()
        self._committed = image.last_offset + 1
        self._published = image.last_offset + 1
        self._is_busy = False
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._conditions: dict[Callable[[], None], Callable[[], bool]] = {}

    def expect(self, records: Sequence[Versioned], base_offset: int, epoch: int) -> None:
        """Keep records that were appended until they are committed."""
        self._steps.append(_Batch(records, base_offset, base_offset + len(records), epoch))

    def expect_batch(self, batch: BatchView) -> None:
        """Keep a batch that was appended until it is committed."""
        if batch.base_offset < self._committed:
            return  # the image has it
        records = () if batch.is_control else read_batch(batch)
        self._steps.append(_Batch(records, batch.base_offset, batch.next_offset, batch.partition_leader_epoch))

    def load(self, image: MetadataImage) -> None:
        """Go over to the image of a snapshot, which has taken the place of the whole log.

        What was appended to that log is not replayed: the image has it, or it will never be committed.
        """
        snapshot = _Snapshot(image)
        self._steps.clear()
        self._steps.append(snapshot)
        self.committed(snapshot.end_offset)

    def forget_from(self, offset: int) -> None:
        """Drop what was appended at an offset and behind it: it will never be committed."""
        while self._steps and self._steps[-1].end_offset > max(offset, self._committed):
            self._steps.pop()

    def committed(self, end_offset: int) -> None:
        """Publish what lies below an offset."""
        self._committed = max(self._committed, end_offset)
        self._go_on()

    def when_at(self, end_offset: int, then: Callable[[], None]) -> None:
        """Call `then` when everything below an offset is published: at once, if it is."""
        if self._published >= end_offset:
            then()
        else:
            self._waiting.append((end_offset, then))

    def when(self, is_there: Callable[[], bool], then: Callable[[], None]) -> None:
        """Call `then` when something is in the image: at once, if it is."""
        if is_there():
            then()
        else:
            self._conditions[then] = is_there

    def forget(self, then: Callable[[], None]) -> None:
        """Do not wait any more."""
        self._conditions.pop(then, None)

    def _go_on(self) -> None:
        while not self._is_busy and self._steps and self._steps[0].end_offset <= self._committed:
            step = self._steps.popleft()
            if isinstance(step, _Snapshot):
                self._begin(self._replace(step.image))
            elif len(step.records) > SLICE_RECORDS:
                self._begin(self._replay_aside(step))
            else:
                self.image.replay_all(step.records, step.base_offset, step.epoch)
                self.image.last_offset, self.image.last_epoch = step.end_offset - 1, step.epoch
                changes = self.image.take_changes()
                for _ in self._follower.follow_partitions(self.image, changes):
                    pass
                self._follower.follow_image(changes)
                self._arrive(step.end_offset)

    def _begin(self, step: Generator[None, None, None]) -> None:
        self._is_busy = True
        self._tasks.add("metadata", step, is_urgent=True)

    def _replace(self, image: MetadataImage) -> Generator[None, None, None]:
        image.take_changes()  # of an empty image that has read the snapshot
        changes = yield from compare(self.image, image)
        yield from self._take_over(image, changes)

    def _replay_aside(self, batch: _Batch) -> Generator[None, None, None]:
        image = self.image.fork()
        for start in range(0, len(batch.records), SLICE_RECORDS):
            part = batch.records[start : start + SLICE_RECORDS]
            image.replay_all(part, batch.base_offset + start, batch.epoch)
            yield
        yield from self._take_over(image, image.take_changes())

    def _take_over(self, image: MetadataImage, changes: Changes) -> Generator[None, None, None]:
        yield from self._follower.follow_partitions(image, changes)
        former = self.image.become(image)
        self._is_busy = False
        self._follower.follow_image(changes)
        self._arrive(self.image.last_offset + 1)
        self._go_on()
        while former:
            yield
            for topic_id in list(islice(former, SLICE_RECORDS)):
                del former[topic_id]

    def _arrive(self, end_offset: int) -> None:
        self._published = end_offset
        while self._waiting and self._waiting[0][0] <= end_offset:
            self._waiting.popleft()[1]()
        for then in [then for then, is_there in self._conditions.items() if is_there()]:
            self.forget(then)
            then()
