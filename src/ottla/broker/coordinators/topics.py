"""The topics of the cluster as cores see them, and how they change."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.core.coordinator.contract import Topic, TopicsChange
from ottla.core.metadata.image import Changes, MetadataImage
from ottla.core.metadata.topic_image import TopicImage

__all__ = ["TopicsView"]


class _TopicView:
    """A topic of the metadata image. Each call looks it up, so it is never out of date."""

    __slots__ = ("_image", "_topic")

    def __init__(self, image: MetadataImage, topic: TopicImage) -> None:
        self._image = image
        self._topic = topic

    @property
    def name(self) -> str:
        return self._topic.name

    @property
    def topic_id(self) -> bytes:
        return self._topic.topic_id

    @property
    def partition_count(self) -> int:
        return len(self._topic.partitions)

    def racks(self, partition: int) -> frozenset[str]:
        found = self._topic.partitions.get(partition)
        brokers = [] if found is None else [self._image.brokers.get(each) for each in found.replicas]
        return frozenset(each.rack for each in brokers if each is not None and each.rack is not None)


class TopicsView:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._counts: dict[bytes, int] = {}
        """Topic id -> number of partitions as of the last change that was reported."""

    @property
    def version(self) -> int:
        return self._image.last_offset

    def by_name(self, name: str) -> Topic | None:
        topic = self._image.topics_by_name.get(name)
        return None if topic is None else _TopicView(self._image, topic)

    def by_id(self, topic_id: bytes) -> Topic | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else _TopicView(self._image, topic)

    def names(self) -> Iterable[str]:
        return self._image.topics_by_name.keys()

    def remember(self) -> None:
        """Remember the present topics, for the next `change`."""
        self._counts = {topic_id: len(topic.partitions) for topic_id, topic in self._image.topics_by_id.items()}

    def change(self, changes: Changes) -> TopicsChange | None:
        """The changes of topics that matter to groups; None if there are none."""
        created, grown = [], []
        for topic_id in dict.fromkeys(topic_id for topic_id, _ in sorted(changes.partitions)):
            topic = self._image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            known_count, count = self._counts.get(topic_id), len(topic.partitions)
            if known_count is None:
                created.append(topic.name)
            elif count > known_count:
                grown.append(topic.name)
            self._counts[topic_id] = count
        deleted = [(topic.name, topic_id) for topic_id, topic in changes.topics_deleted.items()]
        for topic_id in changes.topics_deleted:
            self._counts.pop(topic_id, None)
        return TopicsChange(created, grown, deleted) if created or grown or deleted else None
