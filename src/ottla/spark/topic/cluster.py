"""A cluster for planning: its partitions, with start and end offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.client.blocking import BlockingClient
from ottla.client.client import Client
from ottla.client.errors import ResponseError
from ottla.client.metadata import Topic
from ottla.client.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.client.topics import is_unknown
from ottla.spark.offsets import Offsets, TopicPartition
from ottla.spark.topic.options import TopicOptions
from ottla.wire import uuid_text

__all__ = ["Assigned", "Cluster", "LiveCluster"]

NO_OFFSET: Final = -1
SECOND_MS: Final = 1000


class Assigned(NamedTuple):
    """The partitions that a query reads now."""

    leaders: Mapping[TopicPartition, int]
    """Partition -> node id of its leader."""
    ids: Mapping[str, str]
    missing: tuple[str, ...] = ()
    """Topics and partitions that were named and do not exist."""


class Cluster(Protocol):
    """The cluster that planning needs; tests have a fake."""

    def assigned(self) -> Assigned: ...

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...

    def at_time(self, timestamps: Offsets) -> dict[TopicPartition, int | None]:
        """For each partition the first offset whose record is not older than a time in milliseconds."""


class LiveCluster:
    """A cluster behind a client."""

    def __init__(self, client: Callable[[], BlockingClient], options: TopicOptions) -> None:
        self._client = client
        self._options = options
        self._isolation: Isolation = options.isolation
        self._matching: tuple[float, dict[str, Topic]] = (float("-inf"), {})

    # --- which partitions ---------------------------------------------------------------------------------------------

    def assigned(self) -> Assigned:
        if self._options.subscribe_pattern:
            return _of_topics(self._matching_topics(), ())
        if self._options.assign:
            return self._of_assign()
        topics = self._client().call(_known_topics, self._options.subscribe)
        missing = [f"topic {name}" for name in self._options.subscribe if name not in topics]
        return _of_topics(topics, missing)

    def _matching_topics(self) -> dict[str, Topic]:
        read_at_s, found = self._matching
        if time.monotonic() - read_at_s >= self._options.pattern_ttl_ms / SECOND_MS:
            import re2

            pattern = re2.compile(self._options.subscribe_pattern)
            everything = self._client().call(Client.all_topics)
            # A pattern does not match internal topics; a user who wants to read them names them.
            found = {
                name: topic
                for name, topic in everything.items()
                if not topic.is_internal and pattern.fullmatch(name) is not None
            }
            self._matching = (time.monotonic(), found)
        return found

    def _of_assign(self) -> Assigned:
        wanted = self._options.assign
        topics = self._client().call(_known_topics, list(dict.fromkeys(at.topic for at in wanted)))
        everything = _of_topics(topics, ())
        leaders = {at: everything.leaders[at] for at in wanted if at in everything.leaders}
        missing = tuple(f"topic {at.topic} partition {at.partition}" for at in wanted if at not in leaders)
        return Assigned(leaders, everything.ids, missing)

    # --- where their logs begin and end -------------------------------------------------------------------------------

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._listed(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offsets; for read_committed, the last stable offsets."""
        return self._listed(dict.fromkeys(partitions, LATEST))

    def at_time(self, timestamps: Offsets) -> dict[TopicPartition, int | None]:
        found = self._listed(dict(timestamps))
        return {at: None if offset == NO_OFFSET else offset for at, offset in found.items()}

    def _listed(self, wanted: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        listed = self._client().call(list_offsets, wanted, isolation=self._isolation)
        return {at: each.offset for at, each in listed.items()}


def _of_topics(topics: Mapping[str, Topic], missing: Iterable[str]) -> Assigned:
    leaders = {
        TopicPartition(name, number): each.leader
        for name, topic in topics.items()
        for number, each in topic.partitions.items()
    }
    ids = {name: uuid_text(topic.topic_id) for name, topic in topics.items() if any(topic.topic_id)}
    return Assigned(leaders, ids, tuple(missing))


async def _known_topics(client: Client, names: Iterable[str]) -> dict[str, Topic]:
    """The present metadata of these topics, without those that do not exist."""
    wanted = list(names)
    for name in wanted:
        client.metadata.expire(name)
    found: dict[str, Topic] = {}
    try:
        return await client.topics(wanted)
    except ResponseError as error:
        if not is_unknown(error):
            raise
    for name in wanted:
        try:
            found |= await client.topics([name])
        except ResponseError as error:
            if not is_unknown(error):
                raise
    return found
