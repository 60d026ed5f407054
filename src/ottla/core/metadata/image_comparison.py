"""How two images differ: what those who follow one must be told when a snapshot takes its place."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final, TypeVar

from ottla.core.metadata.image import Changes, MetadataImage
from ottla.core.metadata.topic_image import TopicImage

__all__ = ["compare"]

SLICE_PARTITIONS: Final = 500
"""How many partitions are compared at once: less than a millisecond."""

_Key = TypeVar("_Key")


def compare(old: MetadataImage, new: MetadataImage) -> Generator[None, None, Changes]:
    """What replaying the records between two images would have changed; a step at a time."""
    changes = Changes(
        configs=_changed(dict(old.all_configs()), dict(new.all_configs())),
        brokers=_changed(old.brokers, new.brokers),
        controllers=_changed(old.controllers, new.controllers),
        features=old.features != new.features,
        quotas=_changed(old.quotas, new.quotas),
        acls=_changed(old.acls, new.acls),
        scram=_changed(old.scram, new.scram),
        tokens=_changed(old.tokens, new.tokens),
    )
    before, after = old.topics_by_id, new.topics_by_id
    compared = 0
    for topic_id, topic in before.items():
        if topic_id not in after:
            changes.topics_deleted[topic_id] = topic
    yield
    for topic_id, topic in after.items():
        known = before.get(topic_id)
        if known is None:
            changes.topics_created[topic_id] = topic
        changes.partitions.update((topic_id, number) for number in _changed_partitions(known, topic))
        compared += len(topic.partitions)
        if compared >= SLICE_PARTITIONS:
            compared = 0
            yield
    return changes


def _changed_partitions(old: TopicImage | None, new: TopicImage) -> set[int]:
    return set(new.partitions) if old is None else _changed(old.partitions, new.partitions)


def _changed(old: Mapping[_Key, object], new: Mapping[_Key, object]) -> set[_Key]:
    """The keys whose values differ, or that only one of the tables has."""
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
