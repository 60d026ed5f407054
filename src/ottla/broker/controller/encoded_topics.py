"""A cache of encoded topics for Metadata, so that a request about many topics does not hold up others.

A response about 10,000 topics is a megabyte. Building and encoding it takes a tenth of a second, during which no other
request would be served. So topics are encoded one by one in a cooperative task, and the response is put together from
the cache. A topic that changes leaves the cache; when a broker changes, all topics do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Final

from ottla import wire
from ottla.broker.network.request import DelayedResponse, Encoded
from ottla.core.metadata.image import Changes, MetadataImage
from ottla.core.metadata.topic_image import TopicImage
from ottla.wire.trace import uvarint
from ottla.wire.types.metadata import MetadataResponse, MetadataResponseMetadataResponseTopic

if TYPE_CHECKING:
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks

__all__ = ["FORMS_MAX", "EncodedTopics"]

FORMS_MAX: Final = 4
"""Versions and listeners for which topics are remembered; with another one all are forgotten."""
AT_ONCE_SECONDS: Final = 0.002
"""What takes longer goes on in a cooperative task."""
_TOPICS_PER_STEP: Final = 20
_FLEXIBLE_FROM: Final = 9

Describe = Callable[[TopicImage], MetadataResponseMetadataResponseTopic]
Form = tuple[int, str]
"""Version and listener: an answer depends on both."""


class EncodedTopics:
    def __init__(self, cooperative_tasks: CooperativeTasks, clock: Clock, image: MetadataImage) -> None:
        self._clock = clock
        self._image = image
        self._tasks = cooperative_tasks
        self._forms: dict[Form, dict[str, bytes]] = {}

    def follow(self, changes: Changes) -> None:
        """The image has changed: forget what is not true any more."""
        if changes.brokers:
            self._forms.clear()
        if not self._forms:
            return
        changed = (self._image.topic_by_id(topic_id) for topic_id, _ in changes.partitions)
        topics = [*changes.topics_created.values(), *changes.topics_deleted.values(), *changed]
        for name in {topic.name for topic in topics if topic is not None}:
            for known in self._forms.values():
                known.pop(name, None)

    def answer(
        self, form: Form, topics: Iterable[TopicImage], describe: Describe, finish: Callable[[], MetadataResponse]
    ) -> Encoded | DelayedResponse:
        """The answer with these topics; `finish` gives all of it but them."""
        frame = _Frame(form[0])
        pieces: list[bytes] = []
        work = self._gather(self._known(form), list(topics), describe, frame, pieces)
        until = self._clock.precise_s() + AT_ONCE_SECONDS
        for _ in work:
            if self._clock.precise_s() > until:
                break
        else:
            return frame.complete(finish(), pieces)
        later = DelayedResponse()
        rest = _then(work, lambda: later.complete(frame.complete(finish(), pieces)))
        self._tasks.add("encoded topics", rest, is_urgent=True)
        return later

    def _known(self, form: Form) -> dict[str, bytes]:
        if form not in self._forms and len(self._forms) >= FORMS_MAX:
            self._forms.clear()
        return self._forms.setdefault(form, {})

    def _gather(
        self, known: dict[str, bytes], topics: list[TopicImage], describe: Describe, frame: _Frame, pieces: list[bytes]
    ) -> Generator[None, None, None]:
        """Collect the bytes of topics, with pauses. A topic that has changed in a pause is not remembered as it was."""
        for number, topic in enumerate(topics, 1):
            data = known.get(topic.name)
            if data is None:
                data = frame.topic(describe(topic))
                if self._image.topic(topic.name) is topic:
                    known[topic.name] = data
            pieces.append(data)
            if number % _TOPICS_PER_STEP == 0:
                yield


def _then(work: Generator[None, None, None], end: Callable[[], None]) -> Generator[None, None, None]:
    yield from work
    end()


class _Frame:
    """Where the topics stand in an answer of a version: behind a head and a count, before a tail."""

    def __init__(self, version: int) -> None:
        self._encode: Callable[[Any], bytes] = wire.encoder("MetadataResponse", version)
        self._is_flexible = version >= _FLEXIBLE_FROM
        operations_bytes = 4 if version in (8, 9, 10) else 0
        error_bytes = 2 if version >= 13 else 0
        self._tail_bytes = operations_bytes + error_bytes + self._is_flexible
        count_bytes = 1 if self._is_flexible else 4
        self._topic_at = len(self._encode(MetadataResponse())) - self._tail_bytes
        self._count_at = self._topic_at - count_bytes

    def topic(self, topic: MetadataResponseMetadataResponseTopic) -> bytes:
        alone = self._encode(MetadataResponse(topics=(topic,)))
        return alone[self._topic_at : len(alone) - self._tail_bytes]

    def complete(self, rest: MetadataResponse, topics: list[bytes]) -> Encoded:
        data = self._encode(rest)
        end = len(data) - self._tail_bytes
        count = uvarint(len(topics) + 1) if self._is_flexible else len(topics).to_bytes(4, "big")
        head = data[: end - (self._topic_at - self._count_at)]
        return Encoded(b"".join((head, count, *topics, data[end:])))
