"""What consumers subscribe to, as far as their metadata can be read.

To the coordinator a member's metadata is opaque. Only offsets ask which topics a group is subscribed to, so that those
are neither deleted nor expired under its feet. Metadata that cannot be read breaks nothing: the group then counts as
subscribed to anything, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from ottla import wire
from ottla.wire import WireError
from ottla.wire.types.consumer_protocol import ConsumerProtocolSubscription

__all__ = ["SubscribedTopics", "subscription_of", "version_of"]

_INT16: Final = Struct(">h")
_NAME: Final = "ConsumerProtocolSubscription"
_NEWEST: Final = wire.versions(_NAME)[-1]


def version_of(metadata: bytes) -> int | None:
    """The version that stands before a consumer's metadata; None if there is none."""
    if len(metadata) < _INT16.size:
        return None
    version: int = _INT16.unpack_from(metadata)[0]
    return version if version >= 0 else None


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """A consumer's metadata; None if it cannot be read. A newer version than is known is read as the newest known one,
    since new fields only ever come last."""
    version = version_of(metadata)
    if version is None:
        return None
    try:
        subscription: ConsumerProtocolSubscription = wire.decoder(_NAME, min(version, _NEWEST))(
            metadata, _INT16.size, False
        )
    except WireError:
        return None
    return subscription


def _topics_of(metadata: bytes) -> tuple[str, ...] | None:
    """The topics alone, which every version begins with."""
    if version_of(metadata) is None:
        return None
    try:
        return tuple(wire.decoder(_NAME, 0)(metadata, _INT16.size, False).topics)
    except WireError:
        return None


class SubscribedTopics:
    """The topics of a generation, read when somebody asks for the first time."""

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Iterable[bytes]) -> None:
        self._metadata: tuple[bytes, ...] | None = tuple(metadata)
        self._topics: frozenset[str] | None = None

    @property
    def topics(self) -> frozenset[str] | None:
        """None if the metadata of one member cannot be read."""
        if self._metadata is not None:
            each = [_topics_of(metadata) for metadata in self._metadata]
            self._topics = None if None in each else frozenset(name for names in each for name in names or ())
            self._metadata = None
        return self._topics
