"""The committed image: what is published when, and who is told."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ottla.broker.controller.publisher import SLICE_RECORDS, MetadataPublisher
from ottla.broker.loop.cooperative_tasks import CooperativeTasks
from ottla.core.metadata.image import Changes, MetadataImage
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.keyed import Versioned
from ottla.wire.types import cluster_metadata as log


class Tasks:
    """Steps that wait until the test runs them."""

    def __init__(self) -> None:
        self.steps: list[Generator[None, None, None]] = []

    def add(self, name: str, step: Generator[None, None, None], *, is_urgent: bool = False) -> None:
        self.steps.append(step)

    def run(self) -> None:
        while self.steps:
            for _ in self.steps.pop(0):
                pass


class Follower:
    """Notes the topics that it is told of, and which image it sees then."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.deleted: list[str] = []
        self.seen_by_partitions: list[int] = []

    def follow_partitions(self, image: MetadataImage, changes: Changes) -> Generator[None, None, None]:
        self.seen_by_partitions.append(len(image.topics_by_id))
        yield

    def follow_image(self, changes: Changes) -> None:
        self.created += sorted(topic.name for topic in changes.topics_created.values())
        self.deleted += sorted(topic.name for topic in changes.topics_deleted.values())


class Publishing:
    def __init__(self) -> None:
        self.tasks, self.follower, self.image = Tasks(), Follower(), MetadataImage()
        tasks: Any = self.tasks
        self.publisher = MetadataPublisher(self.image, tasks, self.follower)
        self.end_offset = 0

    def append(self, *names: str) -> None:
        """Append a batch that creates topics."""
        records = [Versioned(topic(name), 0) for name in names]
        self.publisher.expect(records, self.end_offset, 1)
        self.end_offset += len(records)

    def commit(self) -> None:
        self.publisher.committed(self.end_offset)

    @property
    def names(self) -> set[str]:
        return set(self.image.topics_by_name)


def topic(name: str) -> log.TopicRecord:
    return log.TopicRecord(name, name.encode().ljust(16, b"."))


def snapshot(*names: str, last_offset: int) -> MetadataImage:
    image = MetadataImage()
    for name in names:
        image.replay(topic(name), last_offset, 1)
    return image


MANY = [f"many-{number}" for number in range(SLICE_RECORDS + 1)]


def test_a_batch_is_published_when_it_is_committed() -> None:
    it = Publishing()
    it.append("a")
    assert it.names == set()
    it.commit()
    assert it.names == {"a"}
    assert it.follower.created == ["a"]


def test_nobody_sees_part_of_a_large_batch() -> None:
    it = Publishing()
    it.append(*MANY)
    it.append("after")
    it.commit()
    (step,) = it.tasks.steps
    next(step)
    assert it.names == set()
    it.tasks.run()
    assert it.names == {*MANY, "after"}


def test_large_batches_follow_each_other() -> None:
    loop = VirtualLoop()
    it = Publishing()
    tasks = it.publisher._tasks = CooperativeTasks(loop, loop.clock)
    expected = set()
    for number in range(3):  # each begins while the topics of the former image are let go
        names = [f"{name}-{number}" for name in MANY]
        expected |= {*names}
        it.append(*names)
    it.commit()
    tasks.run_for(60)
    loop.close()
    assert it.names == expected


def test_what_may_never_be_committed_is_forgotten() -> None:
    it = Publishing()
    it.append("a")
    it.commit()
    it.append("lost")
    it.publisher.forget_from(1)
    it.end_offset = 1
    it.append("b")
    it.commit()
    assert it.names == {"a", "b"}


def test_whoever_waits_for_an_offset_is_called_when_everyone_has_followed() -> None:
    it = Publishing()
    called: list[list[str]] = []
    it.append("a", "b")
    it.publisher.when_at(2, lambda: called.append(list(it.follower.created)))
    assert called == []
    it.commit()
    assert called == [["a", "b"]]


def test_whoever_waits_for_a_topic_is_called_once() -> None:
    it = Publishing()
    called: list[str] = []
    it.publisher.when(lambda: it.image.topic("b") is not None, lambda: called.append("b"))
    for name in "abc":
        it.append(name)
        it.commit()
    assert called == ["b"]


def test_a_snapshot_takes_the_place_of_the_image() -> None:
    it = Publishing()
    it.append("a", "b")
    it.commit()
    called: list[set[str]] = []
    it.publisher.when_at(10, lambda: called.append(it.names))
    it.publisher.load(snapshot("b", "c", last_offset=9))
    assert it.names == {"a", "b"}
    it.tasks.run()
    assert it.publisher.image is it.image
    assert it.names == {"b", "c"}
    assert (it.follower.created, it.follower.deleted) == (["a", "b", "c"], ["a"])
    assert called == [{"b", "c"}]
    it.end_offset = 10
    it.append("d")
    it.commit()
    assert it.names == {"b", "c", "d"}


def test_a_snapshot_waits_for_a_batch_that_is_being_replayed() -> None:
    it = Publishing()
    it.append(*MANY)
    it.append("covered")
    it.commit()
    it.publisher.load(snapshot("a", last_offset=999))
    it.tasks.run()
    assert it.names == {"a"}
    assert it.follower.created == [*sorted(MANY), "a"]
    assert it.follower.deleted == sorted(MANY)


def test_what_a_snapshot_has_cut_off_is_never_published() -> None:
    """A node that was away has records behind the snapshot's end which their leader could not commit any more."""
    it = Publishing()
    it.append("a")
    it.commit()
    it.append("lost")
    it.append(*(f"lost-{number}" for number in range(20)))
    it.publisher.load(snapshot("a", "b", last_offset=9))
    it.tasks.run()
    assert it.names == {"a", "b"}
    it.end_offset = 10
    it.append("c")
    it.commit()
    assert it.names == {"a", "b", "c"}
