"""The cache of encoded topics, while topics change."""

from collections.abc import Generator

import pytest

from ottla import wire
from ottla.broker.controller.encoded_topics import AT_ONCE_SECONDS, EncodedTopics
from ottla.broker.network.request import DelayedResponse, Encoded
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.topic_image import TopicImage
from ottla.wire.types import cluster_metadata as log
from ottla.wire.types.metadata import MetadataResponse, MetadataResponseMetadataResponseTopic

VERSION = 12
FORM = (VERSION, "PLAINTEXT")
TOPICS = 60


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Tasks:
    """The cooperative task that was added last, for a test to take its steps."""

    def __init__(self) -> None:
        self.work: Generator[None, None, None] = (None for _ in ())

    def add(self, _name: str, work: Generator[None, None, None], *, is_urgent: bool) -> None:
        self.work = work


class SlowClock:
    """Whatever is done takes so long that it has to be divided."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def precise_s(self) -> float:
        self.now_s += 2 * AT_ONCE_SECONDS
        return self.now_s


class Cache:
    def __init__(self) -> None:
        self.image = MetadataImage()
        for number in range(TOPICS):
            self.image.replay(log.TopicRecord(f"topic-{number}", topic_id(number)), 2 * number, 1)
            self.image.replay(
                log.PartitionRecord(0, topic_id(number), (1, 2), (1,), leader=1, leader_epoch=0, partition_epoch=0),
                2 * number + 1,
                1,
            )
        self.image.take_changes()
        self.tasks = Tasks()
        self.topics = EncodedTopics(self.tasks, SlowClock(), self.image)  # type: ignore[arg-type]

    def change(self, number: int, isr: tuple[int, ...]) -> None:
        offset = self.image.last_offset + 1
        self.image.replay(log.PartitionChangeRecord(0, topic_id(number), isr=isr), offset, 1)
        self.topics.follow(self.image.take_changes())

    def go_on(self) -> None:
        for _ in self.tasks.work:
            pass

    def ask(self) -> Encoded | DelayedResponse:
        topics = list(self.image.topics_by_name.values())
        return self.topics.answer(FORM, topics, described, MetadataResponse)

    def in_sync(self) -> dict[str, tuple[int, ...]]:
        """What a whole answer says."""
        asked = self.ask()
        assert isinstance(asked, DelayedResponse)
        self.go_on()
        assert isinstance(asked.message, Encoded)
        response = wire.decode("MetadataResponse", VERSION, asked.message.body)
        return {topic.name: topic.partitions[0].isr_nodes for topic in response.topics}


def described(topic: TopicImage) -> MetadataResponseMetadataResponseTopic:
    kind = MetadataResponse.MetadataResponsePartition
    partitions = tuple(
        kind(partition_index=number, replica_nodes=each.replicas, isr_nodes=each.isr)
        for number, each in topic.partitions.items()
    )
    return MetadataResponse.MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


@pytest.mark.parametrize("is_forked", [False, True], ids=["in place", "copied"])
def test_a_topic_that_changes_while_others_are_encoded_is_not_remembered_as_it_was(is_forked: bool):
    """With a fork of the image, as a snapshot or a controller has one, a topic that changes becomes a new object."""
    cache = Cache()
    last = TOPICS - 1
    cache.ask()
    fork = cache.image.fork() if is_forked else None
    cache.change(last, (1, 2))
    cache.go_on()
    assert cache.in_sync() == {f"topic-{number}": (1, 2) if number == last else (1,) for number in range(TOPICS)}
    assert fork is None or fork.topics_by_name[f"topic-{last}"].partitions[0].isr == (1,)


def test_a_topic_that_changes_leaves_the_cache():
    cache = Cache()
    assert set(cache.in_sync().values()) == {(1,)}
    cache.change(7, (1, 2))
    assert [name for name, isr in cache.in_sync().items() if isr == (1, 2)] == ["topic-7"]
